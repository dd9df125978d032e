"""``gibbsite.learn.sample_structures``: the posterior of structures, by Gibbs sampling of ordered partitions."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsite._common.arguments import check_integer, checked
from gibbsite._common.arrays import Bools, Floats, Floats32, Ints
from gibbsite._common.notice import warn_user
from gibbsite._common.wording import Text, argument, unknown
from gibbsite._numba.jit import announcing
from gibbsite._numba.random.generators import stream
from gibbsite.errors import ArgumentError, ConvergenceWarning, TooLargeError
from gibbsite.learn.networks.cases import Cases, read_cases
from gibbsite.learn.networks.exact_search import score_all
from gibbsite.learn.networks.partitions import MOST_SITES, Trace, make_families, run_chain
from gibbsite.learn.networks.scores import count_sets, make_data, read_score
from gibbsite.learn.networks.structure import Parents, check_acyclic
from gibbsite.learn.networks.structures import complete_cases, read_rules
from gibbsite.learn.networks.verdict import judge_draws
from gibbsite.results.answer import Diagnostics
from gibbsite.results.dataframe import load_pandas
from gibbsite.results.measure.diagnostics import mcse
from gibbsite.sampling.executor import read_threads
from gibbsite.sampling.plan import read_entropy
from gibbsite.sampling.progress import choose_progress

_RARE = 1e-3  # probabilities of edges closer to 0 or 1 are judged by the agreement of chains
_APART = 0.01  # largest difference of such a probability between chains
_FULL = 0.01  # share of sites with as many parents as allowed that is worth a warning
_MOST_SETS = 1 << 24
_MOST_KEPT = 1 << 28  # bytes of recorded probabilities
_SHOWN = 20


@dataclass(frozen=True, eq=False)
class StructurePosterior:
    """Draws of structures from their posterior.

    Attributes
    ----------
    sites : tuple of str
        The sites.
    edges : float array (parent, child)
        Probability of each edge.
    errors : float array (parent, child)
        Standard errors of these probabilities.
    parents : dict
        The parents of each site in the draw of highest score, a structure for :func:`fit_tables`.
    score : float
        Its score.
    scored_by : str
        What the score is called.
    max_parents : int
        Most parents of a site.
    cases : Cases
        The complete cases that were used.
    diagnostics : Diagnostics
        How far to trust the probabilities.
    seconds : float
        Time taken.
    """

    sites: tuple[str, ...]
    edges: Floats
    errors: Floats
    parents: Parents
    score: float
    scored_by: str
    max_parents: int
    cases: Cases
    diagnostics: Diagnostics
    seconds: float
    kept: Ints = field(repr=False)

    @property
    def converged(self) -> bool | None:
        """Whether the probabilities can be relied upon."""
        return self.diagnostics.converged

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why they cannot be relied upon, one sentence each."""
        return self.diagnostics.reasons

    @property
    def remarks(self) -> tuple[str, ...]:
        """General warnings about the draws."""
        full = self.diagnostics.figures["full_share"]
        if full <= _FULL:
            return ()
        remark = Text(
            f"{full:.0%} of the sites in drawn structures have {self.max_parents} parents, the most that are allowed; "
            f"with more ({argument('max_parents')}), probabilities may change."
        )
        return (remark,)

    def edge(self, parent: str, child: str) -> tuple[float, float]:
        """Return the probability of an edge, and its standard error.

        Parameters
        ----------
        parent, child : str
            Names of sites.
        """
        for name in (parent, child):
            if name not in self.sites:
                raise ArgumentError(unknown("the site", name, self.sites))
        at = self.sites.index(parent), self.sites.index(child)
        return float(self.edges[at]), float(self.errors[at])

    def structures(self, size: int | None = None) -> list[Parents]:
        """Return drawn structures, evenly spaced over the chains.

        Parameters
        ----------
        size : int, optional
            Number of structures; all by default.
        """
        flat = self.kept.reshape(-1, self.kept.shape[-1])
        size = len(flat) if size is None else min(check_integer("size", size, 1), len(flat))
        return [self._named(flat[k]) for k in np.linspace(0, len(flat) - 1, size).astype(int)]

    def mean(self, function: Callable[[Parents], float]) -> tuple[float, float]:
        """Return the posterior mean of a function of the structure, and its standard error.

        Parameters
        ----------
        function : callable
            Takes the parents of each site, and returns a number or a truth value.

        Examples
        --------
        >>> import gibbsite as gs
        >>> data = {"a": [0, 1] * 20, "b": [0, 1] * 19 + [1, 0]}
        >>> found = gs.learn.sample_structures(data, rng=1, progress=False)
        >>> probability, error = found.mean(lambda parents: "a" in parents["b"] or "b" in parents["a"])
        >>> probability > 0.99
        True
        """
        values = np.array([[float(function(self._named(draw))) for draw in chain] for chain in self.kept])
        return float(values.mean()), float(mcse(values))

    def to_dataframe(self) -> Any:
        """Return the probabilities of all edges as a pandas DataFrame, most probable first."""
        columns = ["parent", "child", "probability", "mcse", "either_direction"]
        return load_pandas().DataFrame(self.edge_rows(), columns=columns)

    def summary(self, most: int = _SHOWN) -> str:
        """Return verdict and the most probable edges as readable text.

        Parameters
        ----------
        most : int
            Number of edges to show.
        """
        notes = [*self.reasons, *(f"note: {remark}" for remark in self.remarks)]
        lines = [self.diagnostics.line(), *(f"  {note}" for note in notes), self.statement]
        for parent, child, p, error, either in self.edge_rows()[:most]:
            lines.append(f"{parent} -> {child}  {p:.3f} ({error:.3f})  in either direction {either:.3f}")
        return "\n".join(lines)

    @property
    def statement(self) -> str:
        """What was learned from what."""
        return (
            f"{float(self.edges.sum()):.4g} edges expected among {len(self.sites)} sites, from {self.cases.n_cases:,} "
            f"cases; {self.scored_by}; all structures with at most {self.max_parents} parents of a site equally "
            "probable beforehand"
        )

    def __repr__(self) -> str:
        return f"StructurePosterior({self.statement})"

    def _repr_html_(self) -> str:
        from gibbsite._common.html import card, grid

        rows = [
            (a, b, f"{p:.3f}", f"{error:.3f}", f"{either:.3f}") for a, b, p, error, either in self.edge_rows()[:_SHOWN]
        ]
        heads = ("parent", "child", "probability", "error", "either direction")
        good = bool(self.converged)
        word = self.diagnostics.word
        return card(word, [self.statement], good=good, notes=[*self.reasons, *self.remarks], table=grid(heads, rows))

    def edge_rows(self) -> list[tuple[str, str, float, float, float]]:
        """Return parent, child, probability, its error and that of either direction, most probable first."""
        n = len(self.sites)
        order = np.argsort(-self.edges, axis=None, kind="stable").tolist()
        found = []
        for at in order:
            i, j = divmod(at, n)
            if i != j:
                p, error = float(self.edges[i, j]), float(self.errors[i, j])
                found.append((self.sites[i], self.sites[j], p, error, float(self.edges[i, j] + self.edges[j, i])))
        return found

    def _named(self, masks: Ints) -> Parents:
        return _name_parents(self.sites, masks)


