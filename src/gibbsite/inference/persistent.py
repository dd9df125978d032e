"""Chains that continue from call to call, for training loops and other work in pieces."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gibbsite._common.arguments import as_model, check_integer
from gibbsite._common.arrays import Array, Floats, Ints32
from gibbsite.errors import ArgumentError
from gibbsite.graphs.support.start import start_states
from gibbsite.inference.sampling import check_parts
from gibbsite.kernels.base import Kernel
from gibbsite.kernels.protocols import Stateful
from gibbsite.models import Model
from gibbsite.results.result import Result
from gibbsite.results.table import SiteTable, observed_cells
from gibbsite.results.verdict.judge import make_result
from gibbsite.sampling.driver import Driver
from gibbsite.sampling.executor import Threads, read_threads
from gibbsite.sampling.layout import PlainLayout
from gibbsite.sampling.named_sites import read_pairs
from gibbsite.sampling.plan import read_entropy
from gibbsite.sampling.record import Marginals
from gibbsite.sampling.setup import Setup, lay_out_chains, prepare
from gibbsite.sampling.stored_tuples import flatten, is_rebuildable, restore

if TYPE_CHECKING:
    from gibbsite.scans.base import Scan

_SMALL = 200_000  # updates of a call below which threads cost more than they gain


class PersistentChains:
    """Chains of a model that keep their states from one call to the next.

    Parameters
    ----------
    model : Model
        The model; :meth:`reweight` changes its weights.
    kernel : Kernel, optional
        The algorithm that updates a site, as in :func:`gibbsite.sample`.
    chains : int
        Number of chains.
    scan, start, threads : optional
        As in :func:`gibbsite.sample`.
    rng : int, Generator or SeedSequence, optional
        Seed. As long as weights do not change, the states are those of one run of :func:`gibbsite.sample`
        with this seed, without warmup, and as many sweeps as all calls together.
    record : optional
        What to record of the latest call, as in :func:`gibbsite.sample`; by default marginals without batch means.

    See Also
    --------
    sample : One run of a fixed model.
    rbm : A restricted Boltzmann machine.

    Notes
    -----
    Pickled chains continue bit for bit.

    References
    ----------
    Tieleman (2008), Training restricted Boltzmann machines using approximations to the likelihood gradient.

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
        model = as_model(model)
        check_parts(model, kernel, scan)
        record = Marginals(batches=False) if record is None and (kernel is None or kernel.estimates) else record
        self._threads = read_threads(threads)
        self._asked = (kernel, scan, record, check_integer("chains", chains, 1))
        self._given = (model, read_entropy(rng), start)
        self._driver = self._begin()
        self._latest = self._total = self._epoch = 0

    def _begin(self) -> Driver:
        """Return the chains in their state before the first sweep."""
        model, entropy, start = self._given
        setup = prepare(model, *self._asked, rng=entropy, start=start, tune=False)
        refuse_meetings(setup)
        driver = Driver(setup)
        driver.freeze()
        return driver

    @property
    def model(self) -> Model:
        """The model with its present weights."""
        return cast(Model, self._driver.setup.model)

    @property
    def sweeps(self) -> int:
        """Sweeps made so far."""
        return self._total

    def run(self, sweeps: int = 1, *, model: Model | None = None) -> PersistentChains:
        """Advance all chains.

        Parameters
        ----------
        sweeps : int
            Number of sweeps.
        model : Model, optional
            The model with which to continue, such as a reweighted one; the present one by default.

        Returns
        -------
        PersistentChains
            This object.
        """
        sweeps = check_integer("sweeps", sweeps, 1)
        if model is not None:
            self._move_to(model)
        driver, setup = self._driver, self._driver.setup
        driver.erase()
        updates = sweeps * setup.graph.n_units * len(setup.starts)
        if updates < _SMALL or self._threads == 1:
            driver.advance(sweeps, keep=True)
        else:
            with Threads(self._threads) as driver.executor:
                driver.advance(sweeps, keep=True)
            driver.executor = driver.threads
        driver.inspect()
        self._latest, self._total = sweeps, self._total + sweeps
        return self

    def reweight(self, **weights: Any) -> PersistentChains:
        """Give named groups of factors new weights, as ``model.reweight`` does, and keep the states.

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
        driver, old = self._driver, self._driver.setup
        if not np.array_equal(model.cards, old.model.cards):
            raise ArgumentError("Chains can only continue with a model that has the same sites and numbers of states.")
        self._epoch += 1
        setup = replace(lay_out_chains(model, *self._asked), entropy=old.entropy, starts=old.starts, start=old.start)
        if _arrangement(setup) != _arrangement(old):  # the layout changes, and with it the random numbers
            starts = tuple(driver.states_by_chain())
            self._driver = Driver(replace(setup, starts=starts), first=self._epoch * len(starts))
            self._driver.setup = setup
            return
        driver.adopt(setup)
        driver.arrays = [setup.layout.arrays(size) for size in driver.sizes]
        if isinstance(setup.layout, PlainLayout):  # memories must not keep values computed from the old weights
            for k, state in enumerate(driver.states):
                if is_rebuildable(state.memory):
                    driver.states[k] = state._replace(memory=setup.kernel.memory(setup.graph, state.rng))
                elif isinstance(setup.kernel, Stateful):
                    setup.kernel.forget(state.memory)

    # ---- states and results

    @property
    def states(self) -> Array:
        """The states of the chains (chains, sites): codes of states, or numbers.

        It can be set to anything that ``start=`` of :func:`gibbsite.sample` accepts: one state for all chains, or a row
        for each. Chains then continue from there with new random numbers.

        Examples
        --------
        >>> import gibbsite as gs
        >>> chains = gs.PersistentChains(gs.ising_grid((2, 2), coupling=0.5), chains=2, rng=1)
        >>> chains.states = [[0, 0, 0, 0], [1, 1, 1, 1]]
        >>> chains.states.tolist(), chains.run(3).states.shape
        ([[0, 0, 0, 0], [1, 1, 1, 1]], (2, 4))
        """
        return self._driver.layout.codes(self._driver.states, self._driver.sizes)

    @states.setter
    def states(self, given: Any) -> None:
        self._epoch += 1
        setup = self._driver.setup
        starts = start_states(setup.model, setup.graph, len(setup.starts), given, setup.entropy)
        self._driver.place(starts, self._epoch * len(starts))
        self._driver.freeze()

    @property
    def labels(self) -> Array:
        """The states of the chains (chains, sites), as labels."""
        codes, model = self.states, self.model
        if model.domains.numbers.any():
            return codes
        columns = [np.array(model.labels(i))[codes[:, i]] for i in range(model.n_sites)]
        return np.stack(columns, axis=1) if columns else codes

    @property
    def marginals(self) -> SiteTable:
        """Probability of every state of every site: averages over the latest call and all chains."""
        driver, record, graph = self._driver, self._driver.setup.record, self._driver.setup.graph
        if not self._latest or not record.n_marginal or not graph.discrete:
            return self.result().marginals
        sums = np.sum([driver.layout.sums(*bundle) for bundle in zip(driver.tapes, driver.sizes, strict=True)], axis=0)
        cells = sums[: record.n_marginal] / (self._latest * sum(driver.sizes))
        seen = observed_cells(self.model.evidence, self.model.evidence_labels, 1.0)
        return SiteTable(self.model.domains, cells, graph.binary, True, seen)

    def pair_moments(self, pairs: Any = "edges") -> tuple[Ints32, Floats]:
        """Return pairs of sites, and the mean product of their labels over the current states of the chains.

        Parameters
        ----------
        pairs : array (m, 2) or "edges"
            The pairs; "edges" means every pair that shares a factor of two sites. If labels are not numbers, codes are
            multiplied.
        """
        found = read_pairs(self.model, pairs)
        values = self.labels
        values = (values if values.dtype.kind in "biuf" else self.states).astype(np.float64)
        return found, (values[:, found[:, 0]] * values[:, found[:, 1]]).mean(axis=0)

    def result(self) -> Result:
        """Return the latest call as a result of sampling, with what was recorded."""
        if not self._latest:
            raise ArgumentError("The chains have not made a sweep yet; call run() first.")
        recording = replace(self._driver.recording(), seconds=float("nan"), report={}, memories=(), kept={})
        return make_result(recording)._judged(_start_check="off")

    # ---- pickling

    def __getstate__(self) -> dict[str, Any]:
        arrays: dict[str, Array] = {}
        for k, (state, tape) in enumerate(zip(self._driver.states, self._driver.tapes, strict=True)):
            arrays.update(flatten(f"state/{k}", state))
            arrays.update(flatten(f"tape/{k}", tape))
        return {
            "asked": self._asked,
            "given": self._given,
            "model": self.model,
            "epoch": self._epoch,
            "threads": self._threads,
            "sweeps": (self._latest, self._total),
            "arrays": {name: np.array(values) for name, values in arrays.items()},
        }

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self._asked, self._given, self._threads = kept["asked"], kept["given"], kept["threads"]
        self._latest, self._total = kept["sweeps"]
        self._driver, self._epoch = self._begin(), kept["epoch"] - 1
        self._move_to(kept["model"])
        driver = self._driver
        driver.states = [restore(f"state/{k}", old, kept["arrays"]) for k, old in enumerate(driver.states)]
        driver.tapes = [restore(f"tape/{k}", old, kept["arrays"]) for k, old in enumerate(driver.tapes)]

    def __repr__(self) -> str:
        return f"PersistentChains({sum(self._driver.sizes)} chains, {self.model!r}, {self._total:,} sweeps)"


def refuse_meetings(setup: Setup) -> None:
    """Refuse recorders that see all chains together, which only :func:`gibbsite.sample` can record."""
    if setup.record.meetings:
        raise ArgumentError(f"{type(setup.record.meetings[0]).__name__} is recorded by gs.sample only.")


def _arrangement(setup: Setup) -> tuple[Any, ...]:
    """Return the properties that determine the layout of states."""
    layout, graph = setup.layout, setup.graph
    structure = None if isinstance(layout, PlainLayout) else id(graph.shared)
    return type(layout), layout.name, layout.width, graph.kind, structure
