"""Zeros: which states are possible, how a start is found, and what single-site moves can reach.

``possible`` and ``propagate`` exclude states, ``start`` finds states of positive probability by drawing
forward, repair and backtracking, ``reach`` asks what single-site moves connect.
"""
