"""Segmentation of images, which assigns a label to every pixel.

``scribbles`` extends scribbled labels to all pixels: it reads the scribbles (``strokes``), computes unary terms from
colours and distances (``unary``), and samples a Potts field (``field``), coarse to fine or on superpixels
(``coarsening``).

``segmenter`` learns classes from whole images: ``labelled`` reads photographs with label maps, ``features`` computes
visual words of patches, and ``patch_field`` couples patches and labels them.

``rendering`` writes label images with their legends, certainty maps and overlays.
"""

from gibbsite.applications.segmentation.labelled import (
    Example,
    HammingScore,
    LabelledImages,
    make_pictures,
    read_labelled,
)
from gibbsite.applications.segmentation.patch_field import Labelled, aimed_scan, field_model, label_field
from gibbsite.applications.segmentation.rendering import Legend, make_legend, write_segmentation
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
