"""Cluster moves: sites that agree are joined at random, and each cluster moves as one.

:mod:`.agreement` tests whether all pairs of a model favour agreement; :mod:`.swendsen_wang` and :mod:`.wolff` are the
kernels.
"""
