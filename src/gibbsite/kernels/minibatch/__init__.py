"""Kernels that draw a minibatch of the factors of a site instead of reading all of them.

``poisson``, ``mgpmh``, ``min_gibbs``, ``double_min``, ``local``, ``poisson_mh`` and ``tuna_mh`` are the
kernels; ``factors`` declares how factors are drawn, and a module for each kind of graph implements it.
"""

from gibbsite._common.loading import load_modules

load_modules(__name__)  # each kind of graph has a module that implements how its factors are drawn
