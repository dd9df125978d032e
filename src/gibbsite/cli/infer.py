"""``gibbsite infer``: the main job."""

from __future__ import annotations

import os
import warnings
from typing import Any

import click

from gibbsite.cli.inputs import (
    evidence_option,
    format_option,
    load_any,
    model_argument,
    observe,
    observe_option,
    read_sites,
    say,
    scan_option,
)
from gibbsite.cli.outputs import deliver
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
    is_given,
    read_scan,
    refuse,
)
from gibbsite.inference import METHODS, TASKS, WEIGHTED

_TASKS = Choice(TASKS, case_sensitive=False)
_CHECKPOINT = ("checkpoint", "checkpoint_every", "resume")
_LENGTH = ("sweeps", "seconds", "accuracy", "warmup")
_CLUSTER = ("on", "partitions")
_OF_MARGINALS = ("no_second_look", "folder")
_SAMPLING = ("scan", *_LENGTH, "chains", "threads", "rng", *_CLUSTER, *_OF_MARGINALS, *_CHECKPOINT)
_WEIGHTED = ("seconds", "accuracy", "draws", "threads", "rng")
_MEAN_FIELD = ("sweeps", "seconds", "damping", "parallel")
_BELIEF = ("sweeps", "seconds", "damping", "kind", "schedule", "weight")
# Parameters of kernels, by the method that takes them.
_KERNEL = {"blocks": ("entries",), "cutset": ("width",), "mini-bucket": ("entries",)}
_NO_SEARCH = ("warmup", "accuracy", *_CLUSTER, *_OF_MARGINALS)
# Options that only some methods have a use for. With "auto", those of sampling say what to do if an exact
# solution does not fit.
_USED = {
    **dict.fromkeys(METHODS, _SAMPLING),
    "exact": (),
    "mean-field": _MEAN_FIELD,
    "bp": _BELIEF,
    **dict.fromkeys(WEIGHTED, _WEIGHTED),
    **{method: (*(_WEIGHTED if method in WEIGHTED else _SAMPLING), *names) for method, names in _KERNEL.items()},
    **dict.fromkeys(("annealed", "proved"), tuple(n for n in _SAMPLING if n not in _NO_SEARCH)),
}

_PROJECTED = (
    "these are parts of the best state of all sites; the best state of these sites alone, with all others "
    "summed out, is another question: --task MMAP --max {}"
)
_LAYOUTS = {".json": "json", ".csv": "csv", ".uai": "uai", ".txt": "table"}  # by the end of a name
_MOST_IN_JSON = 100_000  # sites of a stored model


