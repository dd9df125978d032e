"""Best states: the search for a most probable state, its proof by toulbar2, and marginal MAP."""
