"""Experiments of lecture notes."""
