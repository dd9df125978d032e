"""Cluster kernels: sites that agree are joined at random, and all sites of a cluster move together.

:mod:`.agreement` tests whether all pairs of a model favour agreement; :mod:`.swendsen_wang` and :mod:`.wolff` are the
kernels.
"""
