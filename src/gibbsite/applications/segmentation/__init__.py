"""Segmentation of images: which label every pixel has.

``rendering`` writes label images with their legends, certainty maps and overlays.
"""

from gibbsite.applications.segmentation.rendering import Legend, make_legend, write_segmentation

__all__ = ["Legend", "make_legend", "write_segmentation"]
