"""One contest: ours and peers on one model, each with its speed and a figure that shows a wrong model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

from benchmarks.measure import Contestant, race
from benchmarks.report import Section, Target

HEAD = ["million updates per second", "cpu", "wall", "gibbsite's multiple", "range", "check"]


class Player(Protocol):
    """Someone in the race: makes ``sweeps`` sweeps of all chains per call."""

    sweeps: int

    def run(self, calls: int) -> None: ...


Maker = Callable[[], Player]


@dataclass(frozen=True)
class Contest:
    """A model and who takes part.

    Attributes
    ----------
    title : str
        What the model is called.
    work : int
        Updates in a sweep of all chains.
    ours : mapping
        How we enter it, "gibbsite" first.
    peers : mapping
        Distributions, and how to enter them; called only where they are installed.
    check : function
        The figure of a player that shows a wrong model, after the race.
    figure : str
        What that figure is.
    promises : mapping
        How many times the speed of a peer ours must be.
    """

    title: str
    work: int
    ours: Mapping[str, Maker]
    peers: Mapping[str, Maker]
    check: Callable[[Any], float]
    figure: str
    promises: Mapping[str, float] = field(default_factory=dict)


def enter(peers: Mapping[str, Maker]) -> dict[str, tuple[str, Player | str]]:
    """Return title and player of every peer, or why there is none, by the name of the distribution."""
    found: dict[str, tuple[str, Player | str]] = {}
    for name, make in peers.items():
        try:
            title = f"{name} {version(name)}"
        except PackageNotFoundError:
            found[name] = name, "not installed"
            continue
        try:
            found[name] = title, make()
        except ImportError:  # an old version, or one that something else it needs does not fit
            found[name] = title, "not importable"
    return found


def compete(contest: Contest, *, quick: bool) -> Section:
    """Hold one contest."""
    entrants = {name: (name, make()) for name, make in contest.ours.items()} | enter(contest.peers)
    playing: dict[str, Player] = {name: p for name, (_, p) in entrants.items() if not isinstance(p, str)}
    times = race(
        [Contestant(name, p.run, p.sweeps * contest.work, least=1) for name, p in playing.items()],
        repetitions=3 if quick else 7,
        seconds=0.2 if quick else 1.0,
    )
    targets, rows, data = [], [], {}
    for name, (title, player) in entrants.items():
        title = f"{contest.title}: {title}"
        if isinstance(player, str):
            rows.append([title, player, "", "", "", ""])
            continue
        seen, ratio = times[name], times["gibbsite"].against(times[name])
        spread, check = f"{_show(ratio.low)} .. {_show(ratio.high)}", contest.check(player)
        rates = (_show(rate.median / 1e6) for rate in (seen.rate, seen.wall_rate))
        rows.append([title, *rates, _show(ratio.median), spread, f"{contest.figure} {check:.4f}"])
        data[title] = {**seen.rate.to_dict(), "multiple": ratio.to_dict(), contest.figure: check}
        if name in contest.promises:
            bound = contest.promises[name]
            targets.append(Target(contest.title, ratio.median, bound, True, name, spread))
    return Section("peers", targets, HEAD, rows, data)


def _show(figure: float) -> str:
    """Return a figure that may be a thousand or a thousandth, at two digits or more."""
    if figure >= 100:
        return f"{figure:.0f}"
    return f"{figure:.2f}" if figure >= 1 else f"{figure:.2g}"
