"""How far a run can be trusted.

``convergence`` has the rules, ``unreached`` states that no chain could enter, ``second_look`` chains from
other starts; ``judge`` asks them in the order of their cost (docs/diagnostics.md).
"""
