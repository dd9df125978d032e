"""Experiments of lecture notes.

Formulas that are misprinted there stand beside corrected ones; one file for each experiment.
"""
