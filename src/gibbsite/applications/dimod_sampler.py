"""A sampler with the interface of dimod, for programs that use BQMs and sample sets.

Each read is the result of a separate chain: the best state of an annealed chain, or the last state at a given inverse
temperature. dimod is imported when a sampler is created.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite._common.arguments import check_integer, checked, is_numeric
from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite._common.notice import warn_user
from gibbsite._common.reals import read_real, read_reals
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError, IncompatibleError
from gibbsite.formats.objects.bqm import import_extra
from gibbsite.inference.sampling import record_chains
from gibbsite.kernels.gibbs.temperature import EXCITED, temperature_range
from gibbsite.sampling.driver import Recording
from gibbsite.sampling.executor import read_threads
from gibbsite.sampling.plan import package_version
from gibbsite.sampling.progress import choose_progress
from gibbsite.sampling.setup import prepare, read_length

_SWEEPS = 1000
_EXCITED = 0.3  # mean number of variables that leave their best value at the last temperature

_OTHER_SITES = "the result and the model have different sites; give the model that was sampled, observed or not."


class DimodSampler:
    """A dimod sampler: reads by simulated annealing, or at a given inverse temperature.

    Examples
    --------
    >>> import dimod
    >>> import gibbsite as gs
    >>> bqm = dimod.BinaryQuadraticModel({"a": 1.0}, {("a", "b"): -2.0}, 0.5, "SPIN")
    >>> found = gs.applications.DimodSampler().sample(bqm, num_reads=10, num_sweeps=50, seed=1)
    >>> {variable: int(value) for variable, value in found.first.sample.items()}, float(found.first.energy)
    ({'a': -1, 'b': -1}, -2.5)
    """

    def __init__(self) -> None:
        # A virtual subclass: importing gibbsite does not need dimod.
        import_extra("dimod").Sampler.register(type(self))

    @property
    def parameters(self) -> dict[str, list[str]]:
        """Parameters of the methods, each with the properties on which it depends."""
        names = (
            "num_reads",
            "num_sweeps",
            "beta_range",
            "beta",
            "initial_state",
            "initial_states",
            "seed",
            "threads",
            "progress",
        )
        return {name: ["default_sweeps"] if name == "num_sweeps" else [] for name in names}

    @property
    def properties(self) -> dict[str, Any]:
        """Properties of the sampler."""
        return {"default_sweeps": _SWEEPS, "version": package_version()}

    def sample(
        self,
        bqm: Any,
        *,
        num_reads: int | None = None,
        num_sweeps: int = _SWEEPS,
        beta_range: Any = None,
        beta: float | None = None,
        initial_state: Mapping[Any, int] | None = None,
        initial_states: Any = None,
        seed: Any = None,
        threads: int | None = None,
        progress: Any = False,
        **unknown: Any,
    ) -> Any:
        """Return states of low energy, or states drawn at an inverse temperature.

        Parameters
        ----------
        bqm : dimod.BinaryQuadraticModel
            The problem.
        num_reads : int, optional
            Number of reads; 1 by default.
        num_sweeps : int
            Number of sweeps of each read.
        beta_range : pair of float, optional
            First and last inverse temperature of a geometric annealing schedule. By default, all variables move freely
            at first and hardly any at the end: on average 0.3 in a sweep, and no more than one of a thousand.
        beta : float, optional
            Sample at this inverse temperature instead of annealing: each read is the state of a chain after
            ``num_sweeps`` from a random state, distributed as ``p(x) ~ exp(-beta * E(x))`` if there are enough sweeps.
        initial_state : mapping, optional
            Start of all reads, variable -> value; random by default.
        initial_states : SampleSet or what dimod.as_samples takes, optional
            Start of each read, a row each; if there are fewer rows than reads, they are used again from the first.
            The number of reads is that of the rows unless it is given.
        seed : int, Generator or SeedSequence, optional
            Seed; equal seeds give equal reads.
        threads : int, optional
            Number of threads; the reads do not depend on it.
        progress : optional
            As in :func:`gibbsite.sample`; silent by default.
        **unknown
            Ignored with a warning, as dimod's samplers do.

        Returns
        -------
        dimod.SampleSet
            A row for each read, with its energy. ``info`` has the inverse temperatures, the time taken, and
            whether Ctrl-C ended the run.
        """
        dimod = import_extra("dimod")
        for name in unknown:
            warning = dimod.exceptions.SamplerUnknownArgWarning
            warn_user(f"Ignoring unknown kwarg: {name!r}", warning)
        rows = None if initial_states is None else _read_states(initial_states, bqm, initial_state)
        given = (1 if rows is None else len(rows)) if num_reads is None else num_reads
        reads, sweeps = check_integer("num_reads", given, 1), check_integer("num_sweeps", num_sweeps, 1)
        if beta is not None and beta_range is not None:
            raise ArgumentError("give beta_range to anneal or beta to sample at one temperature, not both.")
        # annealing uses inverse temperatures of the energy itself
        model = gs.formats.from_bqm(bqm, beta=1.0 if beta is None else beta)
        if not model.n_sites:
            return _sample_set(np.zeros((reads, 0), np.int8), bqm, {})
        inverse = _inverse_temperatures(model, beta_range, sweeps) if beta is None else np.array([float(beta)])
        kernel: gs.kernels.Kernel = gs.Gibbs() if beta is not None else gs.AnnealedGibbs(1.0 / inverse)
        start: Any = "random" if initial_state is None else _read_state(initial_state)
        if rows is not None:
            start = rows[np.arange(reads) % len(rows)]
        setup = prepare(
            model,
            kernel,
            None,
            gs.recorders.BestState() if beta is None else gs.Marginals(rao_blackwell=False, batches=False),
            reads,
            rng=seed,
            start=start,
            length=read_length(sweeps=sweeps, warmup=0),
        )
        recording = record_chains(setup, threads=read_threads(threads), progress=choose_progress(progress))
        info = {
            "beta_range": [float(inverse[0]), float(inverse[-1])],
            "seconds": recording.seconds,
            "interrupted": recording.interrupted,
        }
        return _sample_set(_outcomes(recording, beta is None), bqm, info)

    def sample_ising(self, h: Any, J: Any, **parameters: Any) -> Any:
        """Return reads of an Ising problem, given by linear and quadratic biases; see :meth:`sample`."""
        return self.sample(import_extra("dimod").BinaryQuadraticModel.from_ising(h, J), **parameters)

    def sample_qubo(self, Q: Any, **parameters: Any) -> Any:
        """Return reads of a QUBO, pair of variables -> bias; see :meth:`sample`."""
        return self.sample(import_extra("dimod").BinaryQuadraticModel.from_qubo(Q), **parameters)


@checked
def to_sampleset(draws: Any, model: Any, *, beta: float = 1.0) -> Any:
    """Return draws of a model of two-state sites and at most pairwise factors as a dimod sample set.

    Parameters
    ----------
    draws : Result, Inference, SearchResult or int array (..., sites)
        A result with draws of all sites (``record="draws"``) or with a best state, which gives a single row; an answer
        of ``gs.infer(model, "MAP")``, which gives a row for each of its best states; or state codes, such as those of
        ``gs.solve_exact(model, task="PR").draw(100)``.
    model : FactorGraph or dimod.BinaryQuadraticModel
        The model that was sampled, or the BQM from which it was made and whose energies are reported.
    beta : float
        Inverse temperature: the energy of a model is ``-log_potential / beta``.

    Returns
    -------
    dimod.SampleSet
        A row for each draw, chain after chain; variables are the site names, or those of the BQM.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising([[0, 0.5], [0.5, 0]])
    >>> result = gs.sample(model, sweeps=10, chains=2, record="draws", rng=1, progress=False)
    >>> found = to_sampleset(result, model)
    >>> len(found), float(found.first.energy)
    (20, -0.5)
    """
    bqm = gs.formats.to_bqm(model, beta=beta) if isinstance(model, gs.FactorGraph) else model
    sites = gs.formats.from_bqm(bqm).sites
    ranked = getattr(draws, "ranked", getattr(draws, "best", None))  # of a search, or of an inference
    if isinstance(ranked, tuple) and ranked:
        named = model if isinstance(model, gs.FactorGraph) else gs.formats.from_bqm(bqm)
        return _sample_set(_codes_of([one.assignment for one in ranked], named), bqm, {})
    draws = getattr(draws, "result", draws)
    if not isinstance(draws, gs.Result):
        codes = np.asarray(draws) if is_numeric(draws) else np.zeros(0)
        if codes.dtype.kind not in "iu" or codes.shape[-1:] != (len(sites),) or not _are_bits(codes):
            raise ArgumentError(f"{argument('draws')} must be a result or state codes 0 and 1 of {len(sites)} sites.")
        return _sample_set(codes.reshape(-1, len(sites)), bqm, {})
    if draws.domains.names.all() != sites:
        raise IncompatibleError(_OTHER_SITES)
    if draws.draws.shape[-1] == len(sites):
        return _sample_set(draws.draws.reshape(-1, len(sites)), bqm, {})
    if draws.assignment_codes is None:
        raise IncompatibleError('the result has no draws of all sites; sample with record="draws".')
    return _sample_set(draws.assignment_codes[None], bqm, {})


def _codes_of(states: list[dict[str, Any]], model: gs.FactorGraph) -> Ints:
    """Return states by name and label as codes of the sites of a model, a row for each."""
    if not all(set(model.sites) <= set(state) for state in states):
        raise IncompatibleError(_OTHER_SITES)
    rows = [[model.code(i, state[site]) for i, site in enumerate(model.sites)] for state in states]
    return np.array(rows, np.int64).reshape(len(states), -1)


def _sample_set(codes: Array, bqm: Any, info: dict[str, Any]) -> Any:
    """Return state codes (rows, sites) as values of the variables, with energies."""
    values = codes if bqm.vartype.name == "BINARY" else 2 * codes.astype(np.int8) - 1
    found = import_extra("dimod").SampleSet.from_samples_bqm((values.astype(np.int8), list(bqm.variables)), bqm)
    found.info.update(info)
    return found


def _outcomes(recording: Recording, best: bool) -> Array:
    """Return the best or the last state of each chain."""
    return np.stack([tape.best_x for tape in recording.tapes] if best else recording.states)


def _inverse_temperatures(model: gs.FactorGraph, given: Any, sweeps: int) -> Floats:
    """Return an inverse temperature for each sweep, in geometric progression."""
    if given is None:
        found = temperature_range(gs.graphs.compile_graph(model), min(EXCITED, _EXCITED / model.n_sites))
        hot, cold = 1.0 / found.hot, 1.0 / found.cold
    else:
        ends = read_reals(given, "beta_range")
        if ends.shape != (2,) or not (0.0 < ends[0] <= ends[1] < np.inf):
            raise ArgumentError(
                f"{argument('beta_range')} must be two positive numbers, the smaller first, got {given!r}."
            )
        hot, cold = ends.tolist()
    return np.asarray(np.geomspace(hot, cold, sweeps) if sweeps > 1 else np.array([cold]), np.float64)


def _read_state(given: Any) -> dict[str, int]:
    if not isinstance(given, Mapping):
        raise ArgumentError(
            f"{argument('initial_state')} must be a mapping variable -> value, got {type(given).__name__}."
        )
    return {str(variable): int(read_real(value, "initial_state")) for variable, value in given.items()}


def _read_states(given: Any, bqm: Any, alone: Any) -> Ints:
    """Return the states where reads start as codes, a row each, in the order of the variables of a BQM."""
    if alone is not None:
        raise ArgumentError("give initial_state or initial_states, not both.")
    try:
        values, labels = import_extra("dimod").as_samples(given)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{argument('initial_states')} must be samples as dimod takes them: {error}") from None
    column = {label: k for k, label in enumerate(labels)}
    missing = [variable for variable in bqm.variables if variable not in column]
    if missing or not len(values):
        what = f"no value of the variable {missing[0]!r}" if missing else "no rows"
        raise ArgumentError(f"{argument('initial_states')} has {what}; give a value of each variable in each row.")
    rows = np.asarray(values)[:, [column[variable] for variable in bqm.variables]]
    low = 0 if bqm.vartype.name == "BINARY" else -1
    if not ((rows == low) | (rows == 1)).all():
        raise ArgumentError(f"{argument('initial_states')} must have the values {low} and 1.")
    return np.asarray(rows == 1, np.int32)


def _are_bits(codes: Array) -> bool:
    return bool(((codes == 0) | (codes == 1)).all())
