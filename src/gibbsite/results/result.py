"""The result of a sampling run: estimates, their uncertainty, and the verdict on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import check_integer, checked
from gibbsite._common.arrays import Array, Floats, Ints32
from gibbsite._common.wording import argument, escaped
from gibbsite.errors import ArgumentError
from gibbsite.results.joint import pair_moments, pair_moments_mcse, recorded_pairs, sampled_joint
from gibbsite.results.measured import Measured
from gibbsite.results.quantiles import QUARTILES, Probabilities, Sites, find_hdi, find_quantile_errors, find_quantiles
from gibbsite.results.statistics import SHOWN, find_statistics
from gibbsite.results.table import SiteTable, observed_cells
from gibbsite.results.verdict.convergence import MOST_JUDGED
from gibbsite.results.wording import in_words

if TYPE_CHECKING:
    import pandas
    import xarray

    from gibbsite.results.tempering import AtBeta


@checked
@dataclass(frozen=True, eq=False, repr=False)
class Result(Measured):
    """The result of a sampling run: estimates with standard errors, what was recorded, and the verdict.

    Attributes
    ----------
    plan : Plan
        Everything that decided the numbers.
    domains : Domains
        Names and states of the free sites.
    evidence, evidence_labels : dict
        States of the observed sites, and all states that these sites have.
    n_draws, warmup : int
        Draws recorded in each chain, sweeps before them.
    totals : float array (chains, cells)
        Sums of all recorded probabilities; the raw material of the estimates.
    draws : array (chains, n_draws, sites) or empty
        Recorded draws: codes of states, or numbers, of the sites at the positions ``draw_sites``.
    draw_sites : int array
        Positions of the sites whose draws were recorded.
    energy : float array (chains, n_draws) or (chains, 0)
        Energy of every draw, where it was recorded: minus its log-potential, which is that of
        ``model.log_potential``, constants and evidence included.
    unreached : tuple
        States that the factors allow but that no chain could enter.
    visit_times : float array (marginal cells,) or empty
        Integrated autocorrelation times, in sweeps, of states that are rare in the run, measured by chains
        that were started in them; 1 where nothing was measured. They are larger where exact conditional
        marginals show that the standard errors of the run are too small.
    errors : {"draws", "chains", "sums", "none"}
        What standard errors can be taken from, see ``Kernel.error_source``. Where nothing is known about
        errors (also with a single chain of the second kind) ``mcse``, ``ess`` and ``rhat`` hold NaN.
    remarks : tuple of str
        Warnings of the kernel about its results that no number here shows.
    report : dict
        Counts of the kernel in all chains, the warmup included, by name; see ``Kernel.report``.
    kept : dict
        Records of the kernel in all chains after the warmup, as arrays by name; see ``Kernel.kept``.
    interrupted : bool
        The run ended early by Ctrl-C.
    task, accuracy : str and float or None
        What :func:`gibbsite.infer` was asked for: the answer is judged by it.
    check : Check or None
        The comparison with a second method, where there was one.
    seconds : float
        Time of the run and its verdict, without compiling; not saved, so that a saved result depends on the
        plan alone.

    References
    ----------
    Vehtari et al. (2021), Rank-normalization, folding, and localization: an improved R-hat.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.FactorGraph({"a": ["no", "yes"], "b": 2}, [(("a", "b"), [[4, 1], [1, 2]])])
    >>> result = gs.sample(model, sweeps=2000, rng=1, progress=False)
    >>> abs(result.marginals["a"]["no"] - 5 / 8) < 5 * result.mcse["a"]["no"]
    True
    >>> result.diagnostics.converged
    True
    """

    # ---- estimates

    def _batch_means(self, cell: int) -> Array:
        """Return the means of batches (chains, batches) of a cell; of an angle, direction or length.

        Those of the second cell of other numbers are means of squares.
        """
        cell = check_integer("cell", cell, 0)
        if cell >= self._trace.shape[2]:
            raise ArgumentError(f"{argument('cell')} must be below {self._trace.shape[2]:,}, got {cell}.")
        first = next((c for c in (cell, cell - 1) if c in self._circular), None)
        if first is None:
            return self._trace[:, :, cell]
        from gibbsite.results.measure.moments import Directions

        pair = np.array([first, first + 1])
        pooled = self.totals[:, pair].sum(axis=0) / max(self.chains * self.n_draws, 1)
        rate, low = (np.array([value]) for value in self._circular[first])
        seen = Directions(pooled, np.zeros(1, np.intp), rate, low)
        return np.asarray(seen.unrolled(self._trace[:, :, pair].astype(float))[:, :, cell - first])

    @cached_property
    def _circular(self) -> dict[int, tuple[float, float]]:
        """First cells of angles, with radians per unit and smallest value."""
        angular, low = self.domains.angular, self.domains.bounds[0]
        turns = (angular > 0.0)[self.domains.numbers]
        real = self.domains.numbers
        told = zip(angular[real][turns].tolist(), low[real][turns].tolist(), strict=True)
        cells = self._number_cells[turns].tolist() if self._number_cells.size else []
        return dict(zip(cells, told, strict=False))

    @cached_property
    def marginals(self) -> SiteTable:
        """Probability of every state of every site; of numbers, mean and standard deviation.

        Of angles, the mean direction and the resultant length. Where only some sites were recorded, there are
        only these; positions in the table count them alone. Where marginals were not recorded, they are NaN.
        """
        return self._table(self.numbers.mean if self._means is None else self._means, True, 1.0, 0.0)

    @cached_property
    def mcse(self) -> SiteTable:
        """Monte Carlo standard error of every marginal probability, mean and standard deviation."""
        return self._table(self.numbers.error, False, 0.0, 0.0)

    def errors_of(self, sites: Sequence[str]) -> SiteTable:
        """Return the standard errors of some sites; of very large models, computed for these alone.

        Examples
        --------
        >>> import gibbsite as gs
        >>> model = gs.ising_grid((2, 2), coupling=0.3)
        >>> result = gs.sample(model, sweeps=500, rng=1, progress=False)
        >>> result.errors_of(["3"])["3"] == result.mcse["3"]
        True
        """
        if self.totals.shape[1] <= MOST_JUDGED or not self._n_marginal or self._number_cells.size:
            return self.mcse
        free = [site for site in sites if site not in self.evidence]
        positions = np.array([self.domains.position(site) for site in free], np.intp)
        domains = self.domains.among(positions)
        observed = observed_cells(self.evidence, self.evidence_labels, 0.0, 0.0)
        return SiteTable(domains, self.measure(self._cells_of(positions)).error, self._binary, False, observed)

    @cached_property
    def ess(self) -> SiteTable:
        """Number of independent draws that would give the same standard error."""
        known = float(self.chains * self.n_draws)
        return self._table(self.numbers.ess, False, known, known)

    @cached_property
    def rhat(self) -> SiteTable:
        """Split R-hat of every state indicator, mean and standard deviation."""
        return self._table(self.numbers.rhat, False, 1.0, 1.0)

    # ---- other records

    def at(self, beta: float) -> AtBeta:
        """Return what a tempered run tells about another inverse temperature: log Z, energy, marginals.

        Marginals are those of the rung at ``beta``, where ``Tempered(keep="all")`` has recorded them.

        Examples
        --------
        >>> import gibbsite as gs
        >>> kernel = gs.Tempered(ladder=[0.0, 0.4, 1.0], keep="all")
        >>> model = gs.ising_grid((3, 3), coupling=0.5, field=0.2)
        >>> result = gs.sample(model, kernel, sweeps=4000, rng=1, progress=False)
        >>> result.at(0.0).marginals["4"][1] < result.at(0.4).marginals["4"][1] < result.marginals["4"][1]
        True
        """
        beta = float(beta)
        found = self.tempering.at(beta)
        sums, rung = self.kept["sums"], np.flatnonzero(np.isclose(self.tempering.betas, beta, atol=1e-9))
        if not rung.size or not sums.size:
            return found
        cells = sums[:, rung[0]].sum(axis=0) / max(self.tempering.sweeps, 1)
        cells = cells[1::2] if self._binary else cells
        observed = observed_cells(self.evidence, self.evidence_labels, 1.0, 0.0)
        return replace(found, marginals=SiteTable(self.domains, cells, self._binary, True, observed))

    @cached_property
    def recorded(self) -> dict[str, Any]:
        """What open recorders conclude from the run, by name; of observables, see :attr:`observables`."""
        pairs = zip(self._open, self._blocks, strict=True)
        return {recorder.key: recorder.conclude(blocks, self.n_draws) for recorder, blocks in pairs}

    def joint(self, *sites: str | int) -> Floats:
        """Return the joint probabilities of a set of sites, one axis per site as asked for.

        The set was recorded with ``gs.recorders.Joint``, or draws of its sites were; observed sites are allowed.

        Examples
        --------
        >>> import gibbsite as gs
        >>> model = gs.ising_grid((2, 2), coupling=0.5)
        >>> record = ["marginals", gs.recorders.Joint([("0", "1")])]
        >>> result = gs.sample(model, record=record, sweeps=2000, rng=1, progress=False)
        >>> result.joint("0", "1").shape
        (2, 2)
        """
        return sampled_joint(self, sites)

    def joint_mcse(self, *sites: str | int) -> Floats:
        """Return the standard errors of :meth:`joint`; NaN where nothing is known about errors.

        Examples
        --------
        >>> import gibbsite as gs
        >>> model = gs.ising_grid((2, 2), coupling=0.5)
        >>> result = gs.sample(model, record=["marginals", "draws"], sweeps=2000, rng=1, progress=False)
        >>> off = result.joint("0", "3") - gs.solve_exact(model).joint("0", "3")
        >>> bool((abs(off) < 5 * result.joint_mcse("0", "3")).all())
        True
        """
        return sampled_joint(self, sites, errors=True)

    @cached_property
    def pair_moments(self) -> tuple[Ints32, Floats]:
        """Recorded pairs (m, 2) and the mean of the product of their state labels.

        For labels that are not numbers the codes 0, 1, ... are used.
        """
        return recorded_pairs(self), pair_moments(self)

    @cached_property
    def pair_moments_mcse(self) -> Floats:
        """Standard errors (m,) of the means of :attr:`pair_moments`."""
        return pair_moments_mcse(self)

    def quantiles(self, sites: Sites = None, probabilities: Probabilities = QUARTILES) -> dict[str, dict[float, float]]:
        """Return quantiles of numbers, from recorded draws of all chains.

        Those of angles are measured from the mean direction, half a turn to either side, so they may lie
        outside the range of the angle by a part of a turn; they say little where there is hardly a direction.

        Parameters
        ----------
        sites : site or sequence of sites, optional
            Which; by default all numbers whose draws were recorded.
        probabilities : float or sequence of floats
            Between 0 and 1; by default 0.025, 0.25, 0.5, 0.75, 0.975.

        Returns
        -------
        dict
            Site to probability to quantile.

        Raises
        ------
        ModelError
            If a site has states, or its draws were not recorded.

        Examples
        --------
        >>> import gibbsite as gs
        >>> normal = gs.Gaussian([1.0], [[4.0]], names=["x"])
        >>> result = gs.sample(normal, sweeps=4000, record=["marginals", "draws"], rng=1, progress=False)
        >>> median, error = result.quantiles("x", 0.5)["x"][0.5], result.quantiles_mcse("x", 0.5)["x"][0.5]
        >>> abs(median - 1.0) < 5 * error
        True
        """
        return find_quantiles(self, sites, probabilities)

    def quantiles_mcse(
        self, sites: Sites = None, probabilities: Probabilities = QUARTILES
    ) -> dict[str, dict[float, float]]:
        """Return the standard errors of :meth:`quantiles`; NaN where nothing is known about errors.

        Notes
        -----
        The share of draws below the quantile of probability p is known as well as from S independent
        draws, S being the effective size of these indicators, so p is uncertain like a Beta(S p + 1,
        S (1 - p) + 1). Half the distance of the quantiles at the 16th and 84th percentile of that law is the
        error [1]_. Where draws are not random, it comes from the quantiles of the chains instead.

        References
        ----------
        .. [1] Vehtari, A., Gelman, A., Simpson, D., Carpenter, B., Buerkner, P.-C. (2021).
           Rank-normalization, folding, and localization: an improved R-hat for assessing convergence of
           MCMC. Bayesian Analysis 16(2), 667-718, section 4.3 and appendix D.
        """
        return find_quantile_errors(self, sites, probabilities)

    def hdi(self, sites: Sites = None, probability: float = 0.95) -> dict[str, tuple[float, float]]:
        """Return the highest-density interval of numbers: the shortest that holds that share of the draws.

        It is one interval also where a density has several peaks; of an angle it is the shortest arc, whose
        upper end is larger than its lower one also where it goes round. There is no standard error: ends of
        shortest intervals converge more slowly than means do.

        Parameters
        ----------
        sites : site or sequence of sites, optional
            Which; by default all numbers whose draws were recorded.
        probability : float
            Between 0 and 1.

        Returns
        -------
        dict
            Site to (low, high).

        Raises
        ------
        ModelError
            If a site has states, or its draws were not recorded.

        Examples
        --------
        >>> import gibbsite as gs
        >>> normal = gs.Gaussian([1.0], [[4.0]], names=["x"])
        >>> result = gs.sample(normal, sweeps=4000, record=["marginals", "draws"], rng=1, progress=False)
        >>> [round(end) for end in result.hdi("x", 0.68)["x"]]
        [-1, 3]
        """
        return find_hdi(self, sites, probability)

    def statistics(self, sites: Sites = None, probabilities: Probabilities = SHOWN) -> dict[str, dict[str, float]]:
        """Return mean, sd, mcse, ess, R-hat of ranks and quantiles of numbers, from draws; see :meth:`quantiles`.

        Examples
        --------
        >>> import gibbsite as gs
        >>> result = gs.sample(gs.Gaussian([1.0], [[4.0]], names=["x"]), record="draws", rng=1, progress=False)
        >>> list(result.statistics()["x"])
        ['mean', 'sd', 'mcse', 'ess', 'rhat', 'q2.5', 'q50', 'q97.5']
        """
        return find_statistics(self, sites, probabilities)

    # ---- views

    def report_line(self) -> str:
        """Return what the kernel has counted as a line of text; empty if nothing."""
        return ", ".join(f"{name} {in_words(figure)}" for name, figure in self.report.items())

    def _notes(self) -> list[str]:
        return [*super()._notes(), *([self.report_line()] * bool(self.report))]

    def _lines(self, most: int) -> Iterator[str]:
        """Yield marginals, and what was observed."""
        if self._n_marginal:
            names = list(islice(self.marginals, most))
            width = max((len(escaped(name)) for name in names), default=0)
            for name in names:
                texts = self.marginals.texts(name, self.mcse)
                parts = [f"{escaped(state)} {text}" for state, text in texts.items()]
                yield f"{escaped(name):>{width}}  {'  '.join(parts)}"
            if len(self.marginals) > len(names):
                yield f"... and {len(self.marginals) - len(names):,} more sites"
        observed = [line for each in self.observables.values() for line in each.lines()]
        yield from (escaped(line) for line in observed[:most])
        if len(observed) > most:
            yield f"... and {len(observed) - most:,} more observed quantities"

    def __repr__(self) -> str:
        return (
            f"Result({self.domains.n_sites:,} sites, {self.chains} chains x {self.n_draws:,} draws, "
            f"{self.plan.kernel['name']} x {self.plan.scan['name']})"
        )

    def to_datatree(self, **given: Any) -> xarray.DataTree:
        """Return draws, marginals and run data as an xarray DataTree, the form ArviZ 1 reads.

        See :func:`gibbsite.results.datatree.make_datatree`; the arguments are those of :meth:`to_arviz`.
        """
        from gibbsite.results.datatree import make_datatree

        return make_datatree(self, **given)

    def to_arviz(
        self,
        *,
        dims: Mapping[str, Sequence[str]] | None = None,
        coords: Mapping[str, Sequence[Any]] | None = None,
        **groups: Mapping[str, Any],
    ) -> Any:
        """Return what the installed ArviZ works with: a DataTree, or InferenceData before ArviZ 1.

        Runs of models in BUGS language come with the observations and, if they follow from recorded draws and
        are at most 10^8 numbers, their log-likelihoods, which ``arviz.loo`` and ``arviz.waic`` need.

        Parameters
        ----------
        dims : dict, optional
            Names of the dimensions of arrays, such as ``{"theta": ["school"]}``.
        coords : dict, optional
            Names of the entries along dimensions, such as ``{"school": ["A", "B"]}``.
        **groups
            Further groups of arrays (chains, draws, ...), such as ``posterior_predictive=model.predict(result)``.

        Examples
        --------
        ``az.summary(result.to_arviz())`` works with both.
        """
        from gibbsite.results.datatree import make_arviz

        return make_arviz(self, dims=dims, coords=coords, **groups)

    def to_dataframe(self) -> pandas.DataFrame:
        """Return a pandas table with one row for each state of each site, and one for each number.

        Columns are ``site``, ``state``, ``probability``, ``mcse``, ``ess``, ``rhat`` and ``observed``. Where
        there are numbers, they have ``mean`` and ``sd`` in place of ``probability``; ``mcse`` is that of the
        mean and ``sd_mcse`` that of the standard deviation; ``ess`` and ``rhat`` are the worse of both.
        Observables come last, by name in the column ``site``, their values by name in ``state``, with
        ``mean`` and ``sd``; the column ``observable``, which there is only then, tells them from sites.

        Examples
        --------
        >>> import gibbsite as gs
        >>> model = gs.FactorGraph({"a": ["no", "yes"], "b": 2}, [(("a", "b"), [[4, 1], [1, 2]])])
        >>> result = gs.sample(model.observe({"b": 1}), sweeps=1000, rng=1, progress=False)
        >>> result.to_dataframe()[["site", "state", "observed"]].values.tolist()
        [['a', 'no', False], ['a', 'yes', False], ['b', 0, True], ['b', 1, True]]
        """
        from gibbsite.results.dataframe import add_observables, make_dataframe

        frame = make_dataframe(self.marginals, {"mcse": self.mcse, "ess": self.ess, "rhat": self.rhat})
        return add_observables(frame, self.observables)

    def draws_dataframe(self) -> pandas.DataFrame:
        """Return recorded draws as a pandas table: one row per chain and draw, one column per site.

        Rows are indexed by chain and draw. Columns hold numbers, labels that are numbers, or a categorical of
        labels that are words.
        """
        from gibbsite.results.dataframe import make_draws_dataframe

        return make_draws_dataframe(self)

    def _pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        from gibbsite.results.save import pack_result

        return pack_result(self)
