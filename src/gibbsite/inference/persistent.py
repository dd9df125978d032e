"""Chains that go on where they were: for training loops, and anything else that runs in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints32
from gibbsite.errors import ArgumentError
from gibbsite.inference.sampling import check_parts
from gibbsite.kernels.base import Kernel
from gibbsite.results.make import make_result
from gibbsite.results.result import Result
from gibbsite.results.table import SiteTable, observed_cells
from gibbsite.sampling.budget import check_integer
from gibbsite.sampling.checkpoint import flatten, restore
from gibbsite.sampling.engine import Recording, Setup
from gibbsite.sampling.executor import Executor, read_threads
from gibbsite.sampling.plan import read_entropy
from gibbsite.sampling.record import Marginals, read_pairs
from gibbsite.sampling.standing import Standing

if TYPE_CHECKING:
    from gibbsite.models import Model
    from gibbsite.scans.base import Scan

_SMALL = 200_000  # updates of a call below which threads cost more than they gain


class PersistentChains:
    """Chains of a model that keep their states from one call to the next.

    Parameters
    ----------
    model : Model
        The model; :meth:`reweight` changes its weights.
    kernel : Kernel, optional
        How a site moves; as in :func:`gibbsite.sample`.
    chains : int
        Number of chains.
    scan, start, threads : optional
        As in :func:`gibbsite.sample`.
    rng : int, Generator or SeedSequence, optional
        Seed. As long as weights do not change, the states are those of one run of :func:`gibbsite.sample`
        with this seed, without warmup, and as many sweeps as all calls together.
    record : optional
        What to record of the latest call, as in :func:`gibbsite.sample`; marginals by default, without means
        of batches.

    Notes
    -----
    Chains are pickled with everything they need to go on bit for bit.

    Examples
    --------
    >>> import gibbsite as gs
    >>> chains = gs.PersistentChains(gs.ising_grid((4, 4), coupling=0.2), gs.Gibbs(), chains=64, rng=1)
    >>> for step in range(3):
    ...     _ = chains.reweight(couplings=0.2 + 0.1 * step).run(sweeps=5)
    >>> chains.states.shape, chains.sweeps
    ((64, 16), 15)
    >>> pairs, means = chains.pair_moments()
    >>> len(pairs), bool(means.mean() > 0.3)
    (24, True)
    """

    def __init__(
        self,
        model: Model,
        kernel: Kernel | None = None,
        *,
        chains: int = 16,
        scan: Scan | None = None,
        rng: Any = None,
        start: Any = None,
        record: Any = None,
        threads: int | None = None,
    ) -> None:
        check_parts(model, kernel, scan)
        record = Marginals(batches=False) if record is None and (kernel is None or kernel.estimates) else record
        self._threads = read_threads(threads)
        self._arguments = (model, kernel, scan, record, check_integer("chains", chains, 1), read_entropy(rng), start)
        self._standing = Standing(*self._arguments)
        self._standing.freeze()
        self._latest = self._total = self._epoch = 0

    @property
    def model(self) -> Model:
        """The model with its present weights."""
        return self._standing.model

    @property
    def sweeps(self) -> int:
        """Sweeps made so far."""
        return self._total

    def run(self, sweeps: int = 1, *, model: Model | None = None) -> PersistentChains:
        """Move all chains on.

        Parameters
        ----------
        sweeps : int
            By how many sweeps.
        model : Model, optional
            The model to go on in, as :meth:`reweight` makes it; the present one by default.

        Returns
        -------
        PersistentChains
            This object.
        """
        sweeps = check_integer("sweeps", sweeps, 1)
        if model is not None:
            self._move_to(model)
        standing = self._standing
        standing.erase()
        updates = sweeps * standing.form.graph.n_units * standing.chains
        threads = 1 if updates < _SMALL else self._threads
        moves = standing.moves(sweeps, True, threads)
        if len(moves) == 1 or threads == 1:
            for move in moves:
                move()
        else:
            with Executor(threads) as executor:
                executor.map(lambda move: move(), moves)
        standing.inspect()
        self._latest, self._total = sweeps, self._total + sweeps
        return self

    def reweight(self, **weights: Any) -> PersistentChains:
        """Give named groups of factors new weights, as ``model.reweight`` does; states stay where they are.

        Returns
        -------
        PersistentChains
            This object.
        """
        change = getattr(self.model, "reweight", None)
        if change is None:
            raise ArgumentError(f"A {type(self.model).__name__} has no weights by name; give run(model=...).")
        self._move_to(change(**weights))
        return self

    def _move_to(self, model: Model) -> None:
        check_parts(model, None, None)
        self._epoch += 1
        self._standing.reweight(model, self._epoch)

    # ---- what there is

    @property
    def states(self) -> Array:
        """Where the chains are (chains, sites): codes of states, or numbers.

        It can be set, to all that ``start=`` of :func:`gibbsite.sample` takes: one state for all chains, or a
        row for each. Chains go on from there with new random numbers.

        Examples
        --------
        >>> import gibbsite as gs
        >>> chains = gs.PersistentChains(gs.ising_grid((2, 2), coupling=0.5), chains=2, rng=1)
        >>> chains.states = [[0, 0, 0, 0], [1, 1, 1, 1]]
        >>> chains.states.tolist(), chains.run(3).states.shape
        ([[0, 0, 0, 0], [1, 1, 1, 1]], (2, 4))
        """
        return self._standing.form.codes(self._standing.states, self._standing.sizes)

    @states.setter
    def states(self, given: Any) -> None:
        self._epoch += 1
        self._standing.put(given, self._epoch)

    @property
    def labels(self) -> Array:
        """Where the chains are (chains, sites), as labels of states."""
        codes, model = self.states, self.model
        if model.domains.numbers.any():
            return codes
        columns = [np.array(model.labels(i))[codes[:, i]] for i in range(model.n_sites)]
        return np.stack(columns, axis=1) if columns else codes

    @property
    def marginals(self) -> SiteTable:
        """Probability of every state of every site: averages over the latest call and all chains."""
        standing, model = self._standing, self.model
        if not self._latest or not standing.layout.n_marginal or not standing.graph.discrete:
            return self.result().marginals
        bundles = zip(standing.tapes, standing.sizes, strict=True)
        sums = np.sum([standing.form.sums(*bundle) for bundle in bundles], axis=0)
        cells = sums[: standing.layout.n_marginal] / (self._latest * standing.chains)
        seen = observed_cells(model.evidence, model.evidence_labels, 1.0)
        return SiteTable(model.domains, cells, standing.graph.binary, True, seen)

    def pair_moments(self, pairs: Any = "edges") -> tuple[Ints32, Floats]:
        """Return pairs of sites, and the mean product of their labels over the chains as they stand.

        Parameters
        ----------
        pairs : array (m, 2) or "edges"
            The pairs; "edges" takes every pair that shares a factor of two sites. Where labels are not
            numbers, codes are multiplied.
        """
        found = read_pairs(self.model, pairs)
        values = self.labels
        values = (values if values.dtype.kind in "biuf" else self.states).astype(np.float64)
        return found, (values[:, found[:, 0]] * values[:, found[:, 1]]).mean(axis=0)

    def result(self) -> Result:
        """Return the latest call as a result of sampling, with what was recorded."""
        if not self._latest:
            raise ArgumentError("The chains have not moved yet; call run() first.")
        standing = self._standing
        released = standing.released()
        setup = Setup(standing.model, standing.kernel, standing.scan, standing.layout, standing.form, standing.plan(0))
        recording = Recording(
            setup, [x for x, _ in released], [tape for _, tape in released], 0, float("nan"), False, {}
        )
        return make_result(recording).judged(look="off")

    # ---- keeping

    def __getstate__(self) -> dict[str, Any]:
        kept: dict[str, list[Any]] = {"state": [*self._standing.states], "tape": [*self._standing.tapes]}
        arrays: dict[str, Array] = {}
        for name, parts in kept.items():
            for k, part in enumerate(parts):
                arrays.update(flatten(f"{name}/{k}", part))
        return {
            "arguments": self._arguments,
            "model": self.model,
            "epoch": self._epoch,
            "threads": self._threads,
            "sweeps": (self._latest, self._total),
            "arrays": {name: np.array(values) for name, values in arrays.items()},
        }

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self._arguments, self._threads = kept["arguments"], kept["threads"]
        self._epoch = kept["epoch"]
        self._latest, self._total = kept["sweeps"]
        standing = self._standing = Standing(*self._arguments)
        standing.freeze()
        standing.reweight(kept["model"], self._epoch)
        states = [restore(f"state/{k}", old, kept["arrays"]) for k, old in enumerate(standing.states)]
        tapes = [restore(f"tape/{k}", old, kept["arrays"]) for k, old in enumerate(standing.tapes)]
        standing.states, standing.tapes = states, tapes

    def __repr__(self) -> str:
        return f"PersistentChains({self._standing.chains} chains, {self.model!r}, {self._total:,} sweeps)"
