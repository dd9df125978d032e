"""Tempering: replicas at several temperatures that exchange their states.

``tempered`` is the kernel, ``paired`` that with two replicas on each rung; ``ladder`` finds inverse temperatures,
``rungs`` are the models between reference and target and their sweeps, ``exchange`` makes swaps and counts them,
``side_by_side`` keeps replicas in vector registers, and ``sharing`` distributes rungs to processes.
"""
