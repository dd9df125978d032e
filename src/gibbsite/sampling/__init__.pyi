"""Public names of this package."""

from gibbsite.sampling import recorders as recorders
