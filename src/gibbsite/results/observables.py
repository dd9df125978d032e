"""Quantities observed during a run: means, standard errors, autocorrelation times, derived quantities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.errors import ArgumentError
from gibbsite.results.measure.diagnostics import mcse, rhat
from gibbsite.results.measure.measurement import SPREADS, source_of_errors, spread_error
from gibbsite.results.quantiles import QUARTILES, error_of_quantile, read_probabilities
from gibbsite.results.wording import in_words, number_text
from gibbsite.sampling.recorders.observable import Binned

if TYPE_CHECKING:
    from gibbsite.results.measured import Measured


# Blocks of bins that a jackknife leaves out one by one.
_BLOCKS = 64
_SHOWN = 20  # values in a notebook


class Derived(NamedTuple):
    """A quantity computed from means of others, and its standard error."""

    value: Any
    mcse: Any


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a run says about one observable; numbers, or arrays if it has several values.

    Attributes
    ----------
    name : str
        The observable.
    names : tuple of str
        Its values.
    bins : float array (chains, bins, values)
        Means over bins of ``length`` draws each.
    """

    name: str
    found: Binned
    errors: str

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the values."""
        return self.found.names

    @property
    def bins(self) -> Floats:
        """Means over bins of ``length`` draws (chains, bins, values)."""
        return self.found.trace

    @property
    def length(self) -> int:
        """Draws of a bin."""
        return self.found.length

    @property
    def series(self) -> Floats:
        """The value of every draw (chains, draws) or (chains, draws, values)."""
        if self.found.series is None:
            raise ArgumentError(f"The series of {self.name!r} was not kept; record it with series=True.")
        return self.found.series if self._many else self.found.series[:, :, 0]

    @property
    def _many(self) -> bool:
        return self.found.names != ("",)

    def _shown(self, values: Floats) -> Any:
        return values if self._many else float(values[0])

    @cached_property
    def mean(self) -> Any:
        """Average over all draws."""
        return self._shown(self.found.total.mean(axis=0) / max(self.found.draws, 1))

    @cached_property
    def sd(self) -> Any:
        """Standard deviation of a draw."""
        return self._shown(np.sqrt(self._variance))

    def variance(self) -> Derived:
        """Return the variance of a draw with its standard error; the series must have been kept.

        Examples
        --------
        >>> import gibbsite as gs
        >>> model = gs.ising_grid((4, 4), coupling=0.3, periodic=True)
        >>> result = gs.sample(model, sweeps=2000, rng=1, record="energy", progress=False)
        >>> heat = result.observables["energy"].variance()
        >>> 0 < heat.mcse < heat.value
        True
        """
        series = self.series.reshape(len(self.found.total), self.found.draws, -1)
        apart = (series - series.mean(axis=(0, 1))) ** 2
        spread = _of_series(self.names, apart)
        return Derived(
            self._shown(apart.mean(axis=(0, 1))), self._shown(Estimate(self.name, spread, self.errors)._errors)
        )

    @cached_property
    def _variance(self) -> Floats:
        draws = max(self.found.draws, 1)
        mean = self.found.total.mean(axis=0) / draws
        found: Floats = np.maximum(self.found.square.mean(axis=0) / draws - mean**2, 0.0)
        return found

    @cached_property
    def _errors(self) -> Floats:
        chains, k = len(self.found.total), len(self.found.names)
        source = source_of_errors(self.errors, chains)
        if source == "none":
            return np.full(k, np.nan)
        if source in SPREADS:
            return spread_error(self.found.total / max(self.found.draws, 1), source)
        return np.asarray(mcse(self.bins)).reshape(k)

    @cached_property
    def mcse(self) -> Any:
        """Standard error of the mean; NaN where nothing is known about errors."""
        return self._shown(self._errors)

    @cached_property
    def ess(self) -> Any:
        """Number of independent draws that would give the same standard error."""
        with np.errstate(divide="ignore", invalid="ignore"):
            worth = self._variance / self._errors**2
        return self._shown(worth)

    @cached_property
    def tau(self) -> Any:
        """Integrated autocorrelation time in draws, 1 + 2 (rho_1 + rho_2 + ...): 1 for independent draws.

        It is the number of draws divided by their effective number. Many physicists call half of it tau.
        """
        return self._shown(len(self.found.total) * self.found.draws / np.atleast_1d(self.ess))

    @cached_property
    def rhat(self) -> Any:
        """R-hat of the means of bins."""
        return self._shown(np.asarray(rhat(self.bins)).reshape(len(self.names)))

    def quantiles(self, probabilities: Any = QUARTILES) -> dict[float, Any]:
        """Return quantiles of the draws by probability; the series must have been kept.

        Parameters
        ----------
        probabilities : float or sequence of floats
            Between 0 and 1; by default 0.025, 0.25, 0.5, 0.75, 0.975.

        Examples
        --------
        >>> import gibbsite as gs
        >>> model = gs.ising_grid((4, 4), coupling=0.3, periodic=True)
        >>> record = ["marginals", gs.Observable("up", lambda x: (x > 0).sum(), series=True)]
        >>> result = gs.sample(model, sweeps=2000, rng=1, record=record, progress=False)
        >>> result.observables["up"].quantiles(0.5)
        {0.5: 8.0}
        """
        at = read_probabilities(probabilities)
        found = np.quantile(self._pooled, at, axis=0)
        return {p: self._shown(row) for p, row in zip(at, found, strict=True)}

    def quantiles_mcse(self, probabilities: Any = QUARTILES) -> dict[float, Any]:
        """Return the standard errors of :meth:`quantiles`; NaN where nothing is known about errors."""
        at = read_probabilities(probabilities)
        series = self._pooled.reshape(len(self.found.total), -1, len(self.names))
        known = source_of_errors(self.errors, len(self.found.total)) == "draws"
        return {p: self._shown(error_of_quantile(series, p) if known else np.full(len(self.names), np.nan)) for p in at}

    @property
    def _pooled(self) -> Floats:
        """All draws of all chains (draws, values)."""
        return self.series.reshape(-1, len(self.names))

    def rows(self) -> list[tuple[str, float, float, float]]:
        """Return of each value its name, mean, standard error and autocorrelation time."""
        numbers = (np.atleast_1d(part) for part in (self.mean, self.mcse, self.tau))
        return [
            (name, float(mean), float(error), float(tau))
            for name, mean, error, tau in zip(self.names, *numbers, strict=True)
        ]

    def lines(self) -> list[str]:
        """Return a line of text for each value."""
        return [
            f"{self.name}{f' {name}' if name else ''}  {number_text(mean, error)}  "
            f"autocorrelation time {in_words(tau, '.3g')}"
            for name, mean, error, tau in self.rows()
        ]

    def __repr__(self) -> str:
        if self._many:
            return f"Estimate({self.name!r}, {len(self.names)} values: {', '.join(self.names)})"
        return f"Estimate({self.lines()[0]})"

    def _repr_html_(self) -> str:
        return Observables({self.name: self})._repr_html_()


class Observables(Mapping[str, Estimate]):
    """What was observed in a run, by name.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((8, 8), coupling=0.3, periodic=True)
    >>> record = ["marginals", gs.recorders.Magnetisation()]
    >>> result = gs.sample(model, sweeps=2000, rng=1, record=record, progress=False)
    >>> list(result.observables), result.observables["magnetisation"].names
    (['magnetisation'], ('m', 'abs', 'm2', 'm4'))
    """

    def __init__(self, found: Mapping[str, Estimate]) -> None:
        self._found = dict(found)

    def __getitem__(self, name: str) -> Estimate:
        if name not in self._found:
            known = ", ".join(self._found) or "none"
            raise ArgumentError(f"No observable is called {name!r}; recorded were: {known}.")
        return self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return "\n".join(line for each in self._found.values() for line in each.lines()) or "no observables"

    def _repr_html_(self) -> str:
        from gibbsite._common.html import card, grid

        cells = (
            (name, value, number_text(mean, error), in_words(tau, ".3g"))
            for name, each in self.items()
            for value, mean, error, tau in each.rows()
        )
        rows = list(islice(cells, _SHOWN))
        left = sum(len(each.names) for each in self.values()) - len(rows)
        heads = ("observable", "value", "mean", "autocorrelation time")
        return card("Observables", [] if rows else ["none"], table=grid(heads, rows, left, "values") if rows else [])

    def derive(self, function: Callable[..., Any], *names: str) -> Derived:
        """Return a function of means, with a standard error by the jackknife over blocks of bins.

        Parameters
        ----------
        function : callable
            Takes the means of the observables named, in this order, each a number or an array.
        *names : str
            The observables.

        Returns
        -------
        Derived
            ``value``, corrected for the bias of first order, and ``mcse``.

        Examples
        --------
        >>> import gibbsite as gs
        >>> model = gs.ising_grid((8, 8), coupling=0.3, periodic=True)
        >>> record = ["marginals", gs.recorders.Magnetisation()]
        >>> result = gs.sample(model, sweeps=2000, rng=1, record=record, progress=False)
        >>> binder = result.observables.derive(lambda m: 1 - m[3] / (3 * m[2] ** 2), "magnetisation")
        >>> 0.0 < binder.value < 0.667, binder.mcse < 0.05
        (True, True)
        """
        given = [self[name] for name in names]
        if not given:
            raise ArgumentError("derive needs the names of the observables that the function takes.")
        bins = [each.bins.reshape(-1, len(each.names)) for each in given]
        if len({len(each) for each in bins}) > 1:
            raise ArgumentError("Observables of different numbers of bins cannot be combined.")
        blocks = min(_BLOCKS, len(bins[0]))
        whole = np.asarray(function(*[each.mean for each in given]), float)
        if blocks < 2:
            return Derived(_plain(whole), _plain(np.full_like(whole, np.nan)))
        edges = np.linspace(0, len(bins[0]), blocks + 1).astype(int)
        sums = [np.add.reduceat(each, edges[:-1]) for each in bins]
        sizes = np.diff(edges)[:, None]
        rest = [(s.sum(axis=0) - s) / (len(b) - sizes) for s, b in zip(sums, bins, strict=True)]
        left = np.array(
            [function(*[e._shown(r[block]) for e, r in zip(given, rest, strict=True)]) for block in range(blocks)],
            float,
        )
        spread = np.sqrt((blocks - 1) * left.var(axis=0))
        return Derived(_plain(blocks * whole - (blocks - 1) * left.mean(axis=0)), _plain(spread))


def _plain(values: Floats) -> Any:
    return float(values) if values.ndim == 0 else values


def make_observables(result: Measured) -> Observables:
    """Return what was observed in a run; energies among it, if they were recorded."""
    found = {}
    if result.energy.size:
        found["energy"] = _of_series(("",), result.energy[:, :, None])
    for recorder, blocks in zip(result._open, result._blocks, strict=True):
        concluded = recorder.conclude(blocks, result.n_draws)
        if isinstance(concluded, Binned):
            found[recorder.key] = concluded
    return Observables({name: Estimate(name, each, result.errors) for name, each in found.items()})


def _of_series(names: tuple[str, ...], series: Floats) -> Binned:
    """Return averages of a quantity every draw of which was kept."""
    return Binned(names, series.shape[1], 1, series.sum(axis=1), (series**2).sum(axis=1), series, series)
