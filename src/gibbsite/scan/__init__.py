"""In which order sites are visited, as data."""

from gibbsite.scan.base import Scan
from gibbsite.scan.chromatic import Chromatic
from gibbsite.scan.drawn import RandomScan, Shuffled
from gibbsite.scan.systematic import FixedOrder, Palindromic, Systematic

__all__ = ["Chromatic", "FixedOrder", "Palindromic", "RandomScan", "Scan", "Shuffled", "Systematic"]
