"""Checkpoints of a search, from which it continues as if it had not been stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array
from gibbsite._common.boundary import Fail, Wanted, admit, between, check_header, fits
from gibbsite.errors import CheckpointError
from gibbsite.inference.best_states.searcher import BLOCKS, CUTSETS, SINGLE, Searcher
from gibbsite.sampling.checkpoint import failure, load_checkpoint
from gibbsite.sampling.stored_tuples import check_stored, flatten, restore
from gibbsite.scans.base import period

#: Version of the content; a new one for every change of what is kept, or of how a search continues from it.
LAYOUT = 2


def pack_search(
    searchers: list[Searcher], turns: Any, done: int, seconds: float
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the state of a search between two restarts: plain data, and copies of its arrays."""
    others: dict[str, Array] = {}
    generators = []
    for number, one in enumerate(searchers):
        others.update(flatten(f"{number}/searcher/state", one.state))
        others[f"{number}/best"], others[f"{number}/last"] = one.best, one.last
        others[f"{number}/ends"] = np.array(one.ends, np.float64)
        others[f"{number}/seen"] = _pack(one, sorted(one.seen))
        others[f"{number}/seen_values"] = np.array([one.seen[key] for key in sorted(one.seen)], np.float64)
        others[f"{number}/ties"] = _pack(one, sorted(one.ties))
        others[f"{number}/numbers"] = np.array([one.value, one.price, one.tie_value])
        generators.append(json.dumps([one.rng.bit_generator.state, one.moved, one.gained]))
    progress = {
        "search": LAYOUT,
        "done": done,
        "seconds": seconds,
        "rounds": dict(turns.rounds),
        "work": dict(turns.work),
        "found": turns.counts(),
        "generators": generators,
    }
    return progress, {name: part.copy() for name, part in others.items()}


def load_search(path: Path, plan: dict[str, Any], searchers: list[Searcher], turns: Any) -> tuple[int, float]:
    """Restore a search from its checkpoint; return the sweeps made and the seconds taken before."""
    about, arrays = load_checkpoint(path)
    progress, fail = about["progress"], failure(path)
    if "search" not in progress:
        raise CheckpointError(f"{path} is the checkpoint of another kind of run; give another file.")
    if progress["search"] is True or progress["search"] != LAYOUT:  # the first version was True
        raise CheckpointError(
            f"{path} was written by another version of gibbsite, which stored a search in another layout; "
            "remove it to start afresh, or resume with that version."
        )
    for name, value in json.loads(json.dumps(plan)).items():
        if about["plan"].get(name) != value:
            raise CheckpointError(
                f"{path} belongs to another search: its {name} differs; remove it to start afresh, or resume "
                "with the same model and arguments."
            )
    check_header(progress, _PROGRESS, fail)
    if len(progress["generators"]) != len(searchers):
        raise fail("it has a different number of chains")
    for number, one in enumerate(searchers):
        _check_searcher(number, one, arrays, fail)
        one.driver.states = [restore(f"{number}/searcher/state", one.state, arrays)]
        one.best, one.last = arrays[f"{number}/best"].copy(), arrays[f"{number}/last"].copy()
        one.ends = arrays[f"{number}/ends"].tolist()
        values = arrays[f"{number}/seen_values"].tolist()
        one.seen = dict(zip(_unpack(arrays[f"{number}/seen"]), values, strict=True))
        one.ties = set(_unpack(arrays[f"{number}/ties"]))
        one.value, one.price, one.tie_value = arrays[f"{number}/numbers"].tolist()
        one.driver.arrays = [one.task.priced(one.price)]
        try:
            state, one.moved, one.gained = json.loads(progress["generators"][number])
            one.rng.bit_generator.state = state
        except (TypeError, ValueError, KeyError, OverflowError, RecursionError):
            raise fail("the generator of a chain is damaged") from None
        if not isinstance(one.moved, bool) or one.gained not in (SINGLE, BLOCKS, CUTSETS):
            raise fail("the history of a chain is damaged")
    turns.rounds.update(progress["rounds"])
    turns.work.update(progress["work"])
    turns.provide(*progress["found"])
    return int(progress["done"]), float(progress["seconds"])


def _not_negative(value: Any) -> bool:
    return fits(value, float) and value >= 0


_KINDS = (SINGLE, BLOCKS, CUTSETS)
# The progress of a search in a file; see gibbsite._common.boundary.fits.
_PROGRESS = {
    "done": between(0, 1 << 62),
    "seconds": _not_negative,
    "rounds": lambda given: fits(given, {str: between(0, 1 << 62)}) and set(given) <= set(_KINDS),
    "work": lambda given: fits(given, {str: _not_negative}) and set(given) <= set(_KINDS),
    "found": lambda given: fits(given, [between(0, 1 << 12)]) and len(given) == 2,
    "generators": [str],
}


def _check_searcher(number: int, one: Searcher, arrays: dict[str, Array], fail: Fail) -> None:
    """Refuse the state of a chain if it does not fit the model."""
    cards = np.asarray(one.task.graph.cards)
    check_stored(f"{number}/searcher/state", one.state, arrays, cards, fail)
    codes, n = one.best.dtype, one.best.size
    wanted = {
        "searcher/state/x": Wanted(one.state.x.dtype, (n,), 0),
        "searcher/state/position": Wanted(np.int64, (2,), 0, 1 << 62),
        "best": Wanted(codes, (n,), 0),
        "last": Wanted(codes, (n,), 0),
        "seen": Wanted(codes, ("seen", n), 0),
        "seen_values": Wanted(np.float64, ("seen",), finite=False),
        "ties": Wanted(codes, ("ties", n), 0),
        "ends": Wanted(np.float64, ("ends",), finite=False),
        "numbers": Wanted(np.float64, (3,), finite=False),
    }
    found = admit(arrays, {f"{number}/{name}": want for name, want in wanted.items()}, fail)
    for name in ("searcher/state/x", "best", "last", "seen", "ties"):
        if (found[f"{number}/{name}"] >= cards).any():
            raise fail("a chain is in a state that its sites do not have")
    if found[f"{number}/searcher/state/position"][0] >= max(int(period(one.driver.schedule)), 1):
        raise fail("the position of a chain is beyond the end of its scan")
    order = arrays[f"{number}/searcher/state/order"]
    if order.size and not 0 <= order.min() <= order.max() < order.size:
        raise fail("the order in which sites are visited is not a permutation")


def _pack(one: Searcher, keys: list[bytes]) -> Array:
    """Return states, which are kept as bytes, as rows of an array."""
    rows = [np.frombuffer(key, one.best.dtype) for key in keys]
    return np.array(rows, one.best.dtype).reshape(len(keys), one.best.size)


def _unpack(rows: Array) -> list[bytes]:
    return [row.tobytes() for row in rows]
