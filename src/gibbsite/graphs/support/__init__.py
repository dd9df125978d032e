"""Models with zeros: possible states, starts, and states that single-site moves can reach.

``possible`` excludes states; ``start`` finds states of positive probability by forward draws, repair and backtracking;
``reach`` finds out which states single-site moves connect.
"""
