"""Tempering: replicas at several temperatures that exchange their states.

``tempered`` is the kernel, ``paired`` that with two replicas on each rung; ``exchange`` makes swaps and counts them,
``side_by_side`` keeps replicas in vector registers, ``rungs`` are the models between reference and target, ``ladder``
their inverse temperatures, ``search`` finds these, and ``sharing`` distributes rungs to processes.
"""
