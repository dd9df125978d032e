"""Herded Gibbs: conditionals followed by counting instead of by chance."""
