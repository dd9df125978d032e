"""Segmentation of images: which label every pixel has.

``scribbles`` is what users call: it takes strokes (``strokes``), learns colours from them (``colours``,
``colour_models``) and how near they are (``proximity``), and samples a Potts field (``field``), coarse to
fine (``levels``) or on superpixels (``superpixels``). ``rendering`` writes label images with their legends,
certainty maps and overlays.
"""

from gibbsite.applications.segmentation.rendering import Legend, make_legend, write_segmentation
from gibbsite.applications.segmentation.scribbles import Segmented, segment_scribbles

__all__ = ["Legend", "Segmented", "make_legend", "segment_scribbles", "write_segmentation"]
