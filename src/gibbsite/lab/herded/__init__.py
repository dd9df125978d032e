"""Experiments of the herded Gibbs paper."""
