"""
Your own kernel
===============

A kernel is a frozen dataclass with one compiled step; the library does everything else. This tutorial writes Barker's
rule, verifies it by its exact transition matrices, and uses it like any other kernel.
"""

from dataclasses import dataclass
from typing import NamedTuple

import gibbsite as gs
from gibbsite._numba.jit import implement
from gibbsite._numba.random.generators import below, uniform
from gibbsite.graphs.local import weights
from gibbsite.kernels.base import Kernel, step
from gibbsite.kernels.registry import register
from gibbsite.testing import check_kernel

# %%
# The kernel proposes a state uniformly, and accepts it with probability w(new) / (w(new) + w(old)), where w are the
# conditional weights of the states of a site. Parameters are a named tuple, whose type selects the step.


class BarkerParameters(NamedTuple):
    """Barker's rule has no parameters."""

    unused: int = 0


@register(methods={"barker": ("MAR",)}, proof=[{}])
@dataclass(frozen=True)
class Barker(Kernel):
    """Propose a state uniformly, accept it with probability w(new) / (w(new) + w(old))."""

    conditional = False  # the step does not compute normalised conditionals

    def parameters(self, graph):
        """Return the parameters as compiled code sees them."""
        return BarkerParameters()


@implement(step, BarkerParameters)
def barker_step(parameters, arrays, memory, x, i, rng, cond, keep):
    """Move site i."""
    size, _ = weights(arrays, x, i, memory.work)
    old = memory.work[x[i]]
    rng, proposal = below(rng, size)
    rng, u = uniform(rng)
    new = memory.work[proposal]
    if u * (new + old) < new:
        x[i] = proposal
    return rng


# %%
# Verify it
# ---------
#
# ``check_kernel`` computes transition matrices on small models and tests that the target distribution is stationary,
# among other things. Here it looks at one kind of model; without ``kinds`` it looks at all of them.

report = check_kernel(Barker(), kinds=["ising"], scans_of=lambda n: [gs.Systematic()])
print(report)

# %%
# Use it
# ------

model = gs.ising_grid((10, 10), coupling=0.2)
result = gs.sample(model, Barker(), sweeps=3000, rng=1, progress=False)
print(result.diagnostics.line())
axes = gs.plot_marginals(result, shape=(10, 10))

# %%
# Compare it with the heat bath: Barker's rule moves less often, so its draws depend on each other for longer.

for kernel in (gs.Gibbs(), Barker()):
    run = gs.sample(model, kernel, sweeps=3000, rng=1, progress=False)
    print(type(kernel).__name__, round(run.diagnostics.ess_min))
