"""Learning of Bayesian networks from data: tables, missing cells, and structures.

``cases`` and ``files`` read data, ``structure`` reads structures, ``layout`` lays out tables as arrays, ``priors`` has
Dirichlet priors.
"""
