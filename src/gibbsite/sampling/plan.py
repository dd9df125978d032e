"""The plan of a run: everything that decides its numbers, as plain data.

Two runs with equal plans and equal budgets give equal bytes. The plan is stored in every result and
checkpoint; a checkpoint is continued only by a run with the same plan.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import repeat
from typing import Any

import numpy as np

from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError

_DEEPEST = 20  # lists in lists that a plan spells out


@cache
def package_version() -> str:
    """Return the installed version of gibbsite.

    Examples
    --------
    >>> package_version().count(".") >= 1
    True
    """
    try:
        return version("gibbsite")
    except PackageNotFoundError:  # used from a source tree that is not installed
        return "0.0"


@dataclass(frozen=True)
class Plan:
    """A run as data.

    Examples
    --------
    >>> import gibbsite as gs
    >>> result = gs.sample(gs.ising_grid((2, 2)), sweeps=8, rng=1, progress=False)
    >>> result.plan.kernel["name"], result.plan.entropy
    ('Gibbs', 1)
    """

    gibbsite: str
    model: str
    kernel: dict[str, Any]
    scan: dict[str, Any]
    record: list[dict[str, Any]]
    chains: int
    thin: int
    warmup: int | None
    entropy: int
    start: str | None
    form: str = "plain"

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Plan:
        """Return a plan that was saved as a dictionary, also by earlier versions."""
        return cls(**_of_today(data))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as a dictionary of JSON values."""
        return asdict(self)

    def to_json(self) -> str:
        """Return the plan as canonical JSON: equal plans give equal text."""
        return json.dumps(self.to_dict(), sort_keys=True)

    def differences(self, other: dict[str, Any]) -> list[str]:
        """Name the entries in which another plan differs."""
        mine, other = json.loads(self.to_json()), _of_today(other)
        missing = object()
        return sorted(key for key in mine | other if mine.get(key, missing) != other.get(key, missing))


def _of_today(plan: dict[str, Any]) -> dict[str, Any]:
    """Return a saved plan as it is written today: the default start was the word "None" once."""
    return {**plan, "start": None} if plan.get("start") == "None" else plan


def describe_scan(scan: Any) -> Any:
    """Return name and parameters of a scan."""
    return as_data({"name": type(scan).__name__, **vars(scan)})


def as_data(value: Any, depth: int = 0) -> Any:
    """Turn parameters into JSON values; a long array becomes its digest.

    Examples
    --------
    >>> as_data({"order": np.arange(3), "weights": None})
    {'order': [0, 1, 2], 'weights': None}
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if depth > _DEEPEST:  # a list that contains itself has no end
        return repr(value)
    if isinstance(value, Mapping):
        return dict(zip(map(str, value), map(as_data, value.values(), repeat(depth + 1)), strict=False))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        if value.size <= 100:
            return value.tolist()
        digest = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16)
        return {"shape": list(value.shape), "digest": digest.hexdigest()}
    if isinstance(value, Iterable):
        listed = [as_data(item, depth + 1) for item in value]
        if len(listed) <= 100:
            return listed
        digest = hashlib.blake2b(json.dumps(listed).encode(), digest_size=16)
        return {"length": len(listed), "digest": digest.hexdigest()}
    return repr(value)


def read_entropy(rng: Any) -> int:
    """Turn what users give as ``rng`` into the one integer that seeds a run.

    Examples
    --------
    >>> read_entropy(7)
    7
    """
    if rng is None:
        rng = np.random.SeedSequence()
    if isinstance(rng, np.random.SeedSequence):
        entropy = rng.entropy
        if isinstance(entropy, int) and not rng.spawn_key:
            return entropy
        words = rng.generate_state(4, np.uint32)
        return int.from_bytes(words.astype("<u4").tobytes(), "little")
    if isinstance(rng, np.random.Generator):
        return int.from_bytes(rng.bytes(16), "little")
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool):
        if rng < 0:
            raise ArgumentError(f"{argument('rng')} must not be negative, got {rng}.")
        return int(rng)
    raise ArgumentError(f"{argument('rng')} must be an integer, a NumPy Generator or SeedSequence, got {rng!r}.")
