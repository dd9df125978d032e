"""Checks of the updates of a model against its joint density."""
