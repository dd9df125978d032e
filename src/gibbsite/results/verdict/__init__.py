"""How far a run can be trusted.

``convergence`` has the rules, ``unreached`` states that no chain could enter, ``dispersed_starts`` chains
from other starts; ``judge`` asks them in the order of their cost (docs/diagnostics.md).
"""
