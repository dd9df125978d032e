"""``gibbsite.learn.fit_ising`` and ``fit_pairwise``: models from data by Monte Carlo maximum likelihood."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any, cast

import numpy as np

from gibbsite._common.arguments import check_integer, check_list, checked, is_number
from gibbsite._common.arrays import Array, Floats
from gibbsite._common.notice import warn_user
from gibbsite._common.wording import argument
from gibbsite._numba.jit import announcing
from gibbsite.errors import ArgumentError, ConvergenceWarning, ModelError, TooLargeError
from gibbsite.learn.arguments import Settings, read_codes, read_numbers, read_pairs
from gibbsite.learn.ascent import Path, Problem, ascend, bound_error
from gibbsite.learn.errors import standard_errors
from gibbsite.learn.expectation import Exact, Sampled
from gibbsite.learn.family import Family, make_spins, make_tables
from gibbsite.learn.fit import Fit, count_unknown
from gibbsite.learn.frames import is_frame, read_frame
from gibbsite.learn.screening import screen_pairs
from gibbsite.sampling.progress import catch_interrupt, choose_progress

_STEP_SIZE = 0.1  # the step size for moments, without data
_TOLERANCE = 1e-9  # relative length of the last step with exact gradients
_LONG = 1.0  # seconds for an exact gradient above which a message is shown
_TOO_LONG = 5.0  # seconds for an exact gradient above which the number of steps must be given


@checked
def fit_ising(
    data: Any = None,
    structure: Any = "complete",
    *,
    moments: Any = None,
    means: Any = None,
    fields: bool = True,
    sites: Sequence[str] | None = None,
    **settings: Any,
) -> Fit:
    """Fit an Ising model, ``exp(sum_ij J_ij s_i s_j + sum_i h_i s_i)``, by maximum likelihood.

    Parameters
    ----------
    data : array (draws, sites) or pandas.DataFrame, optional
        Draws of -1 and 1, or 0 and 1. Columns of a data frame are sites of their names; texts and categories, of which
        a column has two, become labels.
    structure : "complete", "screened", FactorGraph, or sequence of pairs
        The pairs of sites that may be coupled: all pairs, those that :func:`screen_pairs` finds, those of another
        model, or a list of pairs of positions or names.
    moments : array (sites, sites), optional
        Means of the products s_i s_j instead of data; only pairs of the structure are read, above the diagonal.
    means : array (sites,), optional
        Means of the s_i, needed with moments if there are fields.
    fields : bool
        Whether the model has fields h.
    sites : sequence of str, optional
        Names of the sites.
    **settings
        See :class:`Settings`: ridge, box, mixing, gradient, scan, accuracy, updates, chains, persistent,
        steps, step_size, start, check, confidence, rng, threads, progress.

    Returns
    -------
    Fit

    References
    ----------
    Domke (2015), Maximum likelihood learning with arbitrary treewidth via fast-mixing parameter sets.
    Mitliagkas and Mackey (2017), section 5.3.

    Examples
    --------
    >>> import gibbsite as gs
    >>> true = gs.ising_grid((3, 3), coupling=0.2)
    >>> draws = gs.solve_exact(true, task="PR").draw(5000, np.random.default_rng(1))
    >>> fit = gs.learn.fit_ising(draws, true, fields=False, box=0.3, steps=30, rng=1, progress=False)
    >>> bool(abs(fit.couplings - 0.2).max() < 0.1)
    True
    """
    chosen, names = Settings(**settings), cast(Any, sites)  # a data frame names states as well
    if data is not None:
        if is_frame(data):
            codes, names = read_frame(data, sites, spins=True)
        else:
            codes = read_codes(data, 2, spins=True)
        n = codes.shape[1]
        if isinstance(structure, str) and structure == "screened":
            structure = screen_pairs(codes, fields=fields)[0]
    else:
        matrix = read_numbers(_needed(moments), "moments")
        n = len(matrix) if matrix.ndim else 0
        if matrix.shape != (n, n) or not n:
            raise ArgumentError(f"{argument('moments')} must be a matrix (sites, sites), got shape {matrix.shape}.")
        if isinstance(structure, str) and structure == "screened":
            raise ArgumentError('structure="screened" needs data; moments do not suffice.')
    _check_names(sites, n)
    pairs = read_pairs(structure, n, names)
    family = make_spins(n, pairs, bool(fields), names)
    if data is not None:
        target = family.mean(codes)
    else:
        target = matrix[pairs[:, 0], pairs[:, 1]]
        if fields:
            target = np.concatenate([target, _shaped(means, "means", (n,))])
        _check_range(target, -1.0, "moments")
    return _fit(family, target, None if data is None else codes, -1.0, chosen)


@checked
def fit_pairwise(
    data: Any = None,
    structure: Any = "complete",
    *,
    states: int | Sequence[Any] | None = None,
    moments: Any = None,
    means: Any = None,
    fields: bool = True,
    sites: Sequence[str] | None = None,
    **settings: Any,
) -> Fit:
    """Fit a table of log-potentials to each pair and each site, by maximum likelihood.

    Tables of pairs and of sites are not identified: what is subtracted from one can be added to another without
    changing the model. A ridge makes the answer unique; without a ridge it depends on the start of the ascent.

    Parameters
    ----------
    data : array (draws, sites) or pandas.DataFrame, optional
        State codes 0 .. K-1. Columns of a data frame are sites of their names; texts and categories become labels.
    structure : "complete", FactorGraph, or sequence of pairs
        The pairs of sites that may be coupled.
    states : int or sequence of labels, optional
        Number of states K of every site, or their labels; by default, the largest code in the data is the last state.
    moments : array (pairs, K, K), optional
        Probabilities of the states of each pair i < j, in the order of the structure, instead of data.
    means : array (sites, K), optional
        Probabilities of the states of each site, needed with moments if there are fields.
    fields : bool
        Whether sites have tables.
    sites : sequence of str, optional
        Names of the sites.
    **settings
        See :class:`Settings`.

    Returns
    -------
    Fit

    Examples
    --------
    >>> import gibbsite as gs
    >>> true = gs.potts_grid((2, 2), states=3, coupling=0.5)
    >>> draws = gs.solve_exact(true, task="PR").draw(2000, np.random.default_rng(1))
    >>> fit = gs.learn.fit_pairwise(draws, true, ridge=0.01, gradient="exact", progress=False)
    >>> table = fit.couplings[0]  # equal states are favoured by 0.5
    >>> bool(abs(table.trace() / 3 - (table.sum() - table.trace()) / 6 - 0.5) < 0.2)
    True
    """
    chosen, names = Settings(**settings), cast(Any, sites)  # a data frame names states as well
    if states is not None:
        states = check_integer("states", states, 2) if is_number(states) else check_list("states", states, "labels")
    k = None if states is None else states if isinstance(states, int) else len(states)
    if data is not None:
        if is_frame(data):
            if states is not None:
                raise ArgumentError(f"{argument('states')} are those of the columns; give categories to the columns.")
            codes, names = read_frame(data, sites, spins=False)
            states = next(iter(names.values()))
            k = len(states)
        else:
            codes = read_codes(data, k)
        n = codes.shape[1]
        k = max(int(codes.max()) + 1, 2) if k is None else k
    else:
        tables = read_numbers(_needed(moments), "moments")
        if tables.ndim != 3 or tables.shape[1] != tables.shape[2] or tables.shape[1] < 2:
            raise ArgumentError(f"{argument('moments')} must have shape (pairs, K, K), got {tables.shape}.")
        k = tables.shape[1] if k is None else k
        if isinstance(structure, str):
            raise ArgumentError("With moments, structure must be a model or a list of pairs.")
        shape = np.shape(means) if means is not None else ()
        n = structure.n_sites if hasattr(structure, "n_sites") else shape[0] if shape else 0
        if not n:
            raise ArgumentError("With moments, give means, or a model as structure, to define the number of sites.")
    _check_names(sites, n)
    pairs = read_pairs(structure, n, names)
    family = make_tables(n, pairs, bool(fields), k if states is None else states, names)
    if data is not None:
        target = family.mean(codes)
    else:
        target = _shaped(tables, "moments", (len(pairs), k, k)).ravel()
        if fields:
            target = np.concatenate([target, _shaped(means, "means", (n, k)).ravel()])
        _check_range(target, 0.0, "moments")
    return _fit(family, target, None if data is None else codes, 0.0, chosen)


def _fit(family: Family, target: Floats, codes: Array | None, least: float, how: Settings) -> Fit:
    """Maximise the likelihood of mean statistics, which are between ``least`` and 1."""
    ridge, bounded = how.ridge or 0.0, how.box is not None or how.mixing is not None
    if ridge == 0.0 and not bounded and ((target <= least) | (target >= 1.0)).any():
        said = "Some statistic is constant in the data, so the likelihood has no maximum"
        if how.ridge is not None or codes is None:
            raise ModelError(f"{said}; give ridge= or box=.")
        ridge = 1.0 / len(codes)
        warn_user(f"{said}; a ridge of one over the number of draws is used, give ridge= or box=.")
    problem = Problem(family, target, float(ridge), how.box, how.mixing)
    size = how.step_size or _choose_step(family, codes, problem.ridge)
    first = np.zeros(family.size) if how.start is None else _shaped(how.start, "start", (family.size,))
    oracle, steps, exact = how.oracle(family), how.most_steps, how.exact
    show, begun = choose_progress(how.progress), time.monotonic()
    with closing(show), catch_interrupt(show.say) as stop, announcing(show.say, "the fit"):
        if isinstance(oracle, Exact) and (each := oracle.seconds()) > _LONG:
            if how.steps is None and each > _TOO_LONG:
                raise TooLargeError(
                    f"Each exact gradient takes about {each:.2g} s, and there may be {steps:,}; use gradient="
                    '"sampled", fewer pairs in structure=, or limit them with steps=.'
                )
            show.say(
                f"Each exact gradient takes about {each:.2g} s, and up to {steps:,} are needed; "
                'gradient="sampled" is faster, and steps= limits their number.'
            )
        path = ascend(problem, oracle, first, steps, size, _TOLERANCE if exact else -1.0, show, stop)
        judged = how.check and not path.interrupted
        bound, spent = _judge(problem, oracle, path, 1.0 - how.confidence) if judged else (np.inf, 0)
    theta = path.theta
    couplings, fields = family.split(theta)
    variations = np.array([each.variation for each in path.estimates])
    if isinstance(oracle, Sampled) and oracle.updates is None and (unknown := count_unknown(variations)):
        warn_user(
            f"In {unknown} of {len(variations)} gradient steps, no number of updates is known to bring chains "
            f"within {oracle.goal:g} of the model, and each chain made {path.estimates[-1].length:,} updates; "
            "compare with a fit with more updates (updates=), or give mixing= to keep a guarantee.",
            ConvergenceWarning,
        )
    return Fit(
        model=family.model(theta),
        pairs=family.pairs,
        couplings=couplings,
        fields=fields,
        strengths=family.strengths(theta),
        path=np.array(list(path.thetas.values())),
        path_steps=np.array(list(path.thetas)),
        lengths=np.array([each.length for each in path.estimates]),
        variations=variations,
        updates=sum(each.updates for each in path.estimates),
        check_updates=spent,
        error_bound=bound,
        confidence=1.0 if exact else how.confidence,
        exact=exact,
        seconds=time.monotonic() - begun,
        interrupted=path.interrupted,
        standard_errors=np.full(theta.size, np.nan) if path.interrupted else standard_errors(problem, codes, theta),
    )


def _judge(problem: Problem, oracle: Exact | Sampled, path: Path, risk: float) -> tuple[float, int]:
    """Bound the error of the last parameters, from a gradient estimate that is independent of them."""
    chains = oracle.chains if isinstance(oracle, Sampled) else 0
    if problem.ridge == 0.0 or (isinstance(oracle, Sampled) and oracle.persistent):
        return np.inf, 0
    found = oracle(path.theta, len(path.estimates))
    return bound_error(problem, path.theta, found, chains, risk), found.updates


def _choose_step(family: Family, codes: Array | None, ridge: float) -> float:
    """Return one over the sum of the ridge and the largest eigenvalue of the covariance of the data."""
    if codes is None or family.size == 0:
        return _STEP_SIZE
    some = family.statistics(codes[:: max(1, len(codes) * family.size // (1 << 22))])
    some = some - some.mean(axis=0)
    direction, largest = np.ones(family.size), 0.0
    for _ in range(50):  # the power method; its error is harmless, because twice the step would still converge
        image = some.T @ (some @ direction) / len(some)
        largest = float(np.linalg.norm(image))
        if largest == 0.0:
            return _STEP_SIZE
        direction = image / largest
    return 1.0 / (max(largest, 1.0) + ridge)


def _needed(moments: Any) -> Any:
    if moments is None:
        raise ArgumentError("Give data, or moments.")
    return moments


def _shaped(given: Any, what: str, shape: tuple[int, ...]) -> Floats:
    if given is None:
        raise ArgumentError(f"{what} are missing; give an array of shape {shape}, or fields=False.")
    array = read_numbers(given, what)
    if array.shape != shape:
        raise ArgumentError(f"{argument(what)} must have shape {shape}, got {array.shape}.")
    return array


def _check_range(target: Floats, least: float, what: str) -> None:
    outside = target[(target < least) | (target > 1.0)]
    if outside.size:
        raise ArgumentError(f"{argument(what)} must be between {least:g} and 1, got {outside[0]:g}.")


def _check_names(sites: Any, n: int) -> None:
    if sites is not None and len(check_list("sites", sites, "names")) != n:
        raise ArgumentError(f"There are {n} sites, so give {n} names, got {sites!r}.")
