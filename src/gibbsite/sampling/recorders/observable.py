"""User-defined quantities: a function of the state, evaluated at every draw and averaged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gibbsite._common.arguments import check_flags, describe, is_iterable
from gibbsite._common.arrays import Floats
from gibbsite._numba.foreign import adopt, digest_of
from gibbsite.errors import ArgumentError
from gibbsite.sampling.observed import (
    DRAWS,
    FAULT,
    FILLED,
    HEAD,
    LENGTH,
    OPEN_FORM,
    OWN,
    SERIES,
    VALUES,
    bin_step,
    grow_series,
    is_binned,
    make_bins,
    read_bins,
)
from gibbsite.sampling.recorders.base import OpenRecorder, Prepared

if TYPE_CHECKING:
    from gibbsite.models import Model


@dataclass(frozen=True, eq=False)
class Binned:
    """What chains know of the values of an observable.

    Attributes
    ----------
    names : tuple of str
        Of the values; one without a name for a single number.
    draws : int
        Draws of each chain.
    total, square : float array (chains, values)
        Sums over all draws, and of squares.
    trace : float array (chains, bins, values)
        Means over bins of ``length`` draws.
    series : float array (chains, draws, values) or None
        All draws, if they were kept.
    """

    names: tuple[str, ...]
    draws: int
    length: int
    total: Floats
    square: Floats
    trace: Floats
    series: Floats | None


_MOST_NUMBERS = 100_000  # with their means of 2,048 bins they take 1.6 GB a chain


@dataclass(frozen=True)
class Observable(OpenRecorder):
    """A quantity of your own: a function of the state, averaged over the run.

    Parameters
    ----------
    name : str
        How results call it.
    function : callable
        ``f(x) -> number``, or an array of ``size`` numbers. ``x`` has a number for each free site, in the
        order of ``model.sites``: the label where labels are numbers (-1 and 1 in an Ising model), otherwise
        the code 0, 1, ... of the state. Numba compiles it where it can; if it cannot, it is called back in
        Python, which takes some microseconds per draw and holds the other threads up.
    size : int, optional
        Numbers it returns, if it returns an array.
    names : sequence of str, optional
        What they are called.
    series : bool
        Keep the value of every draw, too. Otherwise there are means of at most 2,048 bins, however long the
        run.

    See Also
    --------
    recorders.Magnetisation : The magnetisation and its moments.
    Draws : Keep the states.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((20, 20), coupling=0.3, periodic=True)
    >>> squared = gs.Observable("m2", lambda x: x.mean() ** 2)
    >>> result = gs.sample(model, sweeps=2000, rng=1, record=["marginals", squared], progress=False)
    >>> m2 = result.observables["m2"]
    >>> 0.01 < m2.mean < 0.05, m2.mcse < 0.001
    (True, True)
    """

    name: str
    function: Callable[..., Any] | None = None
    size: int | None = None
    names: tuple[str, ...] | None = None
    series: bool = False
    #: In plans, stands for the function of an observable of gibbsite; change it whenever that returns other values.
    definition: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ArgumentError(f"An observable needs a name, got {self.name!r}.")
        check_flags(series=self.series)
        if self.names is not None:
            if not is_iterable(self.names):
                raise ArgumentError(
                    f"names of the observable {self.name!r} must be a list, got {describe(self.names)}."
                )
            object.__setattr__(self, "names", tuple(str(name) for name in self.names))
            object.__setattr__(self, "size", len(self.names or ()) if self.size is None else self.size)
        size = self.size
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
            raise ArgumentError(f"size of the observable {self.name!r} must be a whole number, got {size!r}.")
        if size is not None and size > _MOST_NUMBERS:
            raise ArgumentError(f"size of the observable {self.name!r} must be at most {_MOST_NUMBERS:,}.")
        if self.names is not None and len(self.names) != size:
            raise ArgumentError(f"The observable {self.name!r} needs {size} names, got {len(self.names)}.")

    @property
    def key(self) -> str:
        """The name of the observable."""
        return self.name

    @property
    def shape(self) -> str:
        """What the function takes and returns, see :mod:`gibbsite._numba.foreign`."""
        return "scalar" if self.size is None else "array"

    def start(self, model: Model) -> Floats:
        """Return numbers of the function's own that it finds behind its values; none by default."""
        return np.zeros(0)

    def prepare(self, model: Model) -> Prepared:
        """Compile the function, or have it called back."""
        if not callable(self.function):
            raise ArgumentError(f"the observable {self.name!r} needs a function of the state, got {self.function!r}.")
        return Prepared(bin_step(), make_bins(self.size or 1, self.start(model)), adopt(self.function, self.shape))

    def grow(self, block: Floats, draws: int) -> Floats:
        """Make room for the series, if it is kept."""
        return grow_series(block, draws) if self.series else block

    def admits(self, fresh: Floats, block: Floats, draws: int) -> bool:
        """Return whether a block from a file has the form that averages have after ``draws`` draws."""
        return is_binned(block, draws) and bool((block[:OPEN_FORM] == fresh[:OPEN_FORM]).all())

    def concludes(self, block: Floats, draws: int) -> bool:
        """Tell whether a block from a file holds averages, and their series if that is kept."""
        sizes = is_binned(block, draws) and block[0] == (self.size or 1)
        return bool(sizes and (not self.series or block[SERIES] >= draws))

    def fault(self, block: Floats) -> int | None:
        """Return the first draw at which the function was not a number."""
        return int(block[FAULT]) - 1 if block[FAULT] else None

    def seen(self, block: Floats) -> Floats:
        """Return values and numbers of the function's own."""
        return block[HEAD : HEAD + int(block[VALUES] + block[OWN])]

    def conclude(self, blocks: Floats, draws: int) -> Binned:
        """Return sums, means of bins, and the series."""
        parts = [read_bins(block) for block in blocks]
        filled, length = int(blocks[0][FILLED]), int(blocks[0][LENGTH])
        counted = int(blocks[0][DRAWS])
        series = [part.series[:counted] for part in parts]
        names = self.names or ("",) * (self.size or 1)
        return Binned(
            names=names if self.size is not None else ("",),
            draws=counted,
            length=length,
            total=np.stack([part.total + part.open for part in parts]),
            square=np.stack([part.square for part in parts]),
            trace=np.stack([part.trace[:filled] for part in parts]),
            series=np.stack(series) if self.series else None,
        )

    def describe(self) -> dict[str, Any]:
        """Return name and parameters, for plans; of the function, what tells it from others."""
        given = {**super().describe(), "name": type(self).__name__, "key": self.key}
        return {**given, "function": self.definition or digest_of(self.function), "names": list(self.names or ())}

    def restore(self) -> dict[str, Any]:
        """Return what a loaded result needs to know."""
        names = None if self.names is None else list(self.names)
        return {**super().restore(), "size": self.size, "names": names, "series": self.series}

    @classmethod
    def revive(cls, about: dict[str, Any]) -> Observable:
        """Return an observable that knows its values, but not its function."""
        return Observable(about["key"], None, about["size"], about["names"], about["series"])
