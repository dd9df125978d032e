"""Rungs of tempered chains on several processes: the bytes of one, whoever moves which rungs."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.sampling.executor import Executor
from gibbsite.sampling.executors.partitions.links import Link
from gibbsite.sampling.executors.partitions.rungs import cut_block, join_block, move_block
from gibbsite.sampling.executors.segment import lay_out_run
from gibbsite.sampling.setup import Recipe
from gibbsite.scans.base import period
from tests.sampling.executors import running
from tests.sampling.executors.running import same

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::gibbsite.errors.ConvergenceWarning")]


class InOneProcess(Executor):
    """Shares on threads of this process, with sockets between them."""

    block_seconds = 0.0

    def __init__(self, hosts: int, threads: int = 1) -> None:
        self.hosts, self.threads = hosts, threads

    def employ(self, recipe: Recipe, say: Any, form: Any = None) -> Executor:
        self.recipe, self.run = recipe, str(id(recipe))
        return self

    def advance(self, chains: Any, rounds: int, length: int, keep: bool) -> float:
        ensemble = self.recipe.kernel.ensemble(chains.layout.moving)
        assert ensemble is not None
        hosts = min(self.hosts, ensemble.most)
        pairs = list(zip(chains.states, chains.tapes, strict=True))
        cycle = int(period(chains.schedule))
        assert length % cycle == 0
        block = cut_block(ensemble, pairs, hosts, rounds, length // cycle, keep)
        links: list[dict[int, Link]] = [{} for _ in range(hosts)]
        for i in range(hosts):
            for j in range(i):
                one, other = socket.socketpair()
                links[i][j], links[j][i] = Link(one), Link(other)
        worker = lay_out_run(self.run, self.recipe)

        def move(host: int) -> Any:
            return move_block(worker, block.part(host), host, links[host], self.threads)

        with ThreadPoolExecutor(hosts) as pool:
            told = list(pool.map(move, range(hosts)))
        for own in links:
            for link in own.values():
                link.close()
        for number, (state, tape) in enumerate(pairs if rounds else []):
            joined = join_block(ensemble, block.bounds, told, number, state, tape)
            chains.states[number], chains.tapes[number] = joined
        return 1.0


def sample(model: Any, kernel: Any, executor: Executor | None = None, **how: Any) -> gs.Result:
    options = {"sweeps": 60, "warmup": 20, "chains": 2, "kernel": kernel, **how}
    return running.sample_by(executor, model, **options)


LADDER = (0.0, 0.3, 0.5, 0.7, 0.85, 0.95, 1.0)
LONG = tuple(np.linspace(0.0, 1.0, 37).tolist())


def tables() -> gs.FactorGraph:
    """Return a chain of three-state sites with a zero, which other rungs soften."""
    rng = np.random.default_rng(3)
    pairs = []
    for i in range(11):
        table = rng.gamma(1.0, size=(3, 3))
        table[i % 3, (i + 1) % 3] = 0.0
        pairs.append(((str(i), str(i + 1)), table))
    return gs.FactorGraph({str(i): 3 for i in range(12)}, pairs)


CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "Potts": (lambda: gs.potts_grid((6, 5), 3, 0.9), gs.Tempered(ladder=LADDER), {}),
    "zeros": (
        tables,
        gs.Tempered(ladder=LADDER, keep="all"),
        {"record": ["marginals", "energy"], "scan": gs.RandomScan(), "sweeps": gs.Sweeps(60, thin=2)},
    ),
    "clusters": (lambda: gs.potts_grid((6, 5), 3, 0.9), gs.Tempered(gs.SwendsenWang(), ladder=LADDER), {}),
    "a ladder that is found": (lambda: gs.potts_grid((6, 5), 3, 0.9), gs.Tempered(), {"sweeps": 100}),
    "side by side": (
        lambda: gs.ising_grid((6, 5), 0.8),
        gs.Tempered(ladder=LONG),
        {"sweeps": 150, "scan": gs.RandomScan()},
    ),
    "side by side, all rungs": (
        lambda: gs.ising_grid((6, 5), 0.8),
        gs.Tempered(ladder=LONG, keep="all"),
        {
            "record": [gs.Marginals(rao_blackwell=False), "energy", gs.recorders.Magnetisation()],
            "sweeps": gs.Sweeps(60, thin=2),
        },
    ),
    "side by side, in order": (lambda: gs.ising_grid((6, 5), 0.8), gs.Tempered(ladder=LONG), {}),
}


SHARES = ((1, 1), (2, 1), (3, 2), (7, 1))  # hosts, threads of each
FEW = ("zeros", "side by side", "side by side, all rungs")


@pytest.mark.parametrize(
    ("name", "shares"),
    [(name, SHARES[2:]) for name in FEW] + [pytest.param(name, SHARES, marks=pytest.mark.campaign) for name in CASES],
)
def test_shares_give_the_bytes_of_one_process(name: str, shares: Any) -> None:
    make, kernel, how = CASES[name]
    model = make()
    alone = sample(model, kernel, **how)
    for hosts, threads in shares:
        assert same(alone, sample(model, kernel, InOneProcess(hosts, threads), **how)), (hosts, threads)
