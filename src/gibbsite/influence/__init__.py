"""How much sites depend on each other, and what follows for scans: bounds known before sampling."""

from gibbsite.influence.bound import bound_influence
from gibbsite.influence.matrix import Influence, Norms, read_influence

__all__ = ["Influence", "Norms", "bound_influence", "read_influence"]
