"""Public names of this package, a line each; they are loaded when they are first used."""

from gibbsite.scans.base import Scan as Scan
from gibbsite.scans.chromatic import Chromatic as Chromatic
from gibbsite.scans.drawn import RandomScan as RandomScan
from gibbsite.scans.drawn import Shuffled as Shuffled
from gibbsite.scans.systematic import FixedOrder as FixedOrder
from gibbsite.scans.systematic import Palindromic as Palindromic
from gibbsite.scans.systematic import Systematic as Systematic
