"""Model to arrays: the graph kinds, how one is chosen, and its coloring."""

import gibbsite.graph.conditionals
import gibbsite.graph.continuous
import gibbsite.graph.density
import gibbsite.graph.gaussian  # noqa: F401 (all register how their models become arrays)
from gibbsite.graph.color import color_sites
from gibbsite.graph.lower import Graph, compile_graph

__all__ = ["Graph", "color_sites", "compile_graph"]
