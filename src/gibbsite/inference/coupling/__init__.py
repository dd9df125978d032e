"""Pairs of coupled chains that meet: bounds on the distance to stationarity, and unbiased estimates.

``pair`` moves a pair, ``couple`` many of them.
"""

from gibbsite.inference.coupling.couple import Coupling as Coupling
from gibbsite.inference.coupling.couple import couple as couple
