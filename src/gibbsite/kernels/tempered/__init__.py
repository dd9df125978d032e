"""Tempering: replicas at several temperatures that exchange their states.

``tempered`` is the kernel, ``paired`` that with two replicas on each rung; ``exchange`` has swaps and what
they count, ``side_by_side`` replicas in vector registers, ``rungs`` the models between reference and
target, ``energy`` their sums over whole states, ``ladder`` where they stand and ``search`` how that is found,
``free_energy`` what follows for the log-partition function.
"""
