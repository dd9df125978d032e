"""Kernels that draw a minibatch of the factors of a site instead of reading all of them.

``poisson``, ``mgpmh``, ``min_gibbs``, ``double_min``, ``local``, ``poisson_mh`` and ``tuna_mh`` are the
kernels; ``factors`` says how factors are drawn, and a file for each kind of graph draws them.
"""

from gibbsite._common.loading import load_modules

load_modules(__name__)  # each kind of factors has a file that implements how they are drawn
