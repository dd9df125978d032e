"""Draws without bias by coupling from the past: ``perfect`` is the kernel, ``bounds`` follows all states at once."""
