"""Settings of all tests: property tests draw the same examples every time and have no time limit."""

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")
