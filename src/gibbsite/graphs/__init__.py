"""Compilation of models to arrays: graph kinds, the choice among them, and colorings.

Each kind is a file of :mod:`gibbsite.graphs.kinds`. Layouts for batched updates are in :mod:`gibbsite.kernels.batched`,
and the parts that concern users' functions in :mod:`gibbsite.graphs.functions`.
"""

from gibbsite.graphs.color import color_sites
from gibbsite.graphs.graph import Graph, compile_graph

__all__ = ["Graph", "color_sites", "compile_graph"]
