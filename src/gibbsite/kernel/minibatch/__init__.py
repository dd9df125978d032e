"""Kernels that draw a minibatch of the factors of a site instead of reading all of them."""
