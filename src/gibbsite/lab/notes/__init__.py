"""Experiments of lecture notes.

Formulas that are misprinted there stand beside corrected ones. One file each; ``banana_density``,
``comparison_targets`` and ``gaussian_sweeps`` are shared by several.
"""
