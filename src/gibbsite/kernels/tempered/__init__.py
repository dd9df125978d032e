"""Tempering: replicas at several temperatures that exchange their states.

``tempered`` is the kernel, and ``paired`` a variant with two replicas on each rung; ``ladder`` finds inverse
temperatures, ``rungs`` has the models between reference and target and their sweeps, ``exchange`` makes and counts
swaps, ``side_by_side`` keeps replicas in vector registers, and ``sharing`` distributes rungs to processes.
"""
