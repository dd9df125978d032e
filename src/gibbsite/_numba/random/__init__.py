"""Random numbers for compiled code: streams, generators, and draws from distributions.

``generators`` contains the two generators, ``ziggurat`` normal and exponential numbers, ``poisson`` Poisson numbers,
and ``alias`` draws by weight.
"""
