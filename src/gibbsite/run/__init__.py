"""Let it run: chains, blocks, checkpoints, and what is recorded.

``chain`` has the loop, ``engine`` blocks, budgets and checkpoints, ``tape`` what compiled code writes,
``recorders/`` what else can be recorded, ``chain_layout`` how chains are laid out.
"""

from gibbsite.run.record import BestState, Draws, Energy, Joint, Marginals, PairMoments
from gibbsite.run.recorders.agreement import Agreement
from gibbsite.run.recorders.magnetisation import Magnetisation
from gibbsite.run.recorders.observable import Observable
from gibbsite.run.recorders.overlap import Overlap
from gibbsite.run.recorders.two_point import TwoPoint

__all__ = [
    "Agreement",
    "BestState",
    "Draws",
    "Energy",
    "Joint",
    "Magnetisation",
    "Marginals",
    "Observable",
    "Overlap",
    "PairMoments",
    "TwoPoint",
]
