"""The report of an answer: what was asked, what was found, and how sure it is."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.html import escape
from gibbsite._common.wording import Text
from gibbsite.errors import GibbsiteError
from gibbsite.results.report.page import (
    Cell,
    Column,
    Section,
    bar,
    definition_list,
    make_page,
    picture,
    save_page,
    sortable_table,
)
from gibbsite.results.wording import in_words, probability_text, with_sign

if TYPE_CHECKING:
    from gibbsite.results.answer import Answer
    from gibbsite.results.table import SiteTable

_ROWS = (2000, 500, 100)  # of the table of marginals: the most that leave the file small enough
_LARGEST = 1_400_000  # characters of the whole page
_MOST_NUMBERS = 20_000  # cells that are kept as JSON
_MOST_DRAWN = 300  # sites of a graph that is drawn
_TRACED = 4  # sites whose traces are shown

#: What figures of a verdict mean, in the order in which they are shown.
MEANINGS = {
    "rhat_max": (
        "largest R-hat",
        "Chains that started at different places are compared. 1 means that they agree; above 1.01 they do not yet.",
    ),
    "ess_min": (
        "least effective draws",
        "Draws that follow each other resemble each other. This is how many independent ones tell as much."
        " 400 are wanted.",
    ),
    "mcse_max": (
        "largest standard error",
        "How far a probability would typically change if the run were repeated. Four of them are a safe margin.",
    ),
    "n_draws": ("draws", "Recorded draws of each chain, or weighted draws in all."),
    "effective": ("effective weighted draws", "Draws with very unequal weights count as fewer equal ones."),
    "pareto_k": ("Pareto k", "How heavy the tail of the weights is. Above 0.7 a few draws decide everything."),
    "unseen": ("most that may be missed", "The largest probability that states which were never drawn may have."),
    "round_trips": ("round trips", "How often a replica went from the hottest temperature to the coldest and back."),
}


def write_answer(answer: Answer, path: str | Path, before: Answer | None = None, title: str | None = None) -> None:
    """Write the report of an answer; see :meth:`gibbsite.results.Answer.write_report`."""
    save_page(path, make_answer(answer, before, title))


def make_answer(answer: Answer, before: Answer | None = None, title: str | None = None) -> str:
    """Return the report of an answer as a page.

    Examples
    --------
    >>> import gibbsite as gs
    >>> asia = gs.example("asia")
    >>> page = make_answer(gs.infer(asia.observe({"xray": "yes"})), before=gs.infer(asia))
    >>> page.startswith("<!DOCTYPE html>"), "0.4887" in page, len(page) < 1_500_000
    (True, True, True)
    """
    page = ""
    for most in _ROWS:
        page = _make(answer, before, title, most)
        if len(page.encode()) <= _LARGEST:
            break
    return page


def _make(answer: Answer, before: Answer | None, title: str | None, most: int) -> str:
    model = getattr(answer, "model", None)
    sections = [Section("Question", [definition_list(_question(answer, model, before))])]
    sections += [Section("How sure", list(_how_sure(answer)))]
    if (found := _state_section(answer, most)) is not None:
        sections.append(found)
    if (found := _log_z_section(answer)) is not None:
        sections.append(found)
    if (found := _marginal_section(answer, before, most)) is not None:
        sections.append(found)
    if (found := _model_section(answer, model, before)) is not None:
        sections.append(found)
    if (found := _run_section(answer)) is not None:
        sections.append(found)
    sections.append(Section("Repeat it", list(_repeat(answer))))
    verdict = answer.diagnostics
    word = verdict.kind if verdict.kind == "exact" else verdict.word
    color = "good" if verdict.converged else "plain" if verdict.converged is None else "bad"
    line = answer.line()
    lead = [f'<p><span class="verdict {color}">{escape(word)}</span> {escape(line)}</p>']
    return make_page(title or _title(answer), lead, sections, _numbers(answer))


def _title(answer: Answer) -> str:
    what = {"MAP": "Most probable state", "MMAP": "Most probable state", "PR": "Log-partition function"}
    task = getattr(answer, "task", None)
    if task in what:
        return what[task]
    return "Marginals" if answer.marginals is not None else "Most probable state" if answer.assignment else "Answer"


def _question(answer: Answer, model: Any, before: Answer | None) -> Iterator[tuple[str, object]]:
    names = {
        "MAR": "marginals",
        "MAP": "most probable state",
        "PR": "log Z",
        "MMAP": "most probable state of some sites",
    }
    task = getattr(answer, "task", None)
    if task in names:
        yield "asked for", names[task]
    if model is not None:
        yield "model", repr(model if before is None else getattr(before, "model", model))
    evidence = answer._sites()[1]
    shown = ", ".join(f"{name} = {label}" for name, label in itertools.islice(evidence.items(), 60))
    yield "observed", (shown + (", ..." if len(evidence) > 60 else "")) or "nothing"
    for name in ("method", "kernel", "scan"):
        value = getattr(answer, name, None)
        if isinstance(value, str) and value:
            reason = getattr(answer, "reason", "") if name == "method" else ""
            yield name, f"{value} ({Text(reason)})" if reason else value
    seconds = getattr(answer, "seconds", None)
    if isinstance(seconds, int | float):
        yield "time", f"{seconds:.3g} s"


def _how_sure(answer: Answer) -> Iterator[str]:
    verdict = answer.diagnostics
    if verdict.kind == "exact":
        yield "<p>The answer is exact: it was computed from the whole distribution, up to rounding.</p>"
    elif verdict.converged:
        yield (
            "<p>Nothing speaks against these numbers: all checks passed. A probability is expected within four of its "
            "standard errors.</p>"
        )
    elif verdict.converged is None:
        yield f"<p>The answer is {_article(verdict.kind)}: how far it is off is not known.</p>"
    else:
        yield "<p>Do not rely on these numbers yet:</p>"
    if verdict.reasons:
        yield '<ul class="reasons">' + "".join(f"<li>{escape(reason)}</li>" for reason in verdict.reasons) + "</ul>"
    for remark in answer.remarks:
        yield f"<p>{escape(remark)}</p>"
    rows = []
    for name, (word, meaning) in MEANINGS.items():
        value = verdict.figures.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and verdict.kind != "exact":
            number = f"{value:,}" if isinstance(value, int) else in_words(float(value))
            rows.append(
                f"<tr><td>{escape(word)}</td><td class=number>{escape(number)}</td><td>{escape(meaning)}</td></tr>"
            )
    if rows:
        heads = "<tr><th scope=col>figure</th><th scope=col class=number>value</th><th scope=col>meaning</th></tr>"
        yield f'<div class="scroll"><table><thead>{heads}</thead><tbody>{"".join(rows)}</tbody></table></div>'


def _article(kind: str) -> str:
    return f"an {kind}" if kind[:1] in "aeiou" else f"a {kind}"


def _state_section(answer: Answer, most: int) -> Section | None:
    if answer.assignment is None or getattr(answer, "task", "MAP") not in ("MAP", "MMAP"):
        return None
    evidence = answer._sites()[1]
    rows = [
        [Cell(escape(name), name), Cell(escape(state), state), Cell("observed" if name in evidence else "")]
        for name, state in itertools.islice(answer.assignment.items(), most)
    ]
    pieces = [] if answer.log_potential is None else [f"<p>log-potential {in_words(answer.log_potential, '.10g')}</p>"]
    chance = getattr(answer, "log_probability_of", lambda log: None)
    if answer.log_potential is not None and (log := chance(answer.log_potential)) is not None:
        pieces.append(f"<p>probability of this state given the evidence: {math.exp(min(log, 0.0)):.6g}</p>")
    columns = [Column("site"), Column("state"), Column("")]
    return Section("Best state", pieces + sortable_table(columns, rows, "state", "The best state, site by site"))


def _log_z_section(answer: Answer) -> Section | None:
    if answer.log_z is None or not math.isfinite(answer.log_z):
        return None
    rows: list[tuple[str, object]] = [("log Z", f"{answer.log_z:.10g}{with_sign(answer.log_z_error or math.nan)}")]
    if answer.log_z_bounds is not None and answer.diagnostics.kind != "exact":
        low, high = answer.log_z_bounds
        rows.append(("certain bounds", f"{in_words(low, '.8g')} to {in_words(high, '.8g')}"))
    rows.append(("log10", f"{answer.log_z / math.log(10):.10g}"))
    return Section("Log-partition function", [definition_list(rows)])


def _marginal_section(answer: Answer, before: Answer | None, most: int) -> Section | None:
    table, errors = answer.marginals, answer.mcse
    if table is None or errors is None or getattr(answer, "task", "MAR") not in ("MAR",):
        return None
    evidence = answer._sites()[1]
    prior = None if before is None or not evidence else before.marginals
    names = [name for name in table if name not in evidence]
    numeric = [name for name in names if table.is_number(name)]
    pieces: list[str] = []
    if numeric:
        pieces += _numbers_table(answer, numeric, most)
    discrete = [name for name in names if name not in set(numeric)]
    if discrete:
        pieces += _states_table(answer, table, errors, discrete, prior, most)
    return Section("Marginals", pieces) if pieces else None


def _states_table(
    answer: Answer, table: SiteTable, errors: SiteTable, names: list[str], prior: Mapping[str, Any] | None, most: int
) -> list[str]:
    drawn = answer.diagnostics.kind == "estimate"
    rows: list[tuple[float, list[Cell]]] = []
    total = 0
    for name in names:
        states, known = table[name], errors[name]
        total += len(states)
        change = 0.0 if prior is None else max(abs(p - prior[name][state]) for state, p in states.items())
        for state, p in states.items():
            error = known[state] if drawn else 0.0
            shown = probability_text(p, error) if drawn else f"{p:.4f}"
            cells = [Cell(escape(name), name), Cell(escape(state), state), Cell(bar(p, error if error > 0 else 0.0))]
            cells += [Cell(escape(shown), repr(p))]
            if prior is not None:
                was = prior[name][state]
                cells += [Cell(f"{was:.4f}", repr(was)), Cell(f"{p - was:+.4f}", repr(abs(p - was)))]
            rows.append((change, cells))
    rows.sort(key=lambda row: -row[0])
    columns = [Column("site"), Column("state"), Column("bar"), Column("probability", True)]
    if prior is not None:
        columns += [Column("before", True), Column("change", True)]
    left = "" if total <= most else f"; the first {most:,} of {total:,} rows"
    order = ", the largest changes first" if prior is not None else ""
    margin = "; the red mark is four standard errors to both sides" if drawn else ""
    caption = f"Probabilities of the states of all sites{order}{margin}{left}"
    return sortable_table(columns, [cells for _, cells in rows[:most]], "marginals", caption)


def _numbers_table(answer: Answer, names: list[str], most: int) -> list[str]:
    """Return means and quantiles of sites that are numbers."""
    result: Any = getattr(answer, "result", answer)
    try:
        statistics = result.statistics(names[:most])
    except (GibbsiteError, AttributeError):
        return []
    found = list(next(iter(statistics.values()))) if statistics else []
    columns = [Column("name"), *(Column(each, True) for each in found)]
    rows = [
        [Cell(escape(name), name), *(Cell(escape(in_words(values[each], ".5g")), repr(values[each])) for each in found)]
        for name, values in statistics.items()
    ]
    return sortable_table(columns, rows, "numbers", "Means, standard deviations, errors and quantiles")


def _model_section(answer: Answer, model: Any, before: Answer | None) -> Section | None:
    whole: Any = model if before is None else getattr(before, "model", model)
    if whole is None or not hasattr(whole, "n_sites"):
        return None
    from gibbsite.results.plots.model import _lattice_shape, plot_model

    lattice = _lattice_shape(whole)
    if whole.n_sites > _MOST_DRAWN and lattice is None and not hasattr(whole, "plot"):
        return None
    shaded = whole is model and answer.marginals is not None and not whole.domains.numbers.any()
    values: Any = answer if shaded else None
    if not shaded and answer.marginals is not None and not whole.domains.numbers.any() and hasattr(whole, "groups"):
        values = {}
        for name in whole.sites:
            states = list(answer.marginals[name].values())
            values[name] = states[-1] if len(states) == 2 else max(states)
    text = "The model; shades show the probability of the last of two states, or of the most probable state"
    drawn = picture(lambda: plot_model(whole, color=values), text if values is not None else "The model")
    return Section("Model", drawn) if drawn else None


def _run_section(answer: Answer) -> Section | None:
    """Return pictures of a run: traces and convergence of its worst sites, ladders of temperatures."""
    from gibbsite.results.result import Result

    result: Any = getattr(answer, "result", answer)
    if not isinstance(result, Result):
        return None
    from gibbsite.results.plots import plot_convergence, plot_round_trips, plot_trace

    sites = _least_sure(result)
    drawn = picture(
        lambda: plot_trace(result, sites),
        "Traces of the least certain sites: a line or a row of colours for each chain. They should look alike.",
    )
    drawn += picture(
        lambda: plot_convergence(result),
        "Running means of the worst sites, R-hat and effective draws of all states, with the limits of the verdict",
    )
    drawn += _autocorrelation(result)
    if _is_tempered(result):
        drawn += picture(lambda: plot_round_trips(result), "The way of replicas between hot and cold temperatures")
    return Section("The run", drawn) if drawn else None


def _is_tempered(result: Any) -> bool:
    try:
        return result.tempering is not None
    except GibbsiteError:
        return False


def _autocorrelation(result: Any) -> list[str]:
    from gibbsite.results.plots import plot_autocorrelation

    for name in ("energy",):
        try:
            series = result.recorded[name]
        except (GibbsiteError, KeyError, AttributeError):
            continue
        values = np.asarray(series, float)
        if values.ndim == 2 and values.shape[1] > 20:
            return picture(
                lambda values=values: plot_autocorrelation(values),  # type: ignore[misc]
                "Autocorrelation of the energy: how long draws resemble earlier ones",
            )
    return []


def _least_sure(result: Any) -> list[str] | None:
    """Return the sites with the largest standard errors, those first; None where that is not known."""
    table = result.mcse
    if table is None:
        return None
    worst = []
    for name in itertools.islice(table, 20_000):
        if name in result.evidence:
            continue
        errors = [error for error in table[name].values() if math.isfinite(error)]
        worst.append((-max(errors, default=0.0), name))
    return [name for _, name in sorted(worst)[:_TRACED]] or None


def _repeat(answer: Answer) -> Iterator[str]:
    plan = getattr(answer, "plan", None)
    if plan is None:
        return
    data = plan if isinstance(plan, dict) else plan.to_dict()
    yield "<p>All that decided the numbers: versions, digest of the model, method, seed and budget.</p>"
    lines = json.dumps(data, indent=1, default=str, ensure_ascii=False).split("\n")
    yield "<pre>" + "\n".join(map(escape, lines)) + "</pre>"


def _numbers(answer: Answer) -> dict[str, Any]:
    """Return the numbers as JSON values, of very large models only the verdict."""
    verdict = answer.diagnostics
    found: dict[str, Any] = {
        "kind": verdict.kind,
        "converged": verdict.converged,
        "reasons": list(verdict.reasons),
        "log_z": _finite(answer.log_z),
        "log_z_error": _finite(answer.log_z_error),
        "log_potential": _finite(answer.log_potential),
        "evidence": {name: str(label) for name, label in itertools.islice(answer._sites()[1].items(), _MOST_NUMBERS)},
    }
    table, errors = answer.marginals, answer.mcse
    if table is not None and errors is not None and table.cells.size <= _MOST_NUMBERS:
        found["marginals"] = {name: {str(s): _finite(p) for s, p in table[name].items()} for name in table}
        found["mcse"] = {name: {str(s): _finite(p) for s, p in errors[name].items()} for name in table}
    if answer.assignment is not None and len(answer.assignment) <= _MOST_NUMBERS:
        found["assignment"] = {name: str(state) for name, state in answer.assignment.items()}
    return found


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
