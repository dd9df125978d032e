"""Chromatic scan: all sites of one color, then the next color (Gonzalez et al., 2011).

Sites of one color are conditionally independent, so a sweep is distributed like a systematic scan in that
order, and the sites of a color may be updated at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gibbsite._common.wording import part
from gibbsite.errors import IncompatibleError
from gibbsite.graphs.color import color_sites
from gibbsite.graphs.graph import Graph
from gibbsite.models.base import Model
from gibbsite.scans.base import Phased, Scan
from gibbsite.scans.registry import register


@register(name="chromatic")
@dataclass(frozen=True)
class Chromatic(Scan):
    """Every site once per sweep, color by color.

    References
    ----------
    Gonzalez et al. (2011), Parallel Gibbs sampling: from colored fields to thin junction trees.

    Examples
    --------
    >>> import gibbsite as gs
    >>> graph = gs.graphs.compile_graph(gs.ising_grid((1, 4), coupling=1.0))
    >>> gs.Chromatic().schedule(graph).order.tolist()
    [0, 2, 1, 3]
    """

    once: ClassVar[bool] = True
    by_color: ClassVar[bool] = True

    def schedule(self, graph: Graph, model: Model | None = None) -> Phased:
        """Return the visits."""
        if graph.units is not None:
            raise IncompatibleError(
                f"{part('Chromatic')} colors single sites, and this kernel moves blocks of them; use "
                f"{part('Systematic')}."
            )
        color = color_sites(graph)
        start = np.concatenate([[0], np.cumsum(np.bincount(color))]).astype(np.int64)
        return Phased(np.argsort(color, kind="stable").astype(np.int32), start)
