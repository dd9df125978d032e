"""Model to arrays: the graph kinds, how one is chosen, and its coloring.

Each kind is a file of :mod:`gibbsite.graphs.kinds`; orders of sites for updates of many at once are in
:mod:`gibbsite.kernels.batched`; what is special about functions of users is in :mod:`gibbsite.graphs.functions`.
"""

from gibbsite.graphs.color import color_sites
from gibbsite.graphs.compile import compile_graph
from gibbsite.graphs.graph import Graph

__all__ = ["Graph", "color_sites", "compile_graph"]
