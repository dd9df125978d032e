"""How long to run: sweeps, steps or seconds, after a warmup."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gibbsite._common.arguments import describe, is_number
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError

DEFAULT_SWEEPS = 1000


#: More of these are a slip of the pen: lists of so many would fill the memory before anything is drawn.
_MOST = {"chains": 10_000_000, "particles": 100_000_000, "repeats": 10_000_000}


@dataclass(frozen=True)
class Budget:
    """The length of a run.

    Attributes
    ----------
    warmup : int or None
        Sweeps before recording; None: a tenth of the time.
    draws : int or None
        Draws to record, None if only time counts.
    length : int
        Steps between draws.
    rest : int
        Steps of a last, shorter round (budgets in steps).
    seconds : float
        Time limit.
    counted : bool
        Sweeps or steps were asked for.
    warms_by_time : bool
        The warmup ends after a tenth of the time limit, if not before.
    """

    warmup: int | None
    draws: int | None
    length: int
    rest: int
    seconds: float
    counted: bool = True
    warms_by_time: bool = False

    @property
    def visits(self) -> int | None:
        """Steps after the warmup, None if only time counts."""
        return None if self.draws is None else self.draws * self.length + self.rest


def read_budget(
    n_sites: int,
    sweeps: int | None,
    steps: int | None,
    seconds: float | None,
    warmup: int | None,
    thin: int,
    natural_sweeps: int | None = None,
    warms: bool = True,
) -> Budget:
    """Check the arguments of a run that are about its length and bring them into one form.

    ``natural_sweeps`` is the number of sweeps of a kernel whose runs are complete after so many, and
    ``warms`` tells whether there is anything to forget at the beginning; both count where nothing else is
    asked for.

    Examples
    --------
    >>> read_budget(100, sweeps=None, steps=250, seconds=None, warmup=0, thin=1)
    Budget(warmup=0, draws=2, length=100, rest=50, seconds=inf, counted=True, warms_by_time=False)
    """
    if sweeps is not None and steps is not None:
        raise ArgumentError(f"Give the budget in {argument('sweeps')} or in {argument('steps')}, not both.")
    counted = sweeps is not None or steps is not None
    if not counted:
        sweeps = natural_sweeps
    if not warms and warmup is None:
        warmup = 0
    thin = check_integer("thin", thin, 1)
    length = n_sites * thin
    draws: int | None
    rest = 0
    if steps is not None:
        steps = check_integer("steps", steps, 1)
        draws, rest = divmod(steps, length) if length else (1, 0)
        warm = steps // max(n_sites, 1) // 10
    elif sweeps is not None or seconds is None:
        sweeps = check_integer("sweeps", DEFAULT_SWEEPS if sweeps is None else sweeps, 1)
        draws = sweeps // thin
        warm = sweeps // 10
        if draws == 0:
            raise ArgumentError(f"{argument('thin', thin)} leaves no draw of {sweeps} sweeps; lower it.")
    else:
        draws, warm = None, 0
    if seconds is not None and not (is_real(seconds) and 0 < seconds < math.inf):
        raise ArgumentError(f"{argument('seconds')} must be a positive number, got {seconds!r}.")
    by_time = seconds is not None and warmup is None
    if warmup is not None:
        warmup = check_integer("warmup", warmup, 0)
    elif draws is not None:
        warmup = warm
    limit = math.inf if seconds is None else float(seconds)
    return Budget(warmup, draws, length, rest, limit, counted, by_time)


def is_real(value: Any) -> bool:
    """Whether an argument is a number; True and False are none.

    Examples
    --------
    >>> is_real(0.5), is_real(True)
    (True, False)
    """
    return is_number(value)


def check_integer(name: str, value: Any, least: int) -> int:
    """Return a whole number given as an argument; refuse anything else by name.

    Examples
    --------
    >>> check_integer("chains", 4.0, 1)
    4
    """
    if not is_real(value) or not math.isfinite(value) or int(value) != value or value < least:
        raise ArgumentError(f"{argument(name)} must be a whole number of at least {least}, got {describe(value)}.")
    if value > _MOST.get(name, math.inf):
        raise ArgumentError(f"{argument(name)} must be at most {_MOST[name]:,}, got {describe(value)}.")
    return int(value)
