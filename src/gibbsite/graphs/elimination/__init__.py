"""Orders in which the sites of a graph are summed out, and what that costs.

``fillgraph`` is a graph that loses vertices, ``greedy`` eliminates by a rule, ``order`` searches for a good
order. Exact inference uses them, and so do kernels that draw many sites jointly.
"""