@click.command("infer")
@model_argument
@format_option
@evidence_option
@observe_option
@click.option(
    "--task",
    type=_TASKS,
    default="MAR",
    help="Marginals, most probable state, log-partition, or best states of some sites (MMAP).",
)
@click.option("--max", "maximise", metavar="SITES", help="Sites to maximise over, the rest summed out (MMAP).")
@click.option("--method", type=Choice(list(METHODS)), default="auto", show_default=True)
@click.option("--no-exact", is_flag=True, help="Answer as if an exact solution did not fit (auto).")
@scan_option
@click.option("--sweeps", type=COUNT, help="Sweeps of each chain after the warmup.")
@click.option("--draws", type=COUNT, help="Number of weighted draws.")
@click.option("--seconds", type=POSITIVE, help="Time limit of sampling. [default: 10, unless --sweeps or --draws]")
@click.option("--accuracy", type=BELOW_ONE, default=0.01, show_default=True, help="Largest error to allow (MAR).")
@click.option("--best", type=COUNT, default=1, metavar="N", help="Give the N best states (MAP).")
@click.option("--warmup", type=click.IntRange(0), help="Sweeps before recording. [default: a tenth]")
@click.option("--chains", type=COUNT, default=4, show_default=True)
@click.option("--entries", type=COUNT, help="Most entries of a table (blocks, mini-bucket).")
@click.option("--width", type=POSITIVE, help="log2 of the most entries of a clique table (cutset).")
@click.option("--damping", type=UP_TO_ONE, help="Step of mean field and bp, in (0, 1]. [default: 1]")
@click.option("--parallel", is_flag=True, help="Mean field renews all sites at once.")
@click.option(
    "--kind",
    type=Choice(["sum", "max", "tree-reweighted", "fractional"]),
    help="Messages of bp. [default: max on MAP, sum otherwise]",
)
@click.option("--schedule", type=Choice(["residual", "sweep"]), help="Order of messages (bp). [default: residual]")
@click.option("--weight", type=POSITIVE, help="Power of factors (bp, fractional). [default: 0.5]")
@click.option("--threads", type=COUNT, help="[default: all cores]")
@click.option(
    "--on",
    metavar="CLUSTER",
    help="Run chains on the workers of a Dask scheduler (tcp://host:8786), of processes of this machine "
    "(local-dask), or of Ray (ray); the numbers are the same.",
)
@click.option("--partitions", type=COUNT, help="Share the sites of a chain, or its rungs, out over workers (--on).")
@click.option(
    "--rng",
    type=SEED,
    help="Seed. With --sweeps it repeats a run exactly; a run that was limited by time is repeated by the "
    "--sweeps and --warmup of the plan in its JSON.",
)
@click.option("--query", metavar="SITES", help="Only these sites, separated by commas.")
@click.option("--all", "show_all", is_flag=True, help="Show every site in the table.")
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.option(
    "--format",
    "layout",
    type=Choice(["table", "json", "uai", "csv"]),
    help="[default: as the name after -o ends; otherwise table]",
)
@click.option(
    "-o",
    "--output",
    "out",
    type=OUTPUT,
    help="Write the answer there instead of stdout: .json, .csv, .uai or .txt (table), also with .gz.",
)
@click.option(
    "--to",
    "folder",
    type=FOLDER,
    metavar="FOLDER",
    help="Count draws in files of this folder instead of in memory; marginals.npy has the probabilities.",
)
@click.option("--checkpoint", type=FILE_OUTPUT, help="Save the run there at intervals, to be resumed.")
@click.option(
    "--checkpoint-every",
    type=NOT_NEGATIVE,
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between saves; the first comes after 2 seconds at most.",
)
@click.option("--resume", is_flag=True, help="Continue from the checkpoint.")
@click.option("--no-second-look", is_flag=True, help="Do not compare the run with short chains from other starts.")
@click.option("--verify", is_flag=True, help="Compare all checksums of a stored model (.pairs) first.")
@click.option("--strict", is_flag=True, help="Exit with 4 unless the answer is exact or has converged.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no verdict on stderr.")
def command(**given: Any) -> int:
    """Posterior marginals, a most probable state, or the log-partition function of MODEL.

    MODEL is a .uai, .bif, .xmlbif, .bqm, .coo, .rudy (max-cut) or .edges file, optionally gzipped, "-" for
    stdin, an example that comes with gibbsite: alarm, asia or child, or a folder made by gibbsite convert
    (.pairs), which is sampled without being loaded. The method is chosen by itself: exact
    if that is cheap, otherwise Gibbs sampling, or annealing for a most probable state, with a verdict on how
    far to trust it; options of sampling say what to do then.
    "herded" and "herded-shared" count instead of drawing, "quasi" is driven by a low-discrepancy sequence
    (MAR); "blocks" draws many sites jointly, and "cutset" sums most of them out, for models whose sites
    depend strongly on each other; "swendsen-wang" and "wolff" move clusters of sites that agree;
    "perfect" takes independent draws without bias, where couplings are weak; "poisson" reads minibatches of
    factors, for models whose sites have thousands of them; "tempered" exchanges states between temperatures,
    for models with several modes, and estimates the log-partition function (MAR, PR); "forward" draws
    Bayesian networks from parents to children and weighs draws by the evidence, "mini-bucket" draws from
    tables whose size is limited, and bounds the log-partition function on both sides (MAR, PR);
    "annealed" looks for a most probable state (MAP, MMAP), and "proved" has toulbar2 prove that there is
    no better one (pip install gibbsite[proved]); "mean-field" gives approximate marginals (MAR) and a lower
    bound of the log-partition function (PR); "bp", belief propagation, gives approximate marginals,
    log-partition function (an upper bound with --kind tree-reweighted) and a probable state (MAP).

    Ctrl-C or SIGTERM ends a run in good order: what there is is saved and written, with exit code 130.
    """
    from gibbsite.cli import answers
    from gibbsite.errors import ConvergenceWarning
    from gibbsite.inference import infer
    from gibbsite.models import FactorGraph

    layout = _check_options(given)
    model = load_any(given["model"], given["from_format"], given["verify"])
    observed = observe(model, given["evidence"], given["observe"])
    sites = read_sites(model, given["query"])
    stored = not isinstance(model, FactorGraph)
    folder = given["folder"]
    if stored and layout == "json" and sites is None and folder is None and model.n_sites > _MOST_IN_JSON:
        raise click.UsageError(
            f"--json holds all of its {model.n_sites:,} sites in memory; name some with --query, write them "
            "with --format csv, or keep them in files with --to FOLDER."
        )
    if folder is not None and given["method"] == "auto" and not stored:
        raise click.UsageError("--to needs a method that samples; add --method gibbs.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the verdict is printed below
        answer = infer(
            observed,
            given["task"],
            method=_read_method(given),
            seconds=given["seconds"],
            sweeps=given["sweeps"],
            accuracy=given["accuracy"],
            best=given["best"],
            query=sites if given["task"] == "MAR" else None,
            exact=not given["no_exact"],
            progress=False if given["quiet"] else None,
            **({} if given["maximise"] is None else {"maximise": read_sites(model, given["maximise"])}),
            **_run_options(given),
            **_record(given, sites if stored else None),
        )
    try:
        deliver(
            given["out"] or "-",
            lambda out: answers.write(answer, model, layout, sites, given["show_all"], out, folder),
            text=True,
        )
    finally:
        if not given["quiet"]:
            say(answer.line())
            for reason in answer.reasons:
                say(reason, "  ")
            for remark in answer.remarks:
                say(remark, "note: ")
            if given["task"] == "MAP" and sites is not None and not set(model.sites) <= {*sites}:
                say(_PROJECTED.format(",".join(sites)), "note: ")
    if answer.interrupted:
        return 130
    return 4 if given["strict"] and not answer.converged else 0


def _check_options(given: dict[str, Any]) -> str:
    """Refuse options that contradict each other or have no effect; return the layout of the answer."""
    task, method = given["task"], given["method"]
    if task not in METHODS[method]:
        others = ", ".join(name for name, tasks in METHODS.items() if task in tasks)
        raise click.UsageError(f"--method {method} does not answer {task}; choose one of {others}.")
    parameters = {name for names in _KERNEL.values() for name in names}
    unused = {*_SAMPLING, *_MEAN_FIELD, *_BELIEF, *_WEIGHTED, *parameters} - set(_USED[method])
    refuse([name for name in given if name in unused], f"with --method {method}")
    if task != "MAR":
        refuse(["accuracy", *_OF_MARGINALS], f"on --task {task}")
    if task not in ("MAP", "MMAP"):
        refuse(["best"], f"on --task {task}")
    if task != "MMAP":
        refuse(["maximise"], f"on --task {task}")
    elif given["maximise"] is None:
        raise click.UsageError("--task MMAP needs --max, the sites to maximise over, separated by commas.")
    if given["checkpoint"] is None:
        for name in ("--resume", "--checkpoint-every"):
            if is_given(name[2:].replace("-", "_")):
                raise click.UsageError(f"{name} needs --checkpoint, the file to save to and continue from.")
    if given["as_json"] and is_given("layout") and given["layout"] != "json":
        raise click.UsageError(f"--json and --format {given['layout']} contradict each other; give one.")
    layout: str = "json" if given["as_json"] else given["layout"] or _layout_of(given["out"])
    if task == "PR":
        refuse(["query"], "on --task PR")
    if layout in ("uai", "csv"):
        refuse(["best"], f"with --format {layout}, which holds one state; use json or table")
    if layout == "uai":
        refuse(["query"], "with --format uai, which lists all sites")
    if layout != "table" or task == "PR" or given["query"] is not None:
        refuse(["show_all"], "but on tables of all sites")
    return layout


def _layout_of(out: str | None) -> str:
    """Return the layout that the name of a file tells; refuse a name with an ending that tells none."""
    suffix = os.path.splitext((out or "").removesuffix(".gz"))[1]
    if suffix and suffix.lower() not in _LAYOUTS:
        raise click.UsageError(
            f"nobody knows how to write the answer to a file that ends in {suffix}; end its name in "
            f"{', '.join(_LAYOUTS)}, or say with --format what it should hold."
        )
    return _LAYOUTS.get(suffix.lower(), "table")


def _read_method(given: dict[str, Any]) -> Any:
    """Return the method, or its kernel where parameters are given for it."""
    method = given["method"]
    chosen = {name: given[name] for name in _KERNEL.get(method, ()) if is_given(name)}
    if not chosen:
        return method
    from dataclasses import replace

    if method in WEIGHTED:
        from gibbsite.inference.importance.registry import make_proposal

        return replace(make_proposal(method), **chosen)  # type: ignore[type-var]
    from gibbsite.kernels.registry import make_kernel

    return replace(make_kernel(method), **chosen)


def _record(given: dict[str, Any], sites: list[str] | None) -> dict[str, Any]:
    """Return what is recorded, if it is not all marginals in memory: those in a folder, or of some sites."""
    if given["folder"] is None and (sites is None or given["task"] != "MAR"):
        return {}
    from gibbsite.sampling.record import Marginals

    if given["folder"] is None:
        return {"record": Marginals(sites=sites)}
    # averages of conditionals would take eight bytes of memory for each site and chain
    return {"record": Marginals(rao_blackwell=False, to=given["folder"])}


def _run_options(given: dict[str, Any]) -> dict[str, Any]:
    """Collect the arguments of the sampler that were given."""
    names = ("warmup", "chains", "draws", "threads", "rng", "on", "partitions", "parallel", *_CHECKPOINT, *_BELIEF[2:])
    chosen = {name: given[name] for name in names if is_given(name)}
    if given["no_second_look"]:
        chosen["second_look"] = False
    if given["scan"] is not None:
        chosen["scan"] = read_scan(given["scan"])
    return chosen
