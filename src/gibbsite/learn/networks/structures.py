"""``gibbsite.learn.learn_structure``: the structure of a network of highest score."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.arguments import check_integer, checked
from gibbsite._common.arrays import Bools
from gibbsite._common.notice import warn_user
from gibbsite._common.wording import argument, unknown
from gibbsite._numba.jit import announcing
from gibbsite.errors import ArgumentError, ModelError
from gibbsite.learn.networks.cases import Cases, read_cases
from gibbsite.learn.networks.equivalence import complete_pattern, to_matrix
from gibbsite.learn.networks.exact_search import MOST_SITES, find_best, score_all
from gibbsite.learn.networks.hill_climbing import Climb, Rules, climb, score_edges
from gibbsite.learn.networks.scores import make_data, read_score
from gibbsite.learn.networks.structure import Parents, check_acyclic, read_edges, read_structure
from gibbsite.results.answer import Diagnostics
from gibbsite.sampling.executor import read_threads
from gibbsite.sampling.plan import read_entropy
from gibbsite.sampling.progress import choose_progress

METHODS = ("auto", "hill", "exact")
_SMALL = 10  # sites up to which "auto" is exact
_MOST_PARENTS = 4  # of a site, in the exact search
_SAME = 1e-9  # relative difference of scores that are equal


@dataclass(frozen=True, eq=False)
class StructureFit:
    """A structure learned from cases.

    Attributes
    ----------
    sites : tuple of str
        The sites.
    parents : dict
        The parents of each site.
    score : float
        The score.
    scored_by : str
        What the score is called.
    method : str
        "hill" or "exact".
    cases : Cases
        The complete cases that were used.
    diagnostics : Diagnostics
        Whether the structure is known to be the best one.
    seconds : float
        Time taken.
    """

    sites: tuple[str, ...]
    parents: Parents
    score: float
    scored_by: str
    method: str
    cases: Cases
    diagnostics: Diagnostics
    seconds: float

    @property
    def edges(self) -> list[tuple[str, str]]:
        """All edges (parent, child)."""
        return [(parent, child) for child, each in self.parents.items() for parent in each]

    @property
    def undirected(self) -> list[tuple[str, str]]:
        """The edges whose direction no complete cases can tell."""
        pattern = complete_pattern(to_matrix(self.parents, self.sites))
        found = np.argwhere(np.triu(pattern & pattern.T)).tolist()
        return [(self.sites[i], self.sites[j]) for i, j in found]

    @property
    def converged(self) -> bool | None:
        """Whether the structure can be relied upon to be the best one; None where nothing is known."""
        return self.diagnostics.converged

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it cannot be relied upon, one sentence each."""
        return self.diagnostics.reasons

    def summary(self) -> str:
        """Return verdict and structure as readable text."""
        lines = [self.diagnostics.line(), *(f"  {reason}" for reason in self.reasons), self.statement]
        lines += [f"{child} | {', '.join(each)}" if each else child for child, each in self.parents.items()]
        return "\n".join(lines)

    @property
    def statement(self) -> str:
        """What was learned from what."""
        return (
            f"{len(self.edges)} edges of {len(self.sites)} sites from {self.cases.n_cases:,} cases, {self.scored_by} "
            f"{self.score:.10g}; {len(self.undirected)} edges have a direction that the cases cannot tell"
        )

    def __repr__(self) -> str:
        return f"StructureFit({self.statement})"

    def _repr_html_(self) -> str:
        from gibbsite._common.html import card, grid

        rows = [(child, ", ".join(each)) for child, each in self.parents.items()]
        return card("Structure", [self.statement], notes=self.reasons, table=grid(("site", "parents"), rows))


