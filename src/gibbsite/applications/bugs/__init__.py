"""Models in the BUGS language: read, derived into Gibbs updates, and sampled.

``syntax`` describes a program as a tree, which ``parser`` makes from text. ``data`` reads values. The other modules
turn program and values into arrays, derive an update for every unknown, and run the updates.
"""
