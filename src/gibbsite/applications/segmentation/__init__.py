"""Segmentation of images: which label every pixel has.

``scribbles`` is what users call: it takes strokes (``strokes``), learns colours from them (``colours``,
``colour_models``) and how near they are (``proximity``), and samples a Potts field (``field``), coarse to
fine (``levels``) or on superpixels (``superpixels``).

``segmenter`` learns classes from whole images: ``features`` finds visual words of patches, ``labelled`` reads
photographs with label maps, ``patch_field`` couples patches and labels them, ``coupling`` learns how
strongly, ``scoring`` counts wrong pixels, ``made_up`` draws pictures to try it on.

``rendering`` writes label images with their legends, certainty maps and overlays.
"""

from gibbsite.applications.segmentation.labelled import Example, LabelledImages, read_labelled
from gibbsite.applications.segmentation.made_up import make_pictures
from gibbsite.applications.segmentation.patch_field import Labelled, aimed_scan, field_model, label_field
from gibbsite.applications.segmentation.rendering import Legend, make_legend, write_segmentation
from gibbsite.applications.segmentation.scoring import HammingScore
from gibbsite.applications.segmentation.scribbles import Segmented, segment_scribbles
from gibbsite.applications.segmentation.segmenter import Segmentation, Segmenter

__all__ = [
    "Example",
    "HammingScore",
    "Labelled",
    "LabelledImages",
    "Legend",
    "Segmentation",
    "Segmented",
    "Segmenter",
    "aimed_scan",
    "field_model",
    "label_field",
    "make_legend",
    "make_pictures",
    "read_labelled",
    "segment_scribbles",
    "write_segmentation",
]
