"""A model in the BUGS language: its text, its data, and the updates that were derived."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import describe, is_path
from gibbsite._common.arrays import Bools, Floats, Ints
from gibbsite._common.wording import argument
from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs.assembly import Assembly
from gibbsite.applications.bugs.compiled.evaluator import LANES
from gibbsite.applications.bugs.derivation import Derived, derive, refuse_without_unknowns
from gibbsite.applications.bugs.elements import (
    check_indices,
    check_matrices,
    check_values,
    element_of,
    find_elements,
    find_monitors,
    names_of,
    read_names,
)
from gibbsite.applications.bugs.expansion import expand
from gibbsite.applications.bugs.language.data import read_inits, read_values
from gibbsite.applications.bugs.language.parser import parse
from gibbsite.applications.bugs.network import Network, Reach
from gibbsite.applications.bugs.simulation.methods import AfterRuns
from gibbsite.errors import ArgumentError, ModelError
from gibbsite.models.domain import Interval, make_domains

if TYPE_CHECKING:
    from gibbsite.applications.bugs.explain import Conditional
    from gibbsite.results.result import Result

_TRIES = 200  # random starts that are tried
_MOST_DEFAULT = 2000  # entries of a deterministic variable that is monitored by default


class BugsModel(AfterRuns):
    """A model in the BUGS language with its data.

    Its sites are the unknowns, and the deterministic variables that are monitored; ``read_bugs`` makes it.

    Attributes
    ----------
    text : str
        The program.
    monitored : tuple of str
        Names of the variables or elements that summaries are about.
    derived : Derived
        The update of every unknown.
    """

    __slots__ = ("assembly", "data", "derived", "monitored", "network", "places", "registers", "start_values", "text")

    def __init__(
        self, text: str, data: Any = None, monitor: str | Sequence[str] | None = None, source: str = ""
    ) -> None:
        program = parse(text, source)
        self.data = read_values({} if data is None else data)
        values, rules = expand(program, self.data)
        self.text = text
        self.assembly = Assembly(values, rules)
        wanted = read_names(monitor)
        if (
            "deviance" in (wanted or ()) and "deviance" not in values.arrays
        ):  # minus twice the log-likelihood of the data
            values.declare("deviance", ())
            self.assembly.place("deviance")
        start = self.assembly.tables()[1]
        self.network = Network(self.assembly, start)
        self.start_values = start
        check_values(self.network)
        check_matrices(self.network)
        check_indices(self.network)
        refuse_without_unknowns(self.network)
        self.registers = max(self.assembly.registers, 64) * LANES
        self.monitored = find_monitors(self.network, wanted)
        self.places = self._find_places()
        site = np.full(start.size, -1, np.int64)
        site[self.places] = np.arange(self.places.size)
        super().__init__(make_domains(self._kinds()))
        # the kind of graph and the kernel register themselves
        importlib.import_module("gibbsite.applications.bugs.kernel")
        self.derived: Derived = derive(self.network, site, self._measure, self._means)

    # ---- sites

    def _find_places(self) -> Ints:
        """Return the places of the sites: all unknowns, then what is monitored besides them."""
        first = np.flatnonzero(self.network.unknown)
        more = [place for name in self.monitored for place in self.elements(name).values()]
        added = np.setdiff1d(np.array(more, np.int64), first)
        return np.concatenate([first, added]).astype(np.int64)

    def _kinds(self) -> dict[str, Interval]:
        """Return the range of each site by its name."""
        found: dict[str, Interval] = {}
        bounds: dict[tuple[float, float], Interval] = {}
        names = names_of(self.assembly, self.places)
        for name, place in zip(names, self.places.tolist(), strict=True):
            low, high = -np.inf, np.inf
            if self.network.unknown[place]:
                distribution = self.assembly.compiled[int(self.network.owner[place])].rule.distribution
                assert distribution is not None
                low, high = distribution.low, distribution.high
            found[name] = bounds.setdefault((low, high), Interval(low, high))
        return found

    def elements(self, name: str) -> dict[str, int]:
        """Return the unknown and computed elements of a variable, or an element, with their places."""
        return find_elements(self.network, name)

    @property
    def monitored_sites(self) -> list[str]:
        """Names of the sites that are monitored."""
        return [element for name in self.monitored for element in self.elements(name)]

    def _content(self) -> Iterator[Any]:
        yield self.text.encode()
        yield repr((self.monitored, sorted(self.assembly.offset.items()))).encode()
        yield np.ascontiguousarray(self.start_values).tobytes()
        yield np.ascontiguousarray(self.derived.tables.places).tobytes()

    def __reduce__(self) -> tuple[Any, ...]:
        return BugsModel, (self.text, self.data, self.monitored)

    def conditionals(self) -> list[Conditional]:
        """Return the conditional distribution of all unknowns as formulas, with their updates.

        Examples
        --------
        >>> text = "model { for (i in 1:N) { x[i] ~ dpois(rate) }  rate ~ dgamma(0.1, 0.1) }"
        >>> print(*read_bugs(text, {"x": [3, 1, 4], "N": 3}).conditionals())
        rate | rest ~ Gamma(0.1 + sum(x[i]), 0.1 + 3); conjugate
        """
        from gibbsite.applications.bugs.explain import explain

        return explain(self)

    def sample(
        self,
        *,
        sweeps: Any = None,
        inits: Any = None,
        chains: int = 4,
        rng: Any = None,
        record: Any = None,
        criteria: Any = None,
        **options: Any,
    ) -> Result:
        """Sample from the posterior distribution, and keep the draws of what is monitored.

        Parameters
        ----------
        sweeps : int, Sweeps or Steps, optional
            As in :func:`gibbsite.sample`, which also explains the other options.
        inits : optional
            Initial values: a mapping for all chains, a list of mappings, or paths of JSON files or dumps of R. What is
            left out is random.
        chains : int
            Independent chains.
        rng : int, Generator or SeedSequence, optional
            Seed.
        record, criteria : optional
            By default the draws of what is monitored, and a verdict about it.
        **options
            Further arguments of :func:`gibbsite.sample`.

        Returns
        -------
        Result

        Examples
        --------
        >>> text = "model { for (i in 1:N) { x[i] ~ dpois(rate) }  rate ~ dgamma(0.1, 0.1) }"
        >>> result = read_bugs(text, {"x": [3, 1, 4], "N": 3}).sample(sweeps=2000, rng=1, progress=False)
        >>> abs(result.marginals["rate"]["mean"] - 8.1 / 3.1) < 0.1
        True
        """
        from gibbsite.inference.sampling import sample
        from gibbsite.results.verdict.criteria import Criteria
        from gibbsite.sampling.plan import read_entropy
        from gibbsite.sampling.record import Draws

        sites = self.monitored_sites
        entropy = read_entropy(rng)
        if record is None:
            record = ["marginals", Draws(sites)]
        if criteria is None:
            criteria = Criteria(query=sites)
        start = None if inits is None else self.read_starts(inits, chains, entropy)
        return sample(
            self, sweeps=sweeps, chains=chains, rng=entropy, start=start, record=record, criteria=criteria, **options
        )

    def _measure(self, reach: Reach, members: Ints, size: int) -> Floats:
        """Return coefficients of means, which compiled code measures."""
        from gibbsite.applications.bugs.starts import measure

        return measure(self, reach, members, size)

    def _means(self, nodes: Ints, members: Ints) -> Floats:
        """Return the means of nodes of normal numbers, in ascending order, where all members are 0."""
        from gibbsite.applications.bugs.starts import means

        return means(self, nodes, members)

    # ---- starts

    @property
    def movable(self) -> Bools:
        """Sites that may take any value in the range of their distribution, on their own."""
        compiled = self.assembly.compiled
        found = np.zeros(self.places.size, np.bool_)
        for k, place in enumerate(self.places.tolist()):
            if self.network.unknown[place]:
                distribution = compiled[int(self.network.owner[place])].rule.distribution
                assert distribution is not None
                free = distribution.value == "s" or distribution.code == dist.MULTIVARIATE_NORMAL
                found[k] = free and not distribution.discrete
        return found

    def is_possible(self, x: Floats) -> bool:
        """Whether a state has positive density."""
        return bool(self.log_densities(x[None])[0] > -np.inf)

    def log_densities(self, states: Floats) -> Floats:
        """Return the logarithm of the joint density at each of some states, up to a constant."""
        from gibbsite.applications.bugs.starts import log_density

        found = np.empty(len(states))
        for k, x in enumerate(states):
            values = self.start_values.copy()
            values[self.places] = x
            values[self.places[~self.network.unknown[self.places]]] = np.nan
            found[k] = log_density(self, values)
        return found

    def draw_start(self, rng: np.random.Generator) -> Floats:
        """Return a random start of positive density."""
        from gibbsite.applications.bugs.starts import draw_start

        return draw_start(self, {}, rng, _TRIES)

    def read_starts(self, inits: Any, chains: int, rng: Any = None) -> Floats:
        """Return starts (chains, sites) from initial values; what they leave out is random."""
        from gibbsite.applications.bugs.starts import draw_start

        generator = np.random.default_rng(rng)
        given = read_inits(inits, chains)
        return np.stack([draw_start(self, each, generator, _TRIES) for each in given])

    def failure_text(self, unit: int, values: Floats) -> str:
        """Return a sentence about an update that failed."""
        place = int(self.derived.unit[16 * unit + 1])
        name = element_of(self.assembly, place)[1]
        return (
            f"The conditional distribution of {name} is improper or has no valid value, given {name} = "
            f"{values[place]:g} and the current values of the others; check priors and initial values."
        )

    def check_updates(self, seed: int) -> Iterator[tuple[str, str, bool, str]]:
        """Check the updates for :func:`gibbsite.testing.check_model`."""
        from gibbsite.applications.bugs.checks.updates import check_updates

        return check_updates(self, seed=seed)

    def __repr__(self) -> str:
        return f"BugsModel({int(self.network.unknown.sum()):,} unknowns, {', '.join(self.monitored[:6])})"


def read_bugs(model: str | os.PathLike[str], data: Any = None, monitor: str | Sequence[str] | None = None) -> BugsModel:
    """Read a model in the BUGS language, and derive an update for every unknown.

    Parameters
    ----------
    model : str or path
        The text of the model, or the path of a file that holds it.
    data : optional
        Values of variables: a mapping from names to numbers, arrays or columns of pandas; a data frame; or the path
        of a JSON file or of a dump of R. None and NaN are missing values, which become unknowns.
    monitor : str or sequence of str, optional
        Variables, or elements such as "beta[1,2]", that summaries are about; by default all unknowns that are not
        missing data, and deterministic numbers.

    Returns
    -------
    BugsModel

    Examples
    --------
    >>> text = "model { for (i in 1:N) { x[i] ~ dpois(rate) }  rate ~ dgamma(0.1, 0.1) }"
    >>> read_bugs(text, {"x": [3, 1, 4], "N": 3})
    BugsModel(1 unknowns, rate)
    """
    if not is_path(model):  # neither is a text with characters that no file can have
        raise ArgumentError(f"{argument('model')} must be the text of a model or a path, got {describe(model)}.")
    source = ""
    text = os.fspath(model)
    if isinstance(model, os.PathLike) or ("{" not in text and "\n" not in text):
        source = str(text)
        try:
            text = Path(text).read_text(encoding="utf-8-sig")
        except OSError as problem:
            raise ModelError(f"{source}: {problem.strerror or problem}.") from None
        except UnicodeDecodeError:
            raise ModelError(f"{source} is not a text in UTF-8.") from None
    return BugsModel(text, data, monitor, source)


#: The name at the top of the package.
bugs = read_bugs
