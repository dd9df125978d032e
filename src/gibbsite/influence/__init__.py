"""How much sites depend on each other, and what follows for scans: bounds known before sampling.

``bound`` has the influence of sites on each other, ``certificate`` bounds on the bias of a scan,
``optimise`` the DoGS scan, ``independent`` short runs with intervals.
"""

from gibbsite.influence.blocks import BlockOrder
from gibbsite.influence.bound import bound_influence
from gibbsite.influence.certificate import Certificate, certify
from gibbsite.influence.independent import ShortRuns, short_runs
from gibbsite.influence.matrix import Influence, Norms, read_influence
from gibbsite.influence.optimise import dogs
from gibbsite.influence.stored import DogsScan, load_scan

__all__ = [
    "BlockOrder",
    "Certificate",
    "DogsScan",
    "Influence",
    "Norms",
    "ShortRuns",
    "bound_influence",
    "certify",
    "dogs",
    "load_scan",
    "read_influence",
    "short_runs",
]
