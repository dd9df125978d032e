"""Pairs of chains that share their random numbers and meet: distance to stationarity, estimates without bias.

:mod:`.pair` moves a pair, :mod:`.couple` many of them, :mod:`.result` says what follows.
"""

from gibbsite.inference.coupling.couple import couple as couple
from gibbsite.inference.coupling.result import Coupling as Coupling