def _name_parents(names: tuple[str, ...], masks: Ints) -> Parents:
    return {
        name: tuple(other for i, other in enumerate(names) if mask >> i & 1)
        for name, mask in zip(names, masks.tolist(), strict=True)
    }


@checked
def sample_structures(
    data: Any,
    *,
    score: Any = "bdeu",
    max_parents: int = 3,
    required: Any = (),
    forbidden: Any = (),
    sweeps: int = 1000,
    warmup: int | None = None,
    chains: int = 4,
    states: Mapping[str, Any] | None = None,
    weights: Any = None,
    incomplete: str = "refuse",
    rng: Any = 0,
    threads: int | None = None,
    progress: Any = None,
) -> StructurePosterior:
    """Draw structures of a Bayesian network from their posterior.

    Parameters
    ----------
    data, score, required, forbidden, states, weights, incomplete
        As in :func:`learn_structure`. BDeu and K2 are marginal likelihoods; with BIC or AIC, whose exponentials are
        used in their place, probabilities are approximate.
    max_parents : int
        Most parents of a site. All sets of parents up to this size are scored beforehand.
    sweeps, warmup, chains : int
        Recorded sweeps of each chain, sweeps before (by default a quarter of them), and number of chains. A sweep takes
        each site out of the partition and puts it back.
    rng : int, Generator or SeedSequence
        Seed.
    threads : int, optional
        Number of threads.
    progress : optional
        As in :func:`gibbsite.sample`.

    Returns
    -------
    StructurePosterior

    Notes
    -----
    Beforehand, all structures that keep the rules are equally probable; there is no bias towards structures that agree
    with many orders, which sampling of orders has. At most 62 sites are taken.

    References
    ----------
    Kuipers and Moffa (2017), Journal of the American Statistical Association 112. Friedman and Koller (2003), Machine
    Learning 50, for orders.

    Examples
    --------
    >>> import gibbsite as gs
    >>> rng = np.random.default_rng(1)
    >>> rain, hose = rng.random((2, 1000)) < 0.4
    >>> data = {"rain": rain, "hose": hose, "wet": (rain | hose) ^ (rng.random(1000) < 0.1)}
    >>> found = gs.learn.sample_structures(data, rng=1, progress=False)
    >>> found.converged, found.edge("rain", "wet")[0] > 0.9, found.edge("rain", "hose")[0] < 0.2
    (True, True, True)
    """
    begun = time.monotonic()
    cases = complete_cases(read_cases(data, states=states, weights=weights), incomplete)
    names, n = cases.names, len(cases.names)
    if n > MOST_SITES:
        raise TooLargeError(
            f"Structures of at most {MOST_SITES} sites can be sampled, and the data have {n}; use learn_structure, or "
            "fewer columns."
        )
    scoring, called = read_score(score, cases)
    most = min(check_integer("max_parents", max_parents, 0), n - 1)
    if n * count_sets(n - 1, most) > _MOST_SETS:
        raise TooLargeError(
            f"There are {n * count_sets(n - 1, most):,} sets of at most {most} parents, more than {_MOST_SETS:,}; "
            f"choose a smaller {argument('max_parents')}."
        )
    rules = read_rules(names, required, forbidden, most)
    draws, count = check_integer("sweeps", sweeps, 1), check_integer("chains", chains, 1)
    before = draws // 4 if warmup is None else check_integer("warmup", warmup, 0)
    thin = max(1, -(-draws * count * n * n * 4 // _MOST_KEPT))
    entropy, workers = read_entropy(rng), read_threads(threads)
    show = choose_progress(progress)
    with closing(show), announcing(show.say, "the sampler"):
        families = make_families(score_all(make_data(cases), scoring, rules.allowed, rules.required, most, workers))

        def run(chain: int) -> Trace:
            order = _random_order(rules.required, np.random.default_rng([chain, *_words(entropy)]))
            return run_chain(families, stream(entropy, chain), before, max(draws // thin, 1), thin, order)

        with ThreadPoolExecutor(min(workers, count)) as pool:
            traces = list(pool.map(run, range(count)))
    trace = np.stack([each.edge for each in traces])
    kept = np.stack([each.parents for each in traces])
    scores = np.stack([each.score for each in traces])
    diagnostics, errors = _judge(names, trace, kept, scores, most)
    if not diagnostics.converged:
        warn_user(f"{diagnostics.line()}. {' '.join(diagnostics.reasons)}", ConvergenceWarning)
    best, value = _find_best(families, kept)
    return StructurePosterior(
        sites=names,
        edges=trace.mean(axis=(0, 1), dtype=np.float64),
        errors=errors,
        parents=_name_parents(names, best),
        score=value,
        scored_by=called,
        max_parents=most,
        cases=cases,
        diagnostics=diagnostics,
        seconds=time.monotonic() - begun,
        kept=kept,
    )


def _words(entropy: int) -> list[int]:
    return [entropy >> shift & 0xFFFFFFFF for shift in range(0, max(entropy.bit_length(), 1), 32)]


def _random_order(required: Bools, rng: np.random.Generator) -> Ints:
    """Return a random order in which required parents come first."""
    n = len(required)
    random = rng.permutation(n)
    parents = {str(i): [str(j) for j in random if required[j, i]] for i in random}
    return np.array([int(name) for name in check_acyclic(parents)], np.int64)


def _judge(
    names: tuple[str, ...], trace: Floats32, kept: Ints, scores: Floats, most: int
) -> tuple[Diagnostics, Floats]:
    """Judge the probabilities of edges and the scores of the partitions."""
    n, chains = len(names), len(trace)
    flat = trace.reshape(chains, -1, n * n)
    means = flat.mean(axis=1, dtype=np.float64)
    mean = means.mean(axis=0)
    doubtful = np.flatnonzero((mean > _RARE) & (mean < 1.0 - _RARE))
    errors = np.zeros(n * n)
    judged = np.concatenate([flat[:, :, doubtful].astype(np.float64), scores[:, :, None]], axis=2)

    def name(k: int) -> str:
        if k == doubtful.size:
            return "the score"
        i, j = divmod(int(doubtful[k]), n)
        return f"{names[i]} -> {names[j]}"

    reasons = []
    spread = np.ptp(means, axis=0)
    worst = int(np.argmax(spread))
    if chains > 1 and spread[worst] > _APART and worst not in doubtful:
        reasons.append(f"chains disagree about {names[worst // n]} -> {names[worst % n]}; run longer.")
    full = float((np.bitwise_count(kept) == most).mean()) if most < n - 1 else 0.0
    figures = {"judged": int(doubtful.size), "full_share": full}
    diagnostics, found = judge_draws(judged, name, figures, tuple(reasons))
    errors[doubtful] = found[:-1]
    rest = np.setdiff1d(np.arange(n * n), doubtful)
    if rest.size and flat.shape[1] >= 4:
        errors[rest] = np.asarray(mcse(flat[:, :, rest].astype(np.float64)))
    return diagnostics, errors.reshape(n, n)


def _find_best(families: Any, kept: Ints) -> tuple[Ints, float]:
    """Return the drawn structure of highest score."""
    flat = np.unique(kept.reshape(-1, kept.shape[-1]), axis=0)
    total = np.zeros(len(flat))
    for v in range(flat.shape[1]):
        masks = families.mask[families.start[v] : families.start[v + 1]]
        order = np.argsort(masks)
        at = order[np.searchsorted(masks[order], flat[:, v])]
        total += families.score[families.start[v] + at]
    best = int(np.argmax(total))
    return flat[best], float(total[best])
