"""Models from and to the outside, one format per file."""

from __future__ import annotations

from gibbsite.formats.bqm import from_bqm, from_ising, to_bqm
from gibbsite.formats.nx import from_networkx, to_networkx
from gibbsite.formats.pgmpy import from_pgmpy

__all__ = ["from_bqm", "from_ising", "from_networkx", "from_pgmpy", "to_bqm", "to_networkx"]
