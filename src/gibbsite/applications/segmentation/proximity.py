"""How far pixels are from scribbles along paths that avoid edges: geodesic distances [1]_.

A step between neighbouring pixels is as long as their distance plus the difference of their colours in units
of COLOUR_STEP. A label is the more probable the nearer its scribbles are.

References
----------
.. [1] Bai, X. and Sapiro, G. (2009). Geodesic matting: a framework for fast interactive image and video
   segmentation and matting. International Journal of Computer Vision 82(2).
"""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Array, Floats32
from gibbsite.applications.segmentation.field import Neighbourhood, squared_steps

#: Difference of colours, in L*a*b*, that is as far as one pixel.
COLOUR_STEP = 5.0
#: Distances are told apart from so many pixels on.
_BLUR = 3.0


def log_proximity(around: Neighbourhood, colours: Floats32, scribbles: Array, labels: int) -> Floats32:
    """Return minus the logarithms of the distances of all nodes from the scribbles of each label.

    ``around``: all pixels (or superpixels) and their neighbours; ``colours`` (n, 3): their colours in L*a*b*;
    ``scribbles`` (n,): their labels, -1 where there is no scribble; ``labels``: number of labels. The result (n,
    labels) is ``-log(distance + 3)`` with distances in pixels; a label without scribbles has the largest distance.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    n = scribbles.size
    steps = 1.0 / around.closeness + np.sqrt(squared_steps(colours, around.pairs)) / COLOUR_STEP
    graph = csr_matrix((steps, (around.pairs[:, 0], around.pairs[:, 1])), shape=(n, n))
    logs = np.empty((n, labels), np.float32)
    for label in range(labels):
        sources = np.flatnonzero(scribbles == label)
        far = np.full(n, np.inf)
        if sources.size:
            far = dijkstra(graph, directed=False, indices=sources, min_only=True)
        finite = np.isfinite(far)
        far[~finite] = far[finite].max(initial=float(n))
        logs[:, label] = -np.log(far + _BLUR)
    return logs
