"""Random numbers of compiled code: seeds to streams, generators, and draws from distributions."""
