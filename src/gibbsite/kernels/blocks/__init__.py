"""Kernels that draw blocks of sites jointly, from their exact conditional distribution given all other sites.

``gibbs`` is the kernel; ``tables`` lays out the clique tables of blocks, ``filtering`` passes over them, ``cover``
finds blocks of sites that depend strongly on each other, and ``strips`` draws half of a lattice at a time. ``cutset``
is the kernel that draws a few sites with all others summed out; ``message_tables`` and ``messages`` keep the messages
of the junction tree of the others.
"""
