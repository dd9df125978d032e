"""Tempering: replicas at several temperatures that exchange their states.

``tempered`` is the kernel, ``exchange`` the compiled swaps and what they count, ``rungs`` the models between
reference and target, ``ladder`` where they stand and how that is found, ``free_energy`` what follows for the
log-partition function.
"""
