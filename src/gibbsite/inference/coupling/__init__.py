"""Pairs of chains that share their random numbers and meet: distance to stationarity, estimates without bias.

``pair`` moves a pair, ``couple`` many of them.
"""

from gibbsite.inference.coupling.couple import Coupling as Coupling
from gibbsite.inference.coupling.couple import couple as couple
