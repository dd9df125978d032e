"""Influence of sites on each other, and bounds on the bias of scans that are known before sampling.

``bound`` computes the influence (``tables``, ``agreements`` and ``numbers`` have the formulas, ``matrix`` stores it),
``variation`` and ``certificate`` bound the bias of a scan, ``optimise`` finds DoGS scans (``descent``, ``blocks``), and
``independent`` makes short runs with confidence intervals.
"""

from gibbsite.inference.influence.blocks import BlockOrder
from gibbsite.inference.influence.bound import bound_influence
from gibbsite.inference.influence.certificate import Certificate, certify
from gibbsite.inference.influence.independent import ShortRuns, short_runs
from gibbsite.inference.influence.matrix import Influence, Norms, read_influence
from gibbsite.inference.influence.numbers import bound_curvature, start_distance
from gibbsite.inference.influence.optimise import DogsScan, dogs

__all__ = [
    "BlockOrder",
    "Certificate",
    "DogsScan",
    "Influence",
    "Norms",
    "ShortRuns",
    "bound_curvature",
    "bound_influence",
    "certify",
    "dogs",
    "read_influence",
    "short_runs",
    "start_distance",
]
