"""``gibbsite.learn.fit_tables``: conditional tables of a network from cases, which may have missing cells."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

import numpy as np

from gibbsite._common.arguments import check_integer, check_number, checked
from gibbsite._common.arrays import Floats
from gibbsite._common.notice import warn_user
from gibbsite._common.wording import Text, argument, unknown
from gibbsite._numba.jit import announcing
from gibbsite.errors import ArgumentError, ConvergenceWarning
from gibbsite.learn.networks.alignment import align_states
from gibbsite.learn.networks.augmentation import Length, sample_tables
from gibbsite.learn.networks.cases import Cases, read_cases
from gibbsite.learn.networks.expectation import Ascent, Expectations, hidden_sites, maximise, start_tables
from gibbsite.learn.networks.fitted import TableFit
from gibbsite.learn.networks.layout import Layout, count_families, make_layout, normalised, row_of_entries
from gibbsite.learn.networks.priors import read_prior
from gibbsite.learn.networks.structure import Parents, read_structure
from gibbsite.learn.networks.verdict import judge_draws
from gibbsite.results.answer import Diagnostics
from gibbsite.sampling.executor import read_threads
from gibbsite.sampling.plan import read_entropy
from gibbsite.sampling.progress import Status, catch_interrupt, choose_progress

METHODS = ("auto", "counts", "em", "gibbs")
_STARTS = 5  # of EM with hidden sites
_MOST_KEPT = 1 << 26  # numbers kept of a Gibbs run


@checked
def fit_tables(
    data: Any,
    structure: Any,
    *,
    prior: Any = None,
    states: Mapping[str, Any] | None = None,
    weights: Any = None,
    method: str = "auto",
    starts: int | None = None,
    iterations: int = 1000,
    tolerance: float = 1e-7,
    sweeps: int = 1000,
    warmup: int | None = None,
    chains: int = 4,
    rng: Any = 0,
    threads: int | None = None,
    progress: Any = None,
) -> TableFit:
    """Learn the conditional tables of a Bayesian network from cases.

    Parameters
    ----------
    data : pandas.DataFrame, mapping of str to columns, path of a CSV file, or Cases
        See :func:`read_cases`. Columns that the network does not have are left out.
    structure : network, directed FactorGraph, mapping of str to parents, list of edges, or StructureFit
        The parents of each site; a model also says which states sites have.
    prior : str, float or mapping, optional
        None or "ml" for maximum likelihood; a Dirichlet prior otherwise: "bdeu" (likelihood equivalent, with
        equivalent sample size 1, "bdeu:10" or 10.0 for another), "k2" (one pseudocount for each entry), "jeffreys" (a
        half), or pseudocounts by site.
    states : mapping of str to states, optional
        States of some sites. Sites without a column are hidden.
    weights : str or array, optional
        How often each case counts, or the name of the column that says so.
    method : {"auto", "counts", "em", "gibbs"}
        "counts" needs complete cases; "em" climbs to the best tables given the observed cells; "gibbs" draws tables and
        missing cells together. "auto" counts if no cell is missing, and uses EM otherwise.
    starts : int, optional
        Number of starts of EM, by default 5 if a site is hidden, otherwise 1.
    iterations, tolerance
        EM ends after this number of steps, or when the objective rises by less than the tolerance for each case.
    sweeps, warmup, chains : int
        Recorded sweeps of each chain of "gibbs", sweeps before (by default a quarter of them), and number of chains.
    rng : int, Generator or SeedSequence
        Seed.
    threads : int, optional
        Number of threads for chains.
    progress : optional
        As in :func:`gibbsite.sample`.

    Returns
    -------
    TableFit

    Notes
    -----
    Cells are taken to be missing at random: whether a cell is missing depends on observed cells only.

    With a prior, ``model`` has the posterior means of tables, for "em" those of the last expected counts.

    Examples
    --------
    >>> import gibbsite as gs
    >>> data = {"rain": ["no", "yes", "no", "yes"], "grass": ["dry", "wet", "dry", "dry"]}
    >>> fit = gs.learn.fit_tables(data, [("rain", "grass")], prior="k2")
    >>> fit.table("grass").tolist(), fit.sd("grass").round(3).tolist()
    ([[0.75, 0.25], [0.5, 0.5]], [[0.194, 0.194], [0.224, 0.224]])

    The same with a missing cell, by Gibbs sampling of tables and cells:

    >>> data["rain"][1] = None
    >>> fit = gs.learn.fit_tables(data, [("rain", "grass")], prior="k2", method="gibbs", rng=1, progress=False)
    >>> fit.converged, fit.draws("grass").shape
    (True, (1000, 2, 2))
    """
    begun = time.monotonic()
    if method not in METHODS:
        raise ArgumentError(unknown("the method", method, METHODS))
    parents, known = read_structure(structure)
    cases = _choose(data, parents, known, states or {}, weights)
    layout = make_layout(cases.names, parents, cases.cards)
    pseudocounts, called = read_prior(prior, layout, cases.names)
    missing = cases.n_missing
    if method == "auto":
        method = "em" if missing else "counts"
    if method == "counts" and missing:
        site, row = (int(found[0]) for found in np.nonzero(cases.codes < 0))
        raise ArgumentError(
            f"{missing:,} cells are missing, the first of {cases.names[site]!r} in row {row + 1}; use "
            f"{argument('method', 'em')} or {argument('method', 'gibbs')}."
        )
    kept: Floats | None = None
    path: tuple[float, ...] = ()
    if method == "counts":
        counts = count_families(layout, cases.codes, cases.weights)
        tables = normalised(layout, counts + pseudocounts)
        sds = _spread(layout, counts, pseudocounts, tables)
        diagnostics = _judge_counts(layout, counts, pseudocounts, cases.names)
    elif method == "em":
        joined = cases.joined()
        hidden = hidden_sites(cases.codes)
        count = check_integer("starts", starts, 1) if starts is not None else _STARTS if hidden else 1
        steps, small = check_integer("iterations", iterations, 1), check_number("tolerance", tolerance, zero=True)
        expectations = Expectations(layout, joined.codes, joined.weights)
        found = _climb(layout, expectations, pseudocounts, count, steps, small, rng, bool(hidden), progress)
        best = max(found, key=lambda one: one.path[-1])
        counts, tables, path = best.counts, best.tables, best.path
        sds = np.full(tables.size, np.nan)
        diagnostics = _judge_em(best, found)
        if not diagnostics.converged:
            warn_user(" ".join(diagnostics.reasons), ConvergenceWarning)
    else:
        if not (pseudocounts > 0.0).all():
            raise ArgumentError(
                f"{argument('method', 'gibbs')} draws from the posterior of the tables, which needs a prior for "
                f"every row; give {argument('prior', 'bdeu')}."
            )
        if (np.modf(cases.weights)[0] != 0.0).any():
            raise ArgumentError(f"{argument('method', 'gibbs')} takes cases whose weights are whole numbers.")
        cases = _repeated(cases)
        length, chains = _length(sweeps, warmup, int(layout.start[-1]), chains)
        kept = _sample(layout, cases, pseudocounts, length, chains, rng, threads, progress)
        relabelled = align_states(layout, cases.codes, pseudocounts, kept)
        tables = kept.mean(axis=(0, 1))
        sds = kept.std(axis=(0, 1))
        expectations = Expectations(layout, cases.codes, cases.weights)
        counts, _ = expectations(tables)
        diagnostics = _judge_draws(layout, cases.names, kept, relabelled)
        if not diagnostics.converged:
            warn_user(f"{diagnostics.line()}. {' '.join(diagnostics.reasons)}", ConvergenceWarning)
    likelihood = _likelihood(layout, cases, tables, counts, method)
    return TableFit(
        sites=cases.names,
        states=cases.states,
        parents={name: tuple(parents[name]) for name in cases.names},
        method=method,
        prior=called,
        log_likelihood=likelihood,
        path=path,
        n_cases=cases.n_cases,
        n_missing=missing,
        total=cases.total,
        diagnostics=diagnostics,
        seconds=time.monotonic() - begun,
        layout=layout,
        tables=tables,
        sds=sds,
        counts=counts,
        pseudocounts=pseudocounts,
        kept=kept,
    )


def _choose(data: Any, parents: Parents, known: Mapping[str, Any], states: Mapping[str, Any], weights: Any) -> Cases:
    """Read the columns of the network, in the order of the structure; only ``states`` may be those of hidden sites."""
    if not parents:
        raise ArgumentError(f"{argument('structure')} has no sites; name them, those without parents as well.")
    for name in states:
        if name not in parents:
            raise ArgumentError(unknown("the site", name, list(parents)))
    cases = read_cases(data, states={**known, **states}, weights=weights)
    found = hidden_sites(cases.codes) if cases.n_missing else []
    empty = {cases.names[k] for k in found} - states.keys()
    lost = [name for name in parents if name not in cases.names or name in empty]
    if lost:
        raise ArgumentError(f"{argument('data')} has no cells of {lost[0]!r}; if this site is hidden, give its states.")
    order = [cases.names.index(name) for name in parents]
    codes = np.ascontiguousarray(cases.codes[order])
    return Cases(tuple(parents), tuple(cases.states[k] for k in order), codes, cases.weights)


def _repeated(cases: Cases) -> Cases:
    """Return cases of weight one, each as often as its weight says."""
    if (cases.weights == 1.0).all():
        return cases
    rows = np.repeat(np.arange(cases.n_cases), cases.weights.astype(np.int64))
    codes = np.ascontiguousarray(cases.codes[:, rows])
    return Cases(cases.names, cases.states, codes, np.ones(rows.size))


def _spread(layout: Layout, counts: Floats, pseudocounts: Floats, tables: Floats) -> Floats:
    """Return the posterior standard deviations of tables, or standard errors without a prior."""
    rows = row_of_entries(layout)
    total = np.bincount(rows, counts + pseudocounts)[rows]
    extra = np.bincount(rows, pseudocounts)[rows] > 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.sqrt(tables * (1.0 - tables) / (total + extra))
    found[total == 0.0] = np.nan
    return found


def _judge_counts(layout: Layout, counts: Floats, pseudocounts: Floats, names: tuple[str, ...]) -> Diagnostics:
    rows = row_of_entries(layout)
    empty = np.bincount(rows, counts) == 0.0
    unknown_rows = int((empty & (np.bincount(rows, pseudocounts) == 0.0)).sum())
    figures = {"empty_rows": int(empty.sum()), "rows": int(empty.size)}
    reasons: tuple[str, ...] = ()
    if unknown_rows:
        k = int(np.argmax(empty))
        site = int(np.searchsorted(layout.start, int(np.argmax(rows == k)), side="right")) - 1
        reason = Text(
            f"{unknown_rows:,} of {empty.size:,} rows of tables, the first of {names[site]}, have no cases and are "
            f"uniform; give a prior ({argument('prior', 'bdeu')}) to know their uncertainty."
        )
        reasons = (reason,)
    text = "exact: " + ("posterior of the tables" if pseudocounts.any() else "tables of maximum likelihood")
    return Diagnostics("exact", not reasons, reasons, figures, text)


def _climb(
    layout: Layout,
    expectations: Expectations,
    pseudocounts: Floats,
    starts: int,
    iterations: int,
    tolerance: float,
    rng: Any,
    hidden: bool,
    progress: Any,
) -> list[Ascent]:
    """Climb from several starts."""
    show, found = choose_progress(progress), []
    with closing(show), announcing(show.say, "the fit"):
        for stream in np.random.SeedSequence(read_entropy(rng)).spawn(starts):
            noise = 0.9 if hidden else 0.1
            start = start_tables(layout, expectations, pseudocounts, np.random.default_rng(stream), noise)
            found.append(maximise(layout, expectations, pseudocounts, start, iterations, tolerance))
    return found


def _judge_em(best: Ascent, found: list[Ascent]) -> Diagnostics:
    top, scale = best.path[-1], 0.1 + 1e-6 * abs(best.path[-1])
    as_good = sum(one.path[-1] > top - scale for one in found)
    reasons = []
    if not best.settled:
        reasons.append(
            Text(f"EM was ended after {len(best.path):,} steps; more are needed ({argument('iterations')}).")
        )
    if len(found) > 1 and as_good < 2:
        reasons.append(
            Text(
                f"the best tables were found from one start of {len(found)}: there may be better ones; use more "
                f"{argument('starts')}."
            )
        )
    figures = {"steps": len(best.path), "starts": len(found), "found": as_good}
    word = "not converged" if reasons else "converged"
    text = f"{word}: EM, {len(best.path):,} steps; found from {as_good} of {len(found)} starts"
    return Diagnostics("best found", not reasons, tuple(reasons), figures, text)


def _length(sweeps: Any, warmup: Any, entries: int, chains: Any) -> tuple[Length, int]:
    draws, chains = check_integer("sweeps", sweeps, 1), check_integer("chains", chains, 1)
    before = draws // 4 if warmup is None else check_integer("warmup", warmup, 0)
    thin = max(1, -(-draws * chains * entries // _MOST_KEPT))
    return Length(before, max(draws // thin, 1), thin), chains


def _sample(
    layout: Layout,
    cases: Cases,
    pseudocounts: Floats,
    length: Length,
    chains: int,
    rng: Any,
    threads: int | None,
    progress: Any,
) -> Floats:
    """Draw tables; show how far the slowest chain is."""
    streams = np.random.SeedSequence(read_entropy(rng)).spawn(chains)
    begun, lock, done = time.monotonic(), threading.Lock(), [0]
    total = length.warmup + length.draws * length.thin
    show = choose_progress(progress)
    with closing(show), catch_interrupt(show.say) as stop, announcing(show.say, "the sampler"):

        def reported(sweep: int) -> None:
            if sweep > done[0] and sweep % 10 == 0 and lock.acquire(blocking=False):
                done[0] = sweep
                phase = "warmup" if sweep <= length.warmup else "sampling"
                show.show(Status(phase, sweep, total, time.monotonic() - begun, np.inf, chains))
                lock.release()

        stopped: Callable[[], bool] = lambda: stop.up  # noqa: E731
        return sample_tables(
            layout, cases.codes, pseudocounts, length, streams, read_threads(threads), reported, stopped
        )


def _judge_draws(layout: Layout, names: tuple[str, ...], kept: Floats, relabelled: list[int]) -> Diagnostics:
    def name(entry: int) -> str:
        return f"the table of {names[int(np.searchsorted(layout.start, entry, side='right')) - 1]}"

    figures: dict[str, Any] = {}
    if relabelled:
        figures["relabelled"] = tuple(names[i] for i in relabelled)
    return judge_draws(kept, name, figures)[0]


def _likelihood(layout: Layout, cases: Cases, tables: Floats, counts: Floats, method: str) -> float:
    if method == "counts":
        seen = counts > 0.0
        return float(counts[seen] @ np.log(tables[seen]))
    joined = cases.joined()
    return Expectations(layout, joined.codes, joined.weights)(tables)[1]
