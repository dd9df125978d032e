"""Set up a run: everything that is known before the first step is decided here, once.

:func:`prepare` turns what was asked for into a :class:`Setup`, from which a driver
(:mod:`gibbsite.sampling.driver`) makes chains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

from gibbsite._common.arguments import check_integer, is_number
from gibbsite._common.arrays import Array
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError
from gibbsite.graphs.graph import compile_graph
from gibbsite.graphs.support.start import start_states
from gibbsite.kernels.base import units_of
from gibbsite.kernels.protocols import Finite, Resolvable, RunOutline, Tunable
from gibbsite.kernels.registry import default_kernel
from gibbsite.sampling.layout import ChainLayout, PlainLayout, choose_scan_and_layout
from gibbsite.sampling.length import Steps, Sweeps
from gibbsite.sampling.plan import Plan, as_data, describe_scan, package_version, read_entropy
from gibbsite.sampling.record import TapeLayout, lay_out
from gibbsite.scans.systematic import Systematic

if TYPE_CHECKING:
    from gibbsite.graphs.graph import Graph
    from gibbsite.kernels.base import Kernel, KernelWarning
    from gibbsite.models import Model
    from gibbsite.scans.base import Scan

DEFAULT_SWEEPS = 1000


@dataclass(frozen=True)
class Budget:
    """The length of a run.

    Attributes
    ----------
    warmup : int or None
        Sweeps before recording; None: a tenth of the time.
    draws : int or None
        Draws to record, None if only time counts.
    length : int
        Steps between draws.
    rest : int
        Steps of a last, shorter round (budgets in steps).
    seconds : float
        Time limit.
    counted : bool
        Sweeps or steps were asked for.
    warms_by_time : bool
        The warmup ends after a tenth of the time limit at the latest.
    """

    warmup: int | None
    draws: int | None
    length: int
    rest: int
    seconds: float
    counted: bool = True
    warms_by_time: bool = False


class Length(NamedTuple):
    """How long to run, as the user asked for it; :func:`read_length` checks it."""

    sweeps: int | None = None
    steps: int | None = None
    seconds: float | None = None
    warmup: int | None = None
    thin: int = 1

    def budget(self, n_units: int, natural_sweeps: int | None = None, warms: bool = True) -> Budget:
        """Return the budget for a graph of ``n_units`` units.

        ``natural_sweeps`` is the number of sweeps after which a run of the kernel is complete; ``warms`` says
        whether the kernel needs a warmup. Both apply only if the user asked for nothing else.
        """
        length, rest = n_units * self.thin, 0
        counted = self.sweeps is not None or self.steps is not None
        draws: int | None
        if self.steps is not None:
            draws, rest = divmod(self.steps, length) if length else (1, 0)
            warmup: int | None = self.steps // max(n_units, 1) // 10
        elif counted or natural_sweeps is not None or self.seconds is None:
            sweeps = natural_sweeps if self.sweeps is None else self.sweeps
            sweeps = DEFAULT_SWEEPS if sweeps is None else sweeps
            draws, warmup = sweeps // self.thin, sweeps // 10
            if draws == 0:
                raise ArgumentError(f"{argument('thin', self.thin)} leaves no draw of {sweeps} sweeps; lower it.")
        else:
            draws = warmup = None
        given = 0 if self.warmup is None and not warms else self.warmup
        by_time = self.seconds is not None and given is None
        limit = math.inf if self.seconds is None else float(self.seconds)
        return Budget(warmup if given is None else given, draws, length, rest, limit, counted, by_time)


def read_length(
    sweeps: int | Sweeps | Steps | None = None, seconds: float | None = None, warmup: int | None = None
) -> Length:
    """Check the arguments that determine the length of a run.

    Examples
    --------
    >>> read_length(Steps(250), warmup=0).budget(100)
    Budget(warmup=0, draws=2, length=100, rest=50, seconds=inf, counted=True, warms_by_time=False)
    """
    count, steps, thin = None, None, 1
    if isinstance(sweeps, Steps):
        steps, thin = int(sweeps.count), int(sweeps.thin)
    elif isinstance(sweeps, Sweeps):
        count, thin = sweeps.count, int(sweeps.thin)
    else:
        count = sweeps
    if count is not None:
        count = check_integer("sweeps", count, 1)
    if seconds is not None and not (is_number(seconds) and 0 < seconds < math.inf):
        raise ArgumentError(f"{argument('seconds')} must be a positive number, got {seconds!r}.")
    if warmup is not None:
        warmup = check_integer("warmup", warmup, 0)
    found = Length(count, steps, seconds, warmup, thin)
    found.budget(1)  # refuses a length that leaves no draw
    return found


def fit_graph(graph: Graph, kernel: Kernel) -> Graph:
    """Return the graph with the units that a kernel visits, if these are not the sites."""
    units = units_of(kernel, graph)
    return graph if units is None else replace(graph, units=units)


@dataclass(frozen=True)
class Recipe:
    """A run without its length: enough to lay out its chains, in this process or in another one.

    ``scan`` and ``record`` are as the user gave them.

    Examples
    --------
    >>> import gibbsite as gs
    >>> setup = Recipe(gs.ising_grid((3, 3)), gs.Gibbs(), gs.Systematic(), None, 4).lay_out()
    >>> setup.layout.name, setup.graph.n_sites
    ('plain', 9)
    """

    model: Model
    kernel: Kernel
    scan: Scan | None
    record: Any
    chains: int

    def lay_out(self, graph: Graph | None = None) -> Setup:
        """Decide on scan, recorded cells and layout; the chains have no starts yet."""
        model, kernel = self.model, self.kernel
        graph = compile_graph(model, among=kernel.kinds) if graph is None else graph
        units = units_of(kernel, graph)
        graph = graph if units is None else replace(graph, units=units)
        record = lay_out(model, graph, kernel, self.record)
        scan, layout = choose_scan_and_layout(model, graph, kernel, self.scan, record, self.chains)
        return Setup(model, kernel, scan, graph, record, layout, recipe=self)


@dataclass(frozen=True)
class Setup:
    """A run before its first step, with everything that is decided in advance.

    Attributes
    ----------
    model, kernel, scan
        The kernel is resolved and tuned.
    graph : Graph
        The compiled model, with the units that the kernel visits.
    record : TapeLayout
        What is recorded in which cell.
    layout : ChainLayout
        How chains are laid out for compiled code.
    starts : list of arrays
        Where the chains start.
    entropy : int
        The seed.
    budget : Budget or None
        The length of the run; None if the caller decides it during the run.
    thin : int
        Sweeps from one draw to the next.
    start : str or None
        The start that was asked for, as plans describe it.
    recipe : Recipe or None
        The recipe from which workers lay out chains.
    """

    model: Any
    kernel: Kernel
    scan: Scan
    graph: Graph
    record: TapeLayout
    layout: ChainLayout
    starts: tuple[Array, ...] = ()
    entropy: int = 0
    budget: Budget | None = None
    thin: int = 1
    start: str | None = None
    remarks: tuple[KernelWarning, ...] = ()
    recipe: Recipe | None = None

    @cached_property
    def parameters(self) -> Any:
        """The parameters of the kernel as compiled code sees them."""
        return self.kernel.parameters(self.layout.moving)

    @cached_property
    def schedule(self) -> Any:
        """The visits of the scan as compiled code sees them."""
        return self.layout.schedule()

    def starting_at(self, starts: Sequence[Array]) -> Setup:
        """Return the same set-up with other starts."""
        found = replace(self, starts=tuple(starts))
        vars(found).update(parameters=self.parameters, schedule=self.schedule)
        return found

    @cached_property
    def plan(self) -> Plan:
        """Everything that determines the numbers, as plain data."""
        return Plan(
            gibbsite=package_version(),
            model=self.graph.digest,
            kernel=as_data(self.kernel.describe()),
            scan=describe_scan(self.scan),
            record=list(map(as_data, map(methodcaller("describe"), self.record.recorders))),
            chains=len(self.starts),
            thin=self.thin,
            warmup=0 if self.budget is None else self.budget.warmup,
            entropy=self.entropy,
            start=self.start,
            form=self.layout.name,
        )


def prepare(
    model: Model,
    kernel: Kernel | None = None,
    scan: Scan | None = None,
    record: Any = None,
    chains: int = 1,
    *,
    rng: Any = None,
    start: Any = None,
    length: Length | None = None,
    threads: int = 1,
    tune: bool = True,
    tuned: dict[str, Array] | None = None,
) -> Setup:
    """Decide everything about a run: graph, kernel, scan, layout, budget, starts.

    Parameters
    ----------
    model, kernel, scan, record, chains, rng, start
        As in :func:`gibbsite.sample`.
    length : Length, optional
        How long the run will be; without it, there is no budget and the caller decides.
    threads : int
        Threads for pilot runs.
    tune : bool
        Whether kernels that tune themselves may make pilot runs.
    tuned : dict, optional
        The result of earlier pilot runs, from a checkpoint, instead of new ones.

    Examples
    --------
    >>> import gibbsite as gs
    >>> setup = prepare(gs.ising_grid((3, 3)), chains=2, rng=1)
    >>> setup.kernel, setup.scan, setup.layout.name
    (Gibbs(rule='heat-bath'), Systematic(order=None), 'plain')
    """
    setup = lay_out_chains(model, kernel, scan, record, chains, length)
    kernel, graph, entropy = setup.kernel, setup.graph, read_entropy(rng)
    budget = None
    if length is not None:
        natural = kernel.natural_sweeps(model.n_sites) if isinstance(kernel, Finite) else None
        budget = length.budget(graph.n_units, natural, kernel.estimates)
    starts = start_states(model, graph, chains, start, entropy)
    if tune and isinstance(kernel, Tunable) and kernel.tunes:
        from gibbsite.sampling.pilot import tune_kernel

        kernel = tune_kernel(setup, starts, entropy, threads, budget, tuned)
        setup = _with_kernel(setup, kernel)
    parameters = kernel.parameters(setup.layout.moving)  # refuses invalid ones before anything else is asked of it
    found = replace(
        setup,
        starts=tuple(starts),
        entropy=entropy,
        budget=budget,
        thin=1 if length is None else length.thin,
        start=None if start is None else str(as_data(start)),
        remarks=kernel.warnings(model, graph, setup.scan),
    )
    vars(found).update(parameters=parameters, schedule=setup.layout.schedule())
    return found


def lay_out_chains(
    model: Model, kernel: Kernel | None, scan: Scan | None, record: Any, chains: int, length: Length | None = None
) -> Setup:
    """Decide on graph, kernel, scan and layout; the chains have no starts yet."""
    kernel = scan.kernel() if kernel is None and scan is not None else kernel
    graph = compile_graph(model, among=() if kernel is None else kernel.kinds)
    kernel = default_kernel(graph) if kernel is None else kernel
    kernel.check(graph)
    setup = Recipe(model, kernel, scan, record, chains).lay_out(graph)
    if not isinstance(kernel, Resolvable):
        return setup
    given, graph, order = length or Length(), setup.graph, setup.scan
    visits = given.steps  # after the warmup; None if neither sweeps nor steps were given
    if given.sweeps is not None:
        visits = given.sweeps // given.thin * given.thin * graph.n_units
    outline = RunOutline(type(order).__name__, order.cycle(graph, model), graph.n_units, given.thin, visits)
    resolved = kernel.resolve(outline)
    return setup if resolved is setup.kernel else _with_kernel(setup, resolved)


def lay_out_plainly(
    model: Model, kernel: Kernel | None = None, scan: Scan | None = None, record: Any = None, graph: Graph | None = None
) -> Setup:
    """Lay chains out one by one, sites in the order of the model, for callers that need no other layout."""
    if graph is None:
        graph = compile_graph(model, among=() if kernel is None else kernel.kinds)
        kernel = default_kernel(graph) if kernel is None else kernel
        kernel.check(graph)
        graph = fit_graph(graph, kernel)
    assert kernel is not None
    scan = Systematic() if scan is None else scan
    cells = lay_out(model, graph, kernel, record)
    return Setup(model, kernel, scan, graph, cells, PlainLayout(graph, kernel, scan, cells, model))


def _with_kernel(setup: Setup, kernel: Kernel) -> Setup:
    """Return the set-up with another kernel of the same family: scan and layout may depend on it."""
    assert setup.recipe is not None
    recipe = replace(setup.recipe, kernel=kernel)
    scan, layout = choose_scan_and_layout(setup.model, setup.graph, kernel, recipe.scan, setup.record, recipe.chains)
    return replace(setup, kernel=kernel, scan=scan, layout=layout, recipe=recipe)
