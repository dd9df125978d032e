"""A model in the BUGS language: its text, its data, and the updates that were derived."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import check_integer, describe
from gibbsite._common.arrays import Bools, Floats, Ints
from gibbsite._common.wording import argument
from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs.assembly import Assembly
from gibbsite.applications.bugs.compiled.evaluator import LANES
from gibbsite.applications.bugs.derivation import Derived, derive, refuse_without_unknowns
from gibbsite.applications.bugs.elements import (
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
from gibbsite.errors import ArgumentError, GibbsiteError, ModelError
from gibbsite.models.base import Model
from gibbsite.models.domain import Interval, make_domains

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gibbsite.applications.bugs.explain import Conditional
    from gibbsite.applications.bugs.simulation.predictions import Arrays, InformationCriterion, Prior
    from gibbsite.results.result import Result

_MOST_LIKELIHOODS = 10**8  # numbers that ArviZ gets without being asked
_TRIES = 200  # random starts that are tried
_MOST_DEFAULT = 2000  # entries of a deterministic variable that is monitored by default


class BugsModel(Model):
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
        refuse_without_unknowns(self.network)
        self.registers = max(self.assembly.registers, 64) * LANES
        self.monitored = find_monitors(self.network, wanted)
        self.places = self._find_places()
        site = np.full(start.size, -1, np.int64)
        site[self.places] = np.arange(self.places.size)
        super().__init__(make_domains(self._kinds()))
        # the kind of graph and the kernel register themselves
        importlib.import_module("gibbsite.applications.bugs.kernel")
        self.derived: Derived = derive(self.network, site, _Measure(self))

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

    # ---- after a run

    def log_likelihood(self, result: Result) -> Arrays:
        """Return the log-likelihood of each observation at each draw of a run.

        Parameters
        ----------
        result : Result
            A run of this model, or of an equal one, that has recorded all unknowns on which observations depend.

        Returns
        -------
        dict of str to array (chains, draws, ...)
            For each observed variable, an axis for each of its indices; a single axis where some elements have no
            likelihood, or where it has vectors as values. What ``dinterval`` observes has none.

        Examples
        --------
        >>> text = "model { for (i in 1:3) { x[i] ~ dpois(rate) }  rate ~ dgamma(0.1, 0.1) }"
        >>> model = read_bugs(text, {"x": [3, 1, 4]})
        >>> result = model.sample(sweeps=1000, rng=1, progress=False)
        >>> model.log_likelihood(result)["x"].shape
        (4, 1000, 3)
        """
        from gibbsite.applications.bugs.simulation.predictions import log_likelihoods

        return log_likelihoods(self, result)

    def predict(self, result: Result, *, rng: Any = None) -> Arrays:
        """Draw the observations again at each draw of a run: the posterior predictive distribution.

        Each number is drawn from its distribution given the unknowns of that draw, and given the observed values of
        other data that it depends on. Missing elements of these variables are drawn, too.

        Parameters
        ----------
        result : Result
            A run of this model, or of an equal one, that has recorded all unknowns on which observations depend.
        rng : int, Generator or SeedSequence, optional
            Seed.

        Returns
        -------
        dict of str to array (chains, draws, ...)
            An array for each observed variable.

        Examples
        --------
        >>> text = "model { for (i in 1:3) { x[i] ~ dpois(rate) }  rate ~ dgamma(0.1, 0.1) }"
        >>> model = read_bugs(text, {"x": [3, 1, 4]})
        >>> result = model.sample(sweeps=1000, rng=1, progress=False)
        >>> abs(model.predict(result, rng=1)["x"].mean() - 8.1 / 3.1) < 0.1
        np.True_
        """
        from gibbsite.applications.bugs.simulation.predictions import predict

        return predict(self, result, np.random.default_rng(rng))

    def sample_prior(self, draws: int = 1000, *, rng: Any = None) -> Prior:
        """Draw from the model before it has seen its observations; the draws are independent.

        Parameters
        ----------
        draws : int
            How many.
        rng : int, Generator or SeedSequence, optional
            Seed.

        Returns
        -------
        Prior
            ``parameters`` and ``predictive``: arrays (1, draws, ...) of unknown and of observed variables, by name.

        Examples
        --------
        >>> text = "model { for (i in 1:3) { x[i] ~ dpois(rate) }  rate ~ dgamma(4, 2) }"
        >>> prior = read_bugs(text, {"x": [3, 1, 4]}).sample_prior(1000, rng=1)
        >>> abs(prior.parameters["rate"].mean() - 2.0) < 0.15, prior.predictive["x"].shape
        (np.True_, (1, 1000, 3))
        """
        from gibbsite.applications.bugs.simulation.predictions import draw_prior

        return draw_prior(self, check_integer("draws", draws, 1), np.random.default_rng(rng))

    def dic(self, result: Result) -> InformationCriterion:
        """Return the deviance information criterion: the mean deviance plus half the variance of the deviance.

        Half the variance estimates the number of parameters [1]_. ``arviz.loo`` is the better guide where some
        observations have much influence.

        References
        ----------
        .. [1] Gelman, A., Carlin, J. B., Stern, H. S., Rubin, D. B. (2004). Bayesian Data Analysis, second edition,
           section 6.7.

        Examples
        --------
        >>> text = "model { for (i in 1:3) { x[i] ~ dnorm(mu, 1) }  mu ~ dnorm(0, 0.01) }"
        >>> model = read_bugs(text, {"x": [3, 1, 4]})
        >>> found = model.dic(model.sample(sweeps=2000, rng=1, progress=False))
        >>> abs(found.parameters - 1.0) < 0.1
        True
        """
        from gibbsite.applications.bugs.simulation.predictions import information_criterion

        return information_criterion(self, result)

    def plot(self, *, ax: Axes | None = None, path: str | os.PathLike[str] | None = None) -> Axes:
        """Draw the model as a graph with plates; see :func:`gibbsite.plot_model`.

        Circles are unknown variables, grey ones observed, dashed ones computed; boxes are data without a distribution.
        A plate stands around what a loop repeats.

        Examples
        --------
        >>> text = "model { for (i in 1:3) { x[i] ~ dpois(rate) }  rate ~ dgamma(0.1, 0.1) }"
        >>> axes = read_bugs(text, {"x": [3, 1, 4]}).plot()
        >>> [each.get_text() for each in axes.texts]
        ['i in 1:3', 'rate', 'x']
        """
        from gibbsite.applications.bugs.simulation.plates import draw_plates

        return draw_plates(self, ax, None if path is None else Path(path))

    def arviz_groups(self, result: Result) -> dict[str, Arrays]:
        """Return the observations and their log-likelihoods, if the draws tell them and they fit in memory."""
        from gibbsite.applications.bugs.simulation.predictions import log_likelihoods, observations

        data = observations(self)
        if result.chains * result.n_draws * sum(each.size for each in data.values()) > _MOST_LIKELIHOODS or not data:
            return {"observed_data": data} if data else {}
        try:
            return {"log_likelihood": log_likelihoods(self, result), "observed_data": data}
        except GibbsiteError:
            return {"observed_data": data}

    def check_updates(self, seed: int) -> Iterator[tuple[str, str, bool, str]]:
        """Check the updates for :func:`gibbsite.testing.check_model`."""
        from gibbsite.applications.bugs.checks.updates import check_updates

        return check_updates(self, seed=seed)

    def __repr__(self) -> str:
        return f"BugsModel({int(self.network.unknown.sum()):,} unknowns, {', '.join(self.monitored[:6])})"


class _Measure:
    """Measures coefficients of means by compiled code."""

    def __init__(self, model: BugsModel) -> None:
        self.model = model

    def __call__(self, reach: Reach, members: Ints, size: int) -> Floats:
        from gibbsite.applications.bugs.starts import measure

        return measure(self.model, reach, members, size)


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
    if not isinstance(model, (str, os.PathLike)):
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
