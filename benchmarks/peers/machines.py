"""Restricted Boltzmann machines: many chains, a layer at a time.

torch is called as its users do: two products, two sigmoids and two draws to an alternation, by comparison
with uniform numbers: ``torch.bernoulli`` would make it take half as long again. thrml gets the layers as
blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.layers import CHAINS, Machine, Ours
from benchmarks.peers.contest import Contest
from benchmarks.peers.spins import Thrml


def together(units: NDArray[Any], machine: Machine) -> float:
    """Return how often a visible and a hidden unit are on together, over all pairs and chains."""
    m = machine.visible.size
    return float((units[:, :m].mean(axis=1) * units[:, m:].mean(axis=1)).mean())


class Torch:
    """torch: matrix products on one thread."""

    def __init__(self, machine: Machine, sweeps: int) -> None:
        import torch

        torch.set_num_threads(1)
        self.torch, self.sweeps = torch, sweeps
        self.weights, self.visible, self.hidden = (
            torch.tensor(a, dtype=torch.float32) for a in (machine.weights, machine.visible, machine.hidden)
        )
        self.v = torch.randint(0, 2, (CHAINS, len(self.visible))).float()
        self.h = torch.zeros(CHAINS, len(self.hidden))

    def draw(self, odds: Any) -> Any:
        return (self.torch.rand(odds.shape) < odds.sigmoid_()).float()

    def run(self, calls: int) -> None:
        with self.torch.inference_mode():
            for _ in range(calls * self.sweeps):
                self.h = self.draw(self.torch.addmm(self.hidden, self.v, self.weights))
                self.v = self.draw(self.torch.addmm(self.visible, self.h, self.weights.t()))

    def units(self) -> NDArray[np.float32]:
        return np.concatenate([self.v.numpy(), self.h.numpy()], axis=1)


class ThrmlMachine(Thrml):
    """thrml: as on grids; the layers are blocks."""

    def units(self) -> NDArray[np.int64]:
        return (self.spins() + 1) // 2


def contests(quick: bool) -> Iterator[Contest]:
    """Yield one machine."""
    m, n = (100, 60) if quick else (784, 500)
    machine = Machine.draw(m, n)
    yield Contest(
        f"{CHAINS} chains of an RBM of {m} x {n}",
        CHAINS * machine.n_sites,
        {"gibbsite": lambda: Ours(machine)},
        {"torch": lambda: Torch(machine, 10), "thrml": lambda: ThrmlMachine(machine.spins(), CHAINS, 2)},
        lambda player: together(player.units(), machine),
        "together",
        {} if quick else {"torch": 1.0, "thrml": 1.0},  # promised of the full size only
    )
