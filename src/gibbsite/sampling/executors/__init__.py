"""Runs on more than one machine: chains in segments, which workers of a cluster make.

``segment`` is what a worker does, ``executor`` how segments are handed out and come back, ``dask`` and ``ray``
the two kinds of cluster, ``choosing`` reads what users say.
"""