@checked
def learn_structure(
    data: Any,
    *,
    score: Any = "bic",
    method: str = "auto",
    max_parents: int | None = None,
    required: Any = (),
    forbidden: Any = (),
    start: Any = None,
    restarts: int = 10,
    tabu: int = 100,
    patience: int = 15,
    states: Mapping[str, Any] | None = None,
    weights: Any = None,
    incomplete: str = "refuse",
    rng: Any = 0,
    threads: int | None = None,
    progress: Any = None,
) -> StructureFit:
    """Find the structure of a Bayesian network with the highest score.

    Parameters
    ----------
    data : pandas.DataFrame, mapping of str to columns, path of a CSV file, or Cases
        See :func:`read_cases`; every column is a site.
    score : str or float
        "bic", "aic", "bdeu" (equivalent sample size 1; "bdeu:10" or 10.0 for another) or "k2".
    method : {"auto", "hill", "exact"}
        "hill" climbs by single edges; "exact" proves the best structure of at most 20 sites. "auto" is exact for at
        most 10 sites.
    max_parents : int, optional
        Most parents of a site: by default 4 for the exact search of more than 10 sites, otherwise any number.
    required, forbidden : list of (parent, child)
        Edges that the structure has, and edges that it does not have.
    start : structure, optional
        Where hill climbing starts, by default without edges but the required ones.
    restarts : int
        Number of further climbs, half of them from the best structure after random changes, half from random starts.
    tabu, patience : int
        Number of structures that are not visited again, and of steps without improvement after which a climb ends.
    states, weights
        As in :func:`fit_tables`.
    incomplete : {"refuse", "drop"}
        What is done with cases that have a missing cell.
    rng : int, Generator or SeedSequence
        Seed of restarts.
    threads : int, optional
        Number of threads of the exact search.
    progress : optional
        As in :func:`gibbsite.sample`.

    Returns
    -------
    StructureFit

    Notes
    -----
    Structures with the same colliders have the same BIC, AIC and BDeu: ``undirected`` lists the edges whose direction
    the cases cannot tell. Edges are not causes unless the design of the data says so.

    Examples
    --------
    >>> import gibbsite as gs
    >>> rng = np.random.default_rng(1)
    >>> rain, hose = rng.random((2, 500)) < 0.4
    >>> data = {"rain": rain, "hose": hose, "wet": (rain | hose) ^ (rng.random(500) < 0.05)}
    >>> found = gs.learn.learn_structure(data)
    >>> found.edges, found.diagnostics.line()
    ([('rain', 'wet'), ('hose', 'wet')], 'exact: no structure has a higher score')
    >>> gs.learn.fit_tables(data, found, prior="bdeu").table("wet").shape
    (2, 2, 2)
    """
    begun = time.monotonic()
    if method not in METHODS:
        raise ArgumentError(unknown("the method", method, METHODS))
    cases = complete_cases(read_cases(data, states=states, weights=weights), incomplete)
    scoring, called = read_score(score, cases)
    n = len(cases.names)
    if method == "auto":
        method = "exact" if n <= _SMALL else "hill"
    most = n - 1 if method == "hill" or n <= _SMALL else _MOST_PARENTS
    if max_parents is not None:
        most = min(check_integer("max_parents", max_parents, 0), n - 1)
    rules = read_rules(cases.names, required, forbidden, most)
    show = choose_progress(progress)
    with closing(show), announcing(show.say, "the search"):
        data_arrays = make_data(cases)
        if method == "exact":
            if n > MOST_SITES:
                raise ArgumentError(
                    f"{argument('method', 'exact')} takes at most {MOST_SITES} sites, and the data have {n}; use "
                    f"{argument('method', 'hill')}, or fewer columns."
                )
            limited = f" with at most {most} parents of a site" if most < n - 1 else ""
            edges, value = find_best(
                score_all(data_arrays, scoring, rules.allowed, rules.required, most, read_threads(threads))
            )
            text = f"exact: no structure{limited} has a higher score"
            diagnostics = Diagnostics("exact", True, (), {"max_parents": most}, text)
        else:
            begin = _read_start(cases.names, start, rules)
            limits = [check_integer(*each) for each in (("restarts", restarts, 0), ("tabu", tabu, 0))]
            found = climb(
                data_arrays,
                scoring,
                rules,
                begin,
                limits[0],
                max(3, n // 4),
                limits[1],
                check_integer("patience", patience, 0),
                np.random.SeedSequence(read_entropy(rng)),
            )
            edges, value, diagnostics = found.edges, found.score, _judge(found)
    parents = {name: tuple(cases.names[i] for i in np.flatnonzero(edges[:, k])) for k, name in enumerate(cases.names)}
    return StructureFit(cases.names, parents, value, called, method, cases, diagnostics, time.monotonic() - begun)


@checked
def score_structure(
    data: Any,
    structure: Any,
    *,
    score: Any = "bic",
    states: Mapping[str, Any] | None = None,
    weights: Any = None,
    incomplete: str = "refuse",
) -> float:
    """Return the score of a structure.

    Parameters
    ----------
    data, score, states, weights, incomplete
        As in :func:`learn_structure`.
    structure : network, FactorGraph, mapping of sites to parents, list of edges, or StructureFit
        The structure. Columns that it does not name have no parents.

    Returns
    -------
    float

    Examples
    --------
    >>> data = {"a": [0, 0, 1, 1], "b": [0, 0, 1, 1]}
    >>> round(score_structure(data, [("a", "b")]), 6), round(score_structure(data, {}), 6)
    (-4.85203, -6.931472)
    """
    parents, known = read_structure(structure)
    cases = complete_cases(read_cases(data, states={**known, **(states or {})}, weights=weights), incomplete)
    return score_edges(make_data(cases), read_score(score, cases)[0], to_matrix(parents, cases.names))


def complete_cases(cases: Cases, incomplete: str) -> Cases:
    """Return the cases without a missing cell; refuse others, or say how many are left out."""
    if incomplete not in ("refuse", "drop"):
        raise ArgumentError(unknown(f"the value of {argument('incomplete')}", incomplete, ("refuse", "drop")))
    lost = np.asarray((cases.codes < 0).any(axis=0))
    if not lost.any():
        return cases
    count = int(lost.sum())
    if count == cases.n_cases:
        raise ArgumentError("every case has a missing cell; leave out the columns in which many are missing.")
    if incomplete == "refuse":
        site, row = (int(found[0]) for found in np.nonzero(cases.codes < 0))
        raise ArgumentError(
            f"{count:,} of {cases.n_cases:,} cases have missing cells, the first that of {cases.names[site]!r} in row "
            f"{row + 1}; scores of structures need complete cases: {argument('incomplete', 'drop')} leaves the others "
            "out, which is right if cells are missing completely at random."
        )
    warn_user(
        f"{count:,} of {cases.n_cases:,} cases have missing cells and are left out, which is right only if cells are "
        "missing completely at random."
    )
    return cases.rows(~lost)


def read_rules(names: tuple[str, ...], required: Any, forbidden: Any, most: int) -> Rules:
    """Return which edges are allowed and required."""
    number = {name: k for k, name in enumerate(names)}
    n = len(names)
    needed, allowed = np.zeros((n, n), np.bool_), ~np.eye(n, dtype=np.bool_)
    for parent, child in read_edges("forbidden", forbidden, names):
        allowed[number[parent], number[child]] = False
    for parent, child in read_edges("required", required, names):
        if not allowed[number[parent], number[child]]:
            raise ArgumentError(f"the edge {parent!r} -> {child!r} is both required and forbidden.")
        needed[number[parent], number[child]] = True
    order = check_acyclic({name: [names[i] for i in np.flatnonzero(needed[:, k])] for k, name in enumerate(names)})
    del order
    allowed &= ~needed.T
    if needed.any() and int(needed.sum(axis=0).max()) > most:
        child = names[int(np.argmax(needed.sum(axis=0)))]
        raise ArgumentError(f"{child!r} has more required parents than {argument('max_parents', most)} allows.")
    return Rules(allowed, needed, most)


def _read_start(names: tuple[str, ...], start: Any, rules: Rules) -> Bools:
    if start is None:
        return rules.required.copy()
    edges = to_matrix(read_structure(start)[0], names)
    if (edges & ~rules.allowed).any() or edges.sum(axis=0).max(initial=0) > rules.most:
        raise ModelError(f"the structure given as {argument('start')} has forbidden edges, or too many parents.")
    if (rules.required & ~edges).any():
        raise ModelError(f"the structure given as {argument('start')} lacks required edges.")
    return edges


def _judge(found: Climb) -> Diagnostics:
    same = sum(one > found.score - _SAME * (1.0 + abs(found.score)) for one in found.scores)
    figures = {"climbs": len(found.scores), "found": same}
    if len(found.scores) == 1:
        return Diagnostics("best found", None, (), figures, "best found: one climb, and there may be better structures")
    reasons = () if same > 1 else ("there may be better structures; use more restarts.",)
    word = "converged" if same > 1 else "not converged"
    text = f"{word}: the best structure was found by {same} of {len(found.scores)} climbs from random starts"
    return Diagnostics("best found", same > 1, reasons, figures, text)
