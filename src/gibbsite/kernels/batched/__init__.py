"""Updates of many sites, or of many chains, at once: a module for each, with its layout of the model.

``base`` defines batched updates and orders of sites, and ``cut`` partitions layouts; ``board`` and ``heatbath`` are
shared by several updates.
"""
