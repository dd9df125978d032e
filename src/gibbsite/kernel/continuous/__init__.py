"""Gibbs sampling of models whose factors are functions."""
