"""What the chains of a run are made of: enough to lay them out, in this process or in another one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gibbsite.graphs.compile import compile_graph
from gibbsite.kernels.base import units_of
from gibbsite.sampling.chain_layout import ChainLayout, choose_scan_and_layout
from gibbsite.sampling.record import TapeLayout, lay_out

if TYPE_CHECKING:
    from gibbsite.graphs.graph import Graph
    from gibbsite.kernels.base import Kernel
    from gibbsite.models import Model
    from gibbsite.scans.base import Scan


def fit_graph(graph: Graph, kernel: Kernel) -> Graph:
    """Return the graph as a kernel goes through it: in units of its own, where they are not the sites."""
    units = units_of(kernel, graph)
    return graph if units is None else replace(graph, units=units)


@dataclass(frozen=True)
class Recipe:
    """A run without its length: everything that decides what its chains look like.

    Examples
    --------
    >>> import gibbsite as gs
    >>> recipe = Recipe(gs.ising_grid((3, 3)), gs.Gibbs(), gs.Systematic(), None, 4)
    >>> layout, form = recipe.lay_out()
    >>> form.name, form.graph.n_sites
    ('plain', 9)
    """

    model: Model
    kernel: Kernel
    scan: Scan | None
    record: Any
    chains: int

    def lay_out(self) -> tuple[TapeLayout, ChainLayout]:
        """Compile the model; return what is recorded, and how chains are laid out."""
        graph = fit_graph(compile_graph(self.model, among=self.kernel.kinds), self.kernel)
        layout = lay_out(self.model, graph, self.kernel, self.record)
        _, form = choose_scan_and_layout(self.model, graph, self.kernel, self.scan, layout, self.chains)
        return layout, form
