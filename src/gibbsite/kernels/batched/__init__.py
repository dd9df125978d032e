"""Updates of many sites, or of many chains, at once: a module for each, with its layout of the model.

``base`` says what a batched update is, ``site_order`` how sites are reordered and ``cut`` how a layout is
partitioned; ``board`` and ``heatbath`` are shared by several of them.
"""
