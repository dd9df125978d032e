"""Langevin kernels: steps along the gradient with noise, with or without an accept step.

    y = x + g M grad log p(x) + sqrt(2 g) L z,    M = L L^T, z normal

is a discretisation of the diffusion dX = M grad log p dt + sqrt(2) L dB, whose stationary density is p; the covariance
of a step is 2 g M. Discretisation changes the stationary density. MALA accepts y by the Metropolis-Hastings ratio and
is exact; ULA always accepts y and is biased: for a normal target of variance s^2 its stationary variance is

    2 g / (1 - (1 - g / s^2)^2) = 2 s^4 / (2 s^2 - g),    0 < g < 2 s^2.

With v = L^-1 (y - x) = g L^T grad(x) + sqrt(2 g) z, the reverse step has the noise -(v + g L^T grad(y)) / sqrt(2 g),
so the ratio of proposal densities needs no inverse:

    log q(x | y) - log q(y | x) = |z|^2 / 2 - |v + g L^T grad(y)|^2 / (4 g).

References
----------
.. [1] Roberts, G. O. and Tweedie, R. L. (1996). Exponential convergence of Langevin distributions and their
   discrete approximations. Bernoulli 2.
.. [2] Roberts, G. O. and Rosenthal, J. S. (1998). Optimal scaling of discrete approximations to Langevin
   diffusions. Journal of the Royal Statistical Society B 60 (acceptance 0.574).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from gibbsite._common.arrays import Floats
from gibbsite._numba.jit import Integer, implement
from gibbsite._numba.random.generators import Words
from gibbsite._numba.random.ziggurat import normal
from gibbsite.errors import ArgumentError
from gibbsite.graphs.functions.densities import density_at, evaluate_gradients, inside
from gibbsite.graphs.graph import Graph
from gibbsite.kernels.base import KernelWarning, step
from gibbsite.kernels.density.bias import Bias, bias_of_steps, curvature_at
from gibbsite.kernels.density.moves import (
    ACCEPTED,
    MOVES,
    MoveMemory,
    WalkingKernel,
    arrive_sloped,
    checked,
    decide,
    is_stuck,
    move_there,
    positive,
    ran_away,
    slope_at,
)
from gibbsite.kernels.density.tuning import pull_back, read_shape, stretch
from gibbsite.kernels.registry import register

_WANTED = 0.574


class MalaParameters(NamedTuple):
    """The target acceptance rate."""

    wanted: float


class UlaParameters(NamedTuple):
    """The type that selects the step; the step size is in the memory of the chain."""

    unused: int = 0


@register(proof="tests/proofs/test_densities.py", recommend={"MALA": {}})
@dataclass(frozen=True)
class MALA(WalkingKernel):
    """Metropolis-adjusted Langevin algorithm: steps along the gradient with an accept step; exact.

    Parameters
    ----------
    step : float, optional
        The step g: moves have covariance 2 g times the preconditioner. By default it is learned in the
        warmup, for an acceptance rate of 0.574.
    preconditioner : matrix (n, n), array of variances (n,), "adapt" or None
        The matrix M, ideally the covariance of the target. "adapt" learns it in the warmup; None is the identity.

    Examples
    --------
    >>> import gibbsite as gs
    >>> target = gs.LogDensity(lambda x: -0.5 * (x**2).sum(), lambda x: -x, dim=3)
    >>> result = gs.sample(target, gs.MALA(), sweeps=5000, rng=1, progress=False)
    >>> 0.4 < result.report["acceptance"] < 0.75
    True
    """

    sloped: ClassVar[bool] = True
    size_name: ClassVar[str] = "step"
    step: float | None = None
    preconditioner: npt.ArrayLike | str | None = None

    def learns(self) -> tuple[bool, bool]:
        """Return whether step and preconditioner are learned in the warmup."""
        return self.step is None, isinstance(self.preconditioner, str)

    def first_size(self, graph: Graph) -> Floats:
        """Return the step, or zero if it is learned; its first value is then computed at the start of the chain."""
        return np.array([0.0 if self.step is None else positive("the step of MALA", self.step)])

    def first_factor(self, graph: Graph) -> Floats:
        """Return the factor of the preconditioner."""
        if isinstance(self.preconditioner, str) and self.preconditioner != "adapt":
            raise ArgumentError(f'the preconditioner must be numbers or "adapt", got {self.preconditioner!r}.')
        if isinstance(self.preconditioner, str) and self.step is not None:
            raise ArgumentError("a given step needs a given preconditioner; leave out step to learn both.")
        if self.preconditioner is None or isinstance(self.preconditioner, str):
            return np.ones(graph.n_sites)
        return read_shape(self.preconditioner, graph.n_sites, "the preconditioner")

    def parameters(self, graph: Graph) -> MalaParameters:
        """Return the target acceptance rate."""
        self.first_size(graph), self.first_factor(graph)  # refuses invalid arguments
        return MalaParameters(_WANTED)


@register(proof="tests/proofs/test_densities.py")
@dataclass(frozen=True)
class ULA(WalkingKernel):
    """Unadjusted Langevin algorithm: steps along the gradient without an accept step; biased.

    The bias vanishes with the step: for a normal target of variance s^2, draws have variance 2 s^4 / (2 s^2 - step).
    With steps of 2 s^2 or more, chains diverge. Moves out of the bounds of a target are rejected.

    Parameters
    ----------
    step : float
        The step g: moves have covariance 2 g times the preconditioner.
    preconditioner : matrix (n, n) or array of variances (n,), optional
        The matrix M, by default the identity.

    Examples
    --------
    >>> import warnings
    >>> import gibbsite as gs
    >>> target = gs.LogDensity(lambda x: -0.25 * x[0] ** 2, lambda x: -0.5 * x, dim=1)
    >>> with warnings.catch_warnings(record=True):
    ...     result = gs.sample(target, gs.kernels.ULA(1.0), sweeps=20_000, rng=1, progress=False)
    >>> 2.5 < result.marginals["0"]["sd"] ** 2 < 2.8  # 2 * 4 / (4 - 1) = 2.67, not 2
    True
    """

    exact: ClassVar[bool] = False
    sloped: ClassVar[bool] = True
    rejects: ClassVar[bool] = False
    size_name: ClassVar[str] = "step"
    step: float
    preconditioner: npt.ArrayLike | None = None

    def first_size(self, graph: Graph) -> Floats:
        """Return the step."""
        return np.array([positive("the step of ULA", self.step)])

    def first_factor(self, graph: Graph) -> Floats:
        """Return the factor of the preconditioner."""
        if self.preconditioner is None:
            return np.ones(graph.n_sites)
        return read_shape(self.preconditioner, graph.n_sites, "the preconditioner")

    def parameters(self, graph: Graph) -> UlaParameters:
        """Return the type that selects the step."""
        self.first_size(graph), self.first_factor(graph)  # refuses invalid arguments
        return UlaParameters()

    def bias(self, graph: Graph, place: Floats, sds: Floats, memories: Sequence[Any]) -> Bias | None:
        """Return the bias, estimated near the mean of a run."""

        def gradients(places: Floats) -> Floats:
            room = np.concatenate([places, np.zeros_like(places)], axis=1)
            evaluate_gradients(graph.arrays, room)
            return room[:, place.size :]

        n, factor = place.size, self.first_factor(graph)
        root = np.diag(factor) if factor.size == n else factor.reshape(n, n)
        curvature = curvature_at(gradients, place, sds)
        g = float(memories[0].size[0])
        return bias_of_steps(gradients, place, curvature, g, root @ root.T, np.zeros((n, n)))

    def warnings(self, model: Any, graph: Graph, scan: Any) -> tuple[KernelWarning, ...]:
        """Warn that draws are biased, and state the bias for normal targets."""
        return (KernelWarning(f"ULA has no accept step: {bias_text(self.step)}; gs.MALA() is exact.", grave=True),)


def bias_text(g: float) -> str:
    """Return a description of the bias of a step without an accept step, for a normal target."""
    return (
        f"its draws are biased even in long runs, and standard errors do not show the bias. For a normal target of "
        f"variance s^2, draws have variance 2 s^4 / (2 s^2 - g): with the step g = {g:.4g}, {_share(g, 10)} too "
        f"large for s^2 = {10 * g:.3g}, {_share(g, 1)} for s^2 = {g:.3g}"
    )


def _share(g: float, times: float) -> str:
    return f"{100.0 * (1.0 / (1.0 - 0.5 / times) - 1.0):.3g} %"


@implement(step, MalaParameters)
def _move_mala(
    params: MalaParameters, arrays: Any, memory: MoveMemory, x: Floats, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Make a step of MALA."""
    if is_stuck(memory) or not arrive_sloped(arrays, memory, x):
        return rng
    n = x.size
    here, there, noise, factor = memory.here, memory.there, memory.noise, memory.factor
    pull_back(factor, here, noise)
    if memory.size[0] == 0.0:
        # scale the step by the size of the drift: at a typical place |L^T grad|^2 is about n if M is the covariance
        total = 0.0
        for k in range(n):
            total += noise[k] * noise[k]
        memory.size[0] = float(n) ** (-1.0 / 3.0) * (n / total if total > 0.0 else 1.0)
    g = memory.size[0]
    root = math.sqrt(2.0 * g)
    forth = 0.0
    for k in range(n):
        rng, z = normal(rng)
        forth += z * z
        noise[k] = g * noise[k] + root * z
    stretch(factor, noise, 1.0, x, there)
    value = -math.inf
    gain = -math.inf
    if not ran_away(memory, there):
        value = checked(memory, density_at(arrays, there), there)
    if value > -math.inf and slope_at(arrays, memory, there):
        back = 0.0
        # noise becomes v + g L^T grad(y), entry by entry
        if factor.size == n:
            for k in range(n):
                total = noise[k] + g * factor[k] * there[n + k]
                back += total * total
        else:
            for k in range(n):
                total = noise[k]
                for m in range(k, n):
                    total += g * factor[m * n + k] * there[n + m]
                back += total * total
        gain = value - memory.now[0] + 0.5 * forth - back / (4.0 * g)
    return decide(memory, x, value, gain, params.wanted, rng)


@implement(step, UlaParameters)
def _move_ula(
    params: UlaParameters, arrays: Any, memory: MoveMemory, x: Floats, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Make a step of ULA."""
    if is_stuck(memory) or not arrive_sloped(arrays, memory, x):
        return rng
    there, noise = memory.there, memory.noise
    g = memory.size[0]
    root = math.sqrt(2.0 * g)
    pull_back(memory.factor, memory.here, noise)
    for k in range(x.size):
        rng, z = normal(rng)
        noise[k] = g * noise[k] + root * z
    stretch(memory.factor, noise, 1.0, x, there)
    if not ran_away(memory, there) and inside(arrays, there) and slope_at(arrays, memory, there):
        memory.counts[ACCEPTED] += 1
        move_there(memory, x, 0.0)
    memory.counts[MOVES] += 1
    return rng
