"""Random numbers of compiled code: seeds to streams, generators, and draws from distributions.

``generators`` has the two generators, ``ziggurat`` normal and exponential numbers, ``poisson`` Poisson
numbers, ``alias`` draws by weight.
"""
