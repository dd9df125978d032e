"""Whole jobs from data to answer, built from the parts of gibbsite.

``denoising`` restores images, ``entities`` finds names in text, ``logistic`` samples regressions of a million
rows, ``segmentation`` labels the pixels of images; the other files are parts of them.
"""

from gibbsite.applications.denoising import Denoised, denoise
from gibbsite.applications.dimod_sampler import DimodSampler, to_sampleset
from gibbsite.applications.entities.recognizer import EntityRecognizer
from gibbsite.applications.images import read_image, write_image
from gibbsite.applications.logistic import LogisticRegression, logistic_regression
from gibbsite.applications.noise import estimate_flip, estimate_sigma, estimate_two_levels
from gibbsite.applications.segmentation.scribbles import Segmented, segment_scribbles

__all__ = [
    "Denoised",
    "DimodSampler",
    "EntityRecognizer",
    "LogisticRegression",
    "Segmented",
    "denoise",
    "estimate_flip",
    "estimate_sigma",
    "estimate_two_levels",
    "logistic_regression",
    "read_image",
    "segment_scribbles",
    "to_sampleset",
    "write_image",
]
