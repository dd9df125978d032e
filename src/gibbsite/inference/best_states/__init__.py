"""Best states: search for a most probable state, proofs by toulbar2, and marginal MAP."""
