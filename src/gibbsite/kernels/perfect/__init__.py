"""Perfect sampling by coupling from the past: ``perfect`` is the kernel, and ``bounds`` follows all states at once."""
