"""The race against peers: its machinery, and that all players sample the model they are given.

A peer is tested where it is installed, on models that leave next to nothing to chance.
"""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from benchmarks import workloads
from benchmarks.layers import CHAINS, Machine, Ours, WithNumPy
from benchmarks.measure import Contestant, Times
from benchmarks.peers import contest, densities, machines, networks, programs, spins
from benchmarks.peers.networks import LEAVES, Network
from gibbsite.formats.files import example_path
from tests.data import ROOT

ALARM = example_path("alarm")


class Idle:
    """A player that stands still."""

    sweeps = 3

    def run(self, calls: int) -> None:
        pass


def pretend(contestants: list[Contestant], **how: Any) -> dict[str, Times]:
    """A race in which the k-th takes k seconds for an update."""
    return {c.name: Times([k], [k]) for k, c in enumerate(contestants, start=1)}


def absent() -> Any:
    raise ImportError("of an old version")


@pytest.mark.parametrize("promised", [True, False])
@pytest.mark.parametrize(
    ("installed", "make", "title", "said"),
    [
        (True, Idle, "tiny: thrml 1.0", None),
        (True, absent, "tiny: thrml 1.0", "not importable"),
        (False, Idle, "tiny: thrml", "not installed"),
    ],
)
def test_a_contest_without_a_peer_is_a_line_and_no_promise(
    promised: bool,
    installed: bool,
    make: Callable[[], Idle],
    title: str,
    said: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def version(name: str) -> str:
        if installed:
            return "1.0"
        raise PackageNotFoundError(name)

    monkeypatch.setattr(contest, "race", pretend)
    monkeypatch.setattr(contest, "version", version)
    promises = {"thrml": 8.0} if promised else {}
    tiny = contest.Contest(
        "tiny", 16, {"gibbsite": Idle, "other": Idle}, {"thrml": make}, lambda _: 0.5, "error", promises
    )
    section = contest.compete(tiny, quick=True)
    plays = said is None
    assert section.rows[-1][0] == title
    assert section.rows[-1][3:] == (["3.00", "3.00 .. 3.00", "error 0.5000"] if plays else ["", "", ""])
    assert section.rows[-1][1] == ("3.3e-07" if plays else said)
    assert [target.seen for target in section.targets] == ([3.0] if plays and promised else [])
    assert all(len(row) == len(section.head) for row in section.rows)
    json.dumps(section.data)


def test_the_group_of_dependencies_lists_all_peers() -> None:
    rooms = (spins, machines, programs, networks, densities)
    racing = {name for room in rooms for held in room.contests(True) for name in held.peers}
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    assert {re.match(r"[\w-]+", line)[0] for line in groups["peers"]} == racing  # type: ignore[index]


def test_bundles_of_one_contest_are_different_chains() -> None:
    ours = spins.Ours(workloads.grid("tiny", 8), 100, "ising")
    ours.run(2)
    assert len(np.unique(ours.spins(), axis=0)) == 100


def pinned() -> tuple[workloads.Spins, Any]:
    """A grid and the one state it is ever in: fields pin every other site, and those pin the rest.

    Once there, the log-odds of a site to leave are at most -2 x 3 x 3.5, so that any of nine sites is found
    elsewhere with a probability below 1e-8.
    """
    state = np.array([1, -1, -1, -1, 1, 1, -1, 1, 1])
    plain = workloads.grid("pinned", 3)
    i, j = plain.pairs.T
    fields = np.where(np.arange(9) % 2, 0.0, 15.0 * state)
    return workloads.Spins("pinned", plain.pairs, 3.5 * state[i] * state[j], fields, (3, 3)), state


SPINS: dict[str, tuple[str, Callable[[workloads.Spins], Any]]] = {
    "lattice": ("gibbsite", lambda model: spins.Ours(model, 1, "lattice")),
    "sample": ("gibbsite", lambda model: programs.Ours(model, 50)),
    "thrml": ("thrml", lambda model: spins.Thrml(model, 1, 50)),
    "thrml, chains": ("thrml", lambda model: spins.Thrml(model, 3, 50)),
    "dwave-samplers": ("dwave-samplers", lambda model: spins.DWave(model, 3, 50)),
    "openjij": ("openjij", lambda model: spins.OpenJij(model, 3, 50)),
    "pymc": ("pymc", lambda model: programs.PyMC(model, 50)),
    "numpyro": ("numpyro", lambda model: programs.NumPyro(model, 50)),
}


def pinned_machine() -> tuple[Machine, Any]:
    """A machine and the one state it is ever in: log-odds to leave it are -40 at most, after a sweep."""
    rng = np.random.default_rng(3)
    v, h = rng.integers(0, 2, 20), rng.integers(0, 2, 16)
    v[0] = 1
    weights = np.zeros((20, 16))
    weights[0] = 80.0 * (2 * h - 1)
    visible = 60.0 * (2 * v - 1)
    visible[0] = 60.0 + 80.0 * 16
    return Machine(weights, visible, -40.0 * (2 * h - 1)), np.concatenate([v, h])


MACHINES: dict[str, tuple[str, Callable[[Machine], Any]]] = {
    "layers": ("gibbsite", Ours),
    "marginals": ("gibbsite", lambda machine: Ours(machine, keep=True)),
    "NumPy": ("gibbsite", WithNumPy),
    "torch": ("torch", lambda machine: machines.Torch(machine, 2)),
    "thrml": ("thrml", lambda machine: machines.ThrmlMachine(machine.spins(), CHAINS, 2)),
}


@pytest.mark.parametrize("name", MACHINES)
def test_players_draw_the_machine_they_are_given(name: str) -> None:
    distribution, make = MACHINES[name]
    needs(distribution)
    machine, state = pinned_machine()
    player = make(machine)
    player.run(2)
    assert (player.units() == state).all() and len(player.units()) == CHAINS
    assert machines.together(player.units(), machine) == pytest.approx(state[:20].mean() * state[20:].mean())


def needs(distribution: str) -> None:
    try:
        version(distribution)
    except PackageNotFoundError:
        pytest.skip(f"{distribution} is not installed")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SPINS)
