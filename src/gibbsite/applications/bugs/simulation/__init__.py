"""A model evaluated outside of runs: at given values, at the draws of a run, and at draws from the prior."""
