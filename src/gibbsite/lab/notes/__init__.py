"""Experiments of lecture notes.

Misprinted formulas of the notes are shown beside corrected ones. There is one file for each experiment.
"""
