"""Model to arrays: the graph kinds, how one is chosen, and its coloring.

Each kind is a file of :mod:`gibbsite.graph.kinds`; orders of sites for updates of many at once are in
:mod:`gibbsite.graph.layouts`; what is special about functions of users is in :mod:`gibbsite.graph.functions`.
"""

from gibbsite.graph.color import color_sites
from gibbsite.graph.compile import compile_graph
from gibbsite.graph.graph import Graph

__all__ = ["Graph", "color_sites", "compile_graph"]
