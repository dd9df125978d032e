"""Options of ``gibbsite infer`` that ask something else than marginals: events, next observations, interventions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import click

from gibbsite.cli.answers import as_text_page
from gibbsite.cli.inputs import SITE_STATE, SITES, read_findings, read_sites, split_states
from gibbsite.cli.outputs import deliver, echo
from gibbsite.cli.parameters import INPUT, PICTURE, is_given
from gibbsite.cli.wording import spelled
from gibbsite.formats.parsing.plain_json import write_json
from gibbsite.formats.parsing.text import save
from gibbsite.models import FactorGraph
from gibbsite.results.answer import Answer

#: Options by the names of their parameters, in groups for the help. Several events and joints may be asked for at once;
#: of the other questions one at a time.
QUESTIONS = ("event", "joint", "next_target", "conflict", "support", "sensitivity", "effect", "expect", "compare")
GROUPS = {
    "Questions": (*QUESTIONS, "do"),
    "More of a question": ("candidates", "cost", "plan", "hidden", "plot"),
    "Many cases": ("cases",),
}
_MOST_LINES = 40  # of probabilities
_OF = {
    "candidates": "next_target",
    "cost": "next_target",
    "plan": "next_target",
    "hidden": "effect",
    "plot": "sensitivity",
}

_OPTIONS = (
    click.option(
        "--event", multiple=True, metavar="TEXT", help="Probability of an event: 'A=yes and (B=low or C!=3)'."
    ),
    click.option("--joint", multiple=True, type=SITES, help="Joint probabilities of sites, separated by commas."),
    click.option("--next", "next_target", metavar="TARGET", help="Rank observations by what they tell about TARGET."),
    click.option("--candidates", type=SITES, help="Sites that could be observed (--next). [default: all]"),
    click.option("--cost", multiple=True, metavar="SITE=NUMBER", help="Cost of observing a site (--next)."),
    click.option("--plan", type=click.IntRange(1, 3), help="Plan up to three observations, as a tree (--next)."),
    click.option("--conflict", is_flag=True, help="How far the observations contradict each other."),
    click.option("--support", type=SITE_STATE, help="What each observation contributes to this conclusion."),
    click.option("--sensitivity", type=SITE_STATE, help="How this probability depends on the entries of tables."),
    click.option("--plot", type=PICTURE, metavar="FILE", help="Plot the entries that matter most (--sensitivity)."),
    click.option("--do", multiple=True, type=SITE_STATE, help="Set a site to a state, whatever its parents are."),
    click.option("--effect", type=SITES, metavar="CAUSE,EFFECT", help="Effect of setting a site on another one."),
    click.option("--hidden", type=SITES, help="Sites that are not in the data (--effect)."),
    click.option("--expect", metavar="TEXT", help="Mean of a function of numeric labels, such as '2*A + B'."),
    click.option("--compare", multiple=True, type=SITE_STATE, help="Compare with other observations instead."),
    click.option("--cases", type=INPUT, help="Answer each row of a CSV or Parquet file."),
)


def question_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of questions."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def asks_question() -> bool:
    """Tell whether one of the options was given, and refuse combinations without a meaning."""
    asked = [name for name in QUESTIONS if is_given(name)]
    if len([name for name in asked if name not in ("event", "joint")]) > 1 or (
        len(asked) > 1 and not set(asked) <= {"event", "joint"}
    ):
        words = " and ".join(_spell(name) for name in asked[:2])
        raise click.UsageError(f"{words} are two questions; ask one at a time.")
    for name, of in _OF.items():
        if is_given(name) and not is_given(of):
            raise click.UsageError(f"{_spell(name)} belongs to {_spell(of)}; give both, or leave it out.")
    if is_given("cases") and asked:
        raise click.UsageError(f"--cases answers with marginals or states; leave {_spell(asked[0])} out.")
    return bool(asked)


def _spell(name: str) -> str:
    return {"next_target": "--next"}.get(name, f"--{name}")


def answer_question(given: Mapping[str, Any], model: FactorGraph, how: dict[str, Any], layout: str) -> int:
    """Answer the question that was asked, print or write the answer, and return the exit code.

    ``how`` are the arguments of :func:`gibbsite.infer` that were given.
    """
    import gibbsite as gs

    if layout in ("csv", "uai"):
        raise click.UsageError(f"the answer to a question is no {layout.upper()}; use .json, .md, .html or .txt.")
    evidence = read_findings(model, given["evidence"], given["observe"])
    soft = {site: finding for site, finding in evidence.items() if isinstance(finding, list | tuple | dict)}
    hard = {site: finding for site, finding in evidence.items() if site not in soft}
    if soft:
        model = model.observe(soft)
    how = {name: value for name, value in how.items() if value is not None}
    plain = {name: value for name, value in how.items() if name != "criteria"}
    questions = gs.questions
    if given["event"] or given["joint"]:
        joints = [read_sites(model, sites) or [] for sites in given["joint"]]
        observed = model.observe(hard) if hard else model
        found: Any = questions.ask(observed, given["event"], joints, **how)
    elif given["next_target"] is not None:
        found = _rank(given, model, hard, plain)
    elif given["conflict"]:
        found = questions.measure_conflict(model, hard, **plain)
    elif given["support"] is not None:
        site, state = _pair(model, given["support"], "--support")
        found = questions.weigh_evidence(model, hard, site, state, **plain)
    elif given["sensitivity"] is not None:
        site, state = _pair(model, given["sensitivity"], "--sensitivity")
        found = questions.analyse_sensitivity(model, site, state, hard)
        if given["plot"] is not None:
            gs.plots.plot_tornado(found, path=given["plot"])
    elif given["effect"] is not None:
        names = read_sites(model, given["effect"]) or []
        if len(names) != 2:
            raise click.UsageError("--effect takes two sites, CAUSE,EFFECT.")
        hidden = read_sites(model, given["hidden"]) or []
        found = questions.estimate_effect(model, names[0], names[1], hard, hidden, **plain)
    elif given["expect"] is not None:
        found = questions.compute_expectation(model.observe(hard) if hard else model, given["expect"], **how)
    else:
        other = {**hard, **split_states(model, given["compare"], "--compare")}
        found = questions.compare_evidence(model, hard, other, **how)
    return _deliver(given, found, layout)


def _rank(given: Mapping[str, Any], model: FactorGraph, hard: Mapping[str, Any], plain: Mapping[str, Any]) -> Any:
    import gibbsite as gs

    target = read_sites(model, given["next_target"]) or []
    if len(target) != 1:
        raise click.UsageError("--next takes one site.")
    costs = {}
    for item in given["cost"]:
        site, equals, number = item.rpartition("=")
        try:
            costs[site] = float(number)
        except ValueError:
            equals = ""
        if not equals:
            raise click.UsageError(f"--cost takes SITE=NUMBER, got {item!r}.")
    candidates = read_sites(model, given["candidates"])
    if given["plan"] is None:
        return gs.questions.rank_observations(model, target[0], hard, candidates, costs, **plain)
    return gs.questions.plan_observations(model, target[0], hard, candidates, costs, depth=given["plan"])


def _pair(model: FactorGraph, text: str, option: str) -> tuple[str, str]:
    ((site, state),) = split_states(model, [text], option).items()
    return site, state


def _deliver(given: Mapping[str, Any], found: Any, layout: str) -> int:
    """Write the answer as text, JSON or a page; return the exit code."""
    verdict = getattr(found, "diagnostics", None)
    reasons = tuple(getattr(found, "reasons", ())) or (verdict.reasons if verdict is not None else ())
    lines = found._lines(_MOST_LINES) if isinstance(found, Answer) else found.lines()
    text: str | Iterator[str]
    if layout == "json":
        text = write_json(to_data(found)) + "\n"
    elif layout in ("md", "html"):
        word = found.line() if hasattr(found, "line") else "exact" if not reasons else "not converged"
        text = as_text_page(layout, "gibbsite infer", [spelled(note) for note in (word, *reasons)], lines)
    else:
        text = "".join(f"{line}\n" for line in lines)
    deliver(given["out"] or "-", lambda out: save(out, text), text=True)
    if not given["quiet"]:
        if verdict is not None and hasattr(found, "line"):
            echo(spelled(found.line()), err=True)
        for reason in reasons:
            echo("  " + spelled(reason), err=True)
    if getattr(found, "interrupted", False):
        return 130
    return 4 if given["strict"] and reasons else 0


def to_data(found: Any) -> Any:
    """Return an answer as JSON values: attributes by name, what is infinite or not known as null.

    Examples
    --------
    >>> from gibbsite.inference.questions.observations import Candidate
    >>> to_data(Candidate("a", 0.5, 0.0, math.inf, {"yes": 1.0}))
    {'site': 'a', 'bits': 0.5, 'error': 0.0, 'cost': None, 'probabilities': {'yes': 1.0}}
    """
    if hasattr(found, "to_dict"):
        return found.to_dict()
    if is_dataclass(found) and not isinstance(found, type):
        return {each.name: to_data(getattr(found, each.name)) for each in fields(found)}
    if isinstance(found, Mapping):
        return {_key(key): to_data(value) for key, value in found.items()}
    if isinstance(found, float):
        return found if math.isfinite(found) else None
    if isinstance(found, str | int | bool) or found is None:
        return found
    if isinstance(found, Iterable):
        return [to_data(each) for each in found]
    return str(found)


def _key(key: Any) -> str:
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)
