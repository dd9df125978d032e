"""Sites in another order than the model's, for updates of many at once.

``site_order`` says how to get there and back; ``colored`` is for graphs of binary sites, ``checkered``,
``checkered_potts`` and ``counted`` are for lattices. :mod:`gibbsite.kernels.batched` moves over them.
"""
