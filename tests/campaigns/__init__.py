"""Long statistical campaigns, run by hand: ``python -m tests.campaigns.<name>``."""
