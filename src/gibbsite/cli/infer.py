"""``gibbsite infer``: marginals, most probable states and log-partition functions of a model."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, cast

import click

from gibbsite.cli.help import Command
from gibbsite.cli.inputs import SITES, load_any, observe, read_sites, scan_option, split_states, takes_model
from gibbsite.cli.network.cases import answer_cases
from gibbsite.cli.network.questions import GROUPS, answer_question, asks_question, question_options
from gibbsite.cli.outputs import deliver, echo
from gibbsite.cli.parameters import (
    BELOW_ONE,
    COUNT,
    FILE_OUTPUT,
    FOLDER,
    NOT_NEGATIVE,
    OUTPUT,
    POSITIVE,
    SEED,
    UP_TO_ONE,
    Choice,
    Integer,
    is_given,
    quiet_option,
    read_scan,
    refuse,
)
from gibbsite.cli.wording import spelled
from gibbsite.inference import METHODS, TASKS, WEIGHTED
from gibbsite.inference.methods import ARGUMENTS, SAMPLING

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph
    from gibbsite.models.stored import StoredPairs
    from gibbsite.results.answer import Answer

_TASKS = Choice(TASKS, case_sensitive=False)
# Options whose names differ from the argument of gs.infer that they set.
_SETS = {
    "no_dispersed_starts": "dispersed_starts",
    "folder": "record",
    "checkpoint_every": "checkpoint",
    "resume": "checkpoint",
    "partitions": "on",
}
# Parameters of kernels that are options, by method.
_KERNEL = {"blocks": ("entries",), "cutset": ("width",), "mini-bucket": ("entries",)}
_OF_MARGINALS = ("accuracy", "no_dispersed_starts", "folder")
_OLD_NAMES = {"no-second-look": "no-dispersed-starts"}  # of options
_PROJECTED = "these are parts of the best state of all sites, not the best state of these sites alone."
_LAYOUTS = {".json": "json", ".csv": "csv", ".uai": "uai", ".txt": "table", ".md": "md", ".html": "html"}  # by suffix
_QUICK = 2.0  # seconds that the marginals before the evidence may take
_MOST_IN_JSON = 100_000  # sites of a stored model


_EXAMPLES = (
    "gibbsite infer alarm --observe HRBP=HIGH --observe CO=LOW",
    "gibbsite infer asia --observe xray=yes --query lung,tub --json",
    "gibbsite infer model.uai --task MAP --seconds 60",
    "gibbsite infer model.uai --method tempered --accuracy 0.005 -o answer.csv",
)
_COMMON = {
    "Question": ("evidence", "observe", "task", "query"),
    "Method": ("method", "seconds", "sweeps", "accuracy", "rng"),
    "Answer": ("as_json", "out", "strict", "quiet"),
}
_RARE = {
    **GROUPS,
    "More of the question": ("from_format", "maximise", "best", "verify"),
    "Run": ("warmup", "draws", "chains", "threads", "scan", "no_exact", "no_dispersed_starts"),
    "Parameters of methods": ("entries", "width", "damping", "parallel", "kind", "schedule", "weight"),
    "Long and large runs": ("checkpoint", "checkpoint_every", "resume", "folder", "on", "partitions"),
    "More of the answer": ("report", "layout", "show_all"),
}
_DETAILS = (
    "Without --method, the model is solved exactly if that is cheap; otherwise it is sampled, or annealed for a most "
    "probable state. Each answer comes with a verdict on how far to trust it. A .pairs folder is sampled without being "
    "loaded into memory. Ctrl-C or SIGTERM ends a run early: partial results are saved and written, and the exit code "
    "is 130."
)


@click.command(
    "infer",
    cls=Command,
    examples=_EXAMPLES,
    common=_COMMON,
    rare=_RARE,
    details=_DETAILS,
    context_settings={"token_normalize_func": lambda name: _OLD_NAMES.get(name, name)},
)
@takes_model
@click.option(
    "--task",
    type=_TASKS,
    default="MAR",
    metavar="TASK",
    help="MAR (marginals, the default), MAP (most probable state), PR (log Z) or MMAP (most probable "
    "states of some sites).",
)
@click.option("--max", "maximise", type=SITES, help="Sites to maximise over, with the others summed out (MMAP).")
@click.option(
    "--method",
    type=Choice(list(METHODS)),
    default="auto",
    show_default=True,
    metavar="METHOD",
    help="One that gibbsite methods lists.",
)
@click.option("--no-exact", is_flag=True, help="Do not solve exactly, even if that is cheap (auto).")
@scan_option
@click.option("--sweeps", type=COUNT, help="Number of sweeps of each chain after the warmup.")
@click.option("--draws", type=COUNT, help="Number of weighted draws.")
@click.option("--seconds", type=POSITIVE, help="Time limit of sampling. [default: 10, unless --sweeps or --draws]")
@click.option(
    "--accuracy",
    type=BELOW_ONE,
    default=0.01,
    show_default=True,
    help="Largest error of a marginal (four standard errors).",
)
@click.option("--best", type=COUNT, default=1, metavar="N", help="Give the N best states (MAP).")
@click.option("--warmup", type=Integer(0), help="Sweeps before recording. [default: a tenth]")
@click.option("--chains", type=COUNT, default=4, show_default=True)
@click.option("--entries", type=COUNT, help="Largest number of entries of a table (blocks, mini-bucket).")
@click.option("--width", type=POSITIVE, help="log2 of the largest number of entries of a clique table (cutset).")
@click.option("--damping", type=UP_TO_ONE, help="Step size of mean field and bp, in (0, 1]. [default: 1]")
@click.option("--parallel", is_flag=True, help="Update all sites at once (mean field).")
@click.option(
    "--kind",
    type=Choice(["sum", "max", "tree-reweighted", "fractional"]),
    help="Messages of bp. [default: max on MAP, sum otherwise]",
)
@click.option("--schedule", type=Choice(["residual", "sweep"]), help="Order of messages (bp). [default: residual]")
@click.option("--weight", type=POSITIVE, help="Exponent of factors (bp, fractional). [default: 0.5]")
@click.option("--threads", type=COUNT, help="[default: all cores]")
@click.option(
    "--on",
    metavar="CLUSTER",
    help="Run chains on workers: of a Dask scheduler (tcp://host:8786), in processes of this machine "
    "(local-dask), or of Ray (ray). The numbers are the same.",
)
@click.option(
    "--partitions", type=COUNT, help="Divide the sites of a chain, or its rungs, among this many workers (--on)."
)
@click.option("--rng", type=SEED, help="Seed. With --sweeps it repeats a run exactly.")
@click.option("--query", type=SITES, help="Only these sites, separated by commas.")
@click.option("--all", "show_all", is_flag=True, help="Show every site in the table.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--format",
    "layout",
    type=Choice(["table", "json", "uai", "csv", "md", "html"]),
    help="[default: by the suffix of the name after -o; otherwise table]",
)
@click.option(
    "-o", "--output", "out", type=OUTPUT, help="File to write: .json, .csv, .md, .html, .uai or .txt, also with .gz."
)
@click.option(
    "--to",
    "folder",
    type=FOLDER,
    metavar="FOLDER",
    help="Count draws in files of this folder instead of in memory; marginals.npy gets the probabilities.",
)
@click.option("--checkpoint", type=FILE_OUTPUT, help="File to save the run to at intervals, so that it can be resumed.")
@click.option(
    "--checkpoint-every",
    type=NOT_NEGATIVE,
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between saves; the first follows after at most 2 seconds.",
)
@click.option("--resume", is_flag=True, help="Continue from the checkpoint.")
@click.option(
    "--no-dispersed-starts",
    is_flag=True,
    help="Skip the dispersed-start check, which compares the run with short chains from other starts.",
)
@click.option("--report", type=FILE_OUTPUT, help="Also write a report to this .html file, which a browser opens.")
@click.option("--verify", is_flag=True, help="Compare all checksums of a stored model (.pairs) first.")
@click.option("--strict", is_flag=True, help="Exit with 4 unless exact or converged.")
@question_options
@quiet_option
def command(**given: Any) -> int:
    """Compute marginals, a most probable state, or log Z of MODEL.

    MODEL is a .uai, .bif, .xmlbif, .xdsl, .net, .dsc, .bqm, .coo, .wcsp, .wcnf, .rudy (max-cut) or .edges file, also
    gzipped; "-" for stdin; an example (alarm, asia or child); or a .pairs folder made by gibbsite convert.
    """
    import gibbsite as gs
    from gibbsite.cli import answers
    from gibbsite.errors import ConvergenceWarning
    from gibbsite.inference import infer
    from gibbsite.models import FactorGraph

    asks = asks_question()
    layout = _check_options(given)
    model = load_any(given["model"], given["from_format"], given["verify"])
    if given["do"]:
        model = gs.questions.intervene(_in_memory(model), split_states(_in_memory(model), given["do"], "--do"))
    if asks:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the reasons are printed
            return answer_question(given, _in_memory(model), _how(given), layout)
    observed = observe(model, given["evidence"], given["observe"])
    sites = read_sites(model, given["query"])
    stored = not isinstance(model, FactorGraph)
    if given["cases"] is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # rows that are not sure say so
            return answer_cases(given, _in_memory(observed), sites, _how(given))
    folder = given["folder"]
    if stored and layout == "json" and sites is None and folder is None and model.n_sites > _MOST_IN_JSON:
        raise click.UsageError(
            f"--json holds all of its {model.n_sites:,} sites in memory; name some with --query, write them "
            "with --format csv, or keep them in files with --to FOLDER."
        )
    if folder is not None and given["method"] == "auto" and not stored:
        raise click.UsageError("--to needs a method that samples; add --method gibbs.")
    task, maximised = given["task"], read_sites(model, given["maximise"])
    if task == "MAP" and sites is not None and not stored and "MMAP" in METHODS[given["method"]]:
        some = [site for site in sites if site in observed.sites]
        if some and len(some) < observed.n_sites:
            task, maximised, sites = "MMAP", some, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # its reasons are printed below
        answer = infer(
            observed,
            task,
            **_how(given, sites if task == "MAR" else None),
            best=given["best"],
            **cast("dict[str, Any]", {} if maximised is None else {"maximise": maximised}),
            **_record(given, sites if stored else None),
        )
    try:
        if given["report"] is not None:
            prior = _prior_of(model) if observed is not model else None
            deliver(given["report"], lambda out: answer.write_report(out, before=prior))
        deliver(
            given["out"] or "-",
            lambda out: answers.write(answer, model, layout, sites, given["show_all"], out, folder),
            text=True,
        )
    finally:
        if not given["quiet"]:
            notes = list(answer.remarks)
            if task == "MAP" and sites is not None and not set(model.sites) <= {*sites}:
                notes.append(_PROJECTED)
            elif task != given["task"]:
                notes.append("the other sites are summed out; without --query, the best state is that of all sites.")
            echo(spelled(answer.line()), err=True)
            for opening, messages in (("  ", answer.reasons), ("note: ", notes)):
                for message in messages:
                    echo(opening + spelled(message), err=True)
    if answer.interrupted:
        return 130
    return 4 if given["strict"] and not answer.converged else 0


def _check_options(given: dict[str, Any]) -> str:
    """Refuse options that contradict each other or have no effect; return the layout of the answer."""
    task, method = given["task"], given["method"]
    if task not in METHODS[method]:
        others = ", ".join(name for name, tasks in METHODS.items() if task in tasks)
        raise click.UsageError(f"--method {method} does not answer {task}; choose one of {others}.")
    takes = _options_of(method)
    of_methods = set().union(*map(_options_of, METHODS))
    refuse([name for name in given if name in of_methods and name not in takes], f"with --method {method}")
    if task != "MAR":
        refuse(_OF_MARGINALS, f"on --task {task}")
    if task not in ("MAP", "MMAP"):
        refuse(["best"], f"on --task {task}")
    if task != "MMAP":
        refuse(["maximise"], f"on --task {task}")
    elif given["maximise"] is None:
        raise click.UsageError("--task MMAP needs --max, the sites to maximise over, separated by commas.")
    if given["checkpoint"] is None:
        for name in ("--resume", "--checkpoint-every"):
            if given["cases"] is not None and name == "--resume":
                continue
            if is_given(name[2:].replace("-", "_")):
                raise click.UsageError(f"{name} needs --checkpoint, the file to save to and continue from.")
    if given["as_json"] and is_given("layout") and given["layout"] != "json":
        raise click.UsageError(f"--json and --format {given['layout']} contradict each other; give one.")
    layout: str = "json" if given["as_json"] else given["layout"] or _layout_of(given["out"])
    if task == "PR":
        refuse(["query"], "on --task PR")
    if layout in ("uai", "csv", "md", "html"):
        refuse(["best"], f"with --format {layout}, which holds one state; use json or table")
    if layout == "uai":
        refuse(["query"], "with --format uai, which lists all sites")
    if layout != "table" or task == "PR" or given["query"] is not None:
        refuse(["show_all"], "except for tables of all sites")
    return layout


def _options_of(method: str) -> set[str]:
    """Return the options that a method has a use for; those of sampling also matter if "auto" has to sample."""
    takes = {*ARGUMENTS.get(method, SAMPLING), *_KERNEL.get(method, ())}
    takes |= {option for option, sets in _SETS.items() if sets in takes}
    return takes | {"accuracy"} if takes & {"warmup", "draws"} else takes


def _layout_of(out: str | None) -> str:
    """Return the layout for the name of a file; refuse unknown suffixes."""
    suffix = os.path.splitext((out or "").removesuffix(".gz"))[1]
    if suffix and suffix.lower() not in _LAYOUTS:
        raise click.UsageError(
            f"the suffix {suffix} belongs to no output format; use {', '.join(_LAYOUTS)}, or choose one with --format."
        )
    return _LAYOUTS.get(suffix.lower(), "table")


def _read_method(given: dict[str, Any]) -> Any:
    """Return the method, or its kernel with the parameters that are given."""
    method = given["method"]
    chosen = {name: given[name] for name in _KERNEL.get(method, ()) if is_given(name)}
    if not chosen:
        return method
    from dataclasses import replace

    if method in WEIGHTED:
        from gibbsite.inference.importance.base import make_proposal

        return replace(make_proposal(method), **chosen)  # type: ignore[type-var]
    from gibbsite.kernels.registry import make_kernel

    return replace(make_kernel(method), **chosen)


def _prior_of(model: FactorGraph | StoredPairs) -> Answer | None:
    """Return the answer before the evidence, if it takes no longer than a moment."""
    from gibbsite.inference.exact import predict_exact, solve_exact
    from gibbsite.models import FactorGraph

    if not isinstance(model, FactorGraph) or predict_exact(model).seconds > _QUICK:
        return None
    return solve_exact(model)


def _in_memory(model: FactorGraph | StoredPairs) -> FactorGraph:
    """Return a model that is not stored on disk; refuse others."""
    from gibbsite.models import FactorGraph

    if not isinstance(model, FactorGraph):
        raise click.UsageError("a stored model answers marginals and states alone; leave the question out.")
    return model


def _how(given: dict[str, Any], query: list[str] | None = None) -> dict[str, Any]:
    """Return the arguments of a method: its budget, the criteria, and what else was given."""
    import gibbsite as gs

    return {
        "method": _read_method(given),
        "seconds": given["seconds"],
        "sweeps": given["sweeps"],
        "criteria": gs.Criteria(
            accuracy=given["accuracy"], query=query, dispersed_starts=not given["no_dispersed_starts"]
        ),
        "exact": not given["no_exact"],
        "progress": False if given["quiet"] else None,
        **_run_options(given),
    }


def _record(given: dict[str, Any], sites: list[str] | None) -> dict[str, Any]:
    """Return what to record, unless it is all marginals in memory: those of some sites, or in a folder."""
    if given["folder"] is None and (sites is None or given["task"] != "MAR"):
        return {}
    import gibbsite as gs

    if given["folder"] is None:
        return {"record": gs.Marginals(sites=sites)}
    # averages of conditionals would take eight bytes of memory for each site and chain
    return {"record": gs.Marginals(rao_blackwell=False, to=given["folder"])}


def _run_options(given: dict[str, Any]) -> dict[str, Any]:
    """Collect the given arguments of the method."""
    import gibbsite as gs

    names = {*_options_of(given["method"])} - {"sweeps", "seconds", "accuracy", "scan", "dispersed_starts", *_SETS}
    names -= {name for parameters in _KERNEL.values() for name in parameters}
    chosen = {name: given[name] for name in given if name in names and is_given(name)}
    if given["checkpoint"] is not None:
        chosen["checkpoint"] = gs.Checkpoint(given["checkpoint"], given["checkpoint_every"], given["resume"])
    if is_given("partitions"):
        chosen["on"] = gs.Cluster(given["on"], given["partitions"])
    if given["scan"] is not None:
        chosen["scan"] = read_scan(given["scan"])
    return chosen
