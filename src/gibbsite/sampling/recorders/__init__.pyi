"""Public names of this package, a line each; they are loaded when they are first used."""

from gibbsite.sampling.record import BestState as BestState
from gibbsite.sampling.record import Draws as Draws
from gibbsite.sampling.record import Energy as Energy
from gibbsite.sampling.record import Joint as Joint
from gibbsite.sampling.record import Marginals as Marginals
from gibbsite.sampling.record import PairMoments as PairMoments
from gibbsite.sampling.recorders import base as base
from gibbsite.sampling.recorders.agreement import Agreement as Agreement
from gibbsite.sampling.recorders.magnetisation import Magnetisation as Magnetisation
from gibbsite.sampling.recorders.observable import Observable as Observable
from gibbsite.sampling.recorders.overlap import Overlap as Overlap
from gibbsite.sampling.recorders.two_point import TwoPoint as TwoPoint