def test_a_spin_sampler_finds_the_only_state_of_a_pinned_grid(name: str) -> None:
    distribution, make = SPINS[name]
    needs(distribution)
    model, state = pinned()
    player = make(model)
    player.run(50 // player.sweeps)
    player.run(50 // player.sweeps)
    seen = player.spins()
    kept = name in ("sample", "pymc", "numpyro")  # all draws, and those on the way there
    last = seen[-1:] if kept else seen
    assert (last == state).all()
    assert spins.neighbours(last, model) == (state[model.pairs[:, 0]] * state[model.pairs[:, 1]]).mean()


def some_spins() -> workloads.Spins:
    rng = np.random.default_rng(3)
    pairs = np.array([[0, 1], [1, 2], [0, 2], [2, 3]], np.int32)
    return workloads.Spins("tiny", pairs, rng.normal(size=4), rng.normal(size=4))


def pymc_density(model: workloads.Spins) -> Callable[[Any], float]:
    density = programs.pymc_program(model).compile_logp()
    return lambda codes: float(density({"up": codes}))


def numpyro_density(model: workloads.Spins) -> Callable[[Any], float]:
    spins.keep_to_one_thread()
    from numpyro.infer.util import log_density

    program = programs.numpyro_program(model)
    return lambda codes: float(log_density(program, (), {}, {"up": codes})[0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "density", "precision"), [("pymc", pymc_density, 1e-12), ("numpyro", numpyro_density, 1e-5)]
)
def test_a_program_has_the_density_of_the_model(
    name: str, density: Callable[[workloads.Spins], Callable[[Any], float]], precision: float
) -> None:
    needs(name)
    workload = some_spins()
    model, theirs = workload.model(), density(workload)
    states = [np.array(codes) for codes in itertools.product((0, 1), repeat=4)]
    gaps = [theirs(codes) - model.log_potential(codes) for codes in states]
    assert np.ptp(gaps) < precision


ANSWERING = {"gibbsite": networks.Ours, "pyagrum": networks.PyAgrum, "pgmpy": networks.Pgmpy}
RARE = 1e-9


def near_certain(folder: Path, **evidence: str) -> Network:
    """A network that is in a = 2, b = 1, c = 3 but for a share of about RARE of the time.

    Tables are uneven in every direction, so that no exchange of sites, states or parents goes unnoticed. From
    any other state a sweep leads there with a probability above 0.2.
    """
    b = np.array([[1 - RARE, RARE], [1 - RARE, RARE], [RARE, 1 - RARE]])
    c = np.full((3, 2, 4), 0.25)
    c[2, 1] = RARE, RARE, RARE, 1 - 3 * RARE
    factors = [(("a",), [RARE, RARE, 1 - 2 * RARE]), (("a", "b"), b), (("a", "b", "c"), c)]
    model = gs.FactorGraph({"a": 3, "b": 2, "c": 4}, factors, directed=True)
    gs.write_model(model, folder / "certain.bif")
    return Network(folder / "certain.bif", evidence)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ANSWERING)
def test_a_network_sampler_answers_in_the_order_of_the_file(name: str, tmp_path: Path) -> None:
    needs(name)
    network = near_certain(tmp_path)
    assert np.allclose(network.exact, [0, 0, 1, 0, 1, 0, 0, 0, 1], atol=1e-6)
    player = ANSWERING[name](network, 400)
    # in half of 400 sweeps somewhere else: less than 0.8**200 = 4e-20
    assert (player.answer(1).round() == network.exact.round()).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["gibbsite", "pyagrum"])
def test_evidence_is_heeded(name: str, tmp_path: Path) -> None:
    needs(name)
    network = near_certain(tmp_path, b="0")
    # all states of a and c are equally likely now, each drawn on its own: beyond 0.1 in 4000 is 14 deviations
    answer = ANSWERING[name](network, 4000).answer(1)
    assert np.allclose(network.exact, [1 / 3] * 3 + [1 / 4] * 4, atol=1e-6)
    assert np.abs(answer - network.exact).max() < 0.1


def test_the_error_is_that_of_the_mean_answer() -> None:
    class Alternating(networks.Answering):
        def answer(self, seed: int) -> Any:
            return self.network.exact + (0.25 if seed % 2 else -0.25)

    player = Alternating(Network(ALARM, LEAVES), 1)
    player.run(1)
    assert player.error() == pytest.approx(0.25)
    player.run(3)
    assert player.error() == pytest.approx(0.0)


def test_the_evidence_on_alarm_makes_a_difference() -> None:
    network = Network(ALARM, LEAVES)
    blind = network.listed(gs.solve_exact(gs.read_model(ALARM)).marginals)
    assert np.abs(blind - network.exact).mean() == pytest.approx(0.15, abs=0.005)
