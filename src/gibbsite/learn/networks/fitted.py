"""What learning of tables returns: the network, the posterior of its tables, and answers that average over it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsite._common.arguments import check_integer, checked
from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite._common.wording import argument, unknown
from gibbsite.errors import ArgumentError, SupportError
from gibbsite.inference.exact.cases import CaseTree
from gibbsite.learn.networks.augmentation import draw_tables
from gibbsite.learn.networks.expectation import make_model
from gibbsite.learn.networks.layout import Layout, row_of_entries
from gibbsite.learn.networks.structure import Parents
from gibbsite.models import BayesianNetwork, FactorGraph
from gibbsite.models.domain import Label, make_domains
from gibbsite.results.answer import Diagnostics
from gibbsite.results.dataframe import load_pandas
from gibbsite.results.table import SiteTable

_SHOWN = 12  # rows of tables in a summary


@dataclass(frozen=True, eq=False)
class AveragedAnswer:
    """Marginals averaged over draws of the tables.

    Attributes
    ----------
    mean : SiteTable
        Probability of every state of the sites asked for, given the evidence and the data.
    sd : SiteTable
        Standard deviation over the posterior of the tables: how much more data could change the probability.
    mcse : SiteTable
        Standard errors of the means from a finite number of draws.
    draws : int
        Number of draws of the tables.
    """

    mean: SiteTable
    sd: SiteTable
    mcse: SiteTable
    draws: int

    def summary(self) -> str:
        """Return a line for each site, with standard deviations in brackets."""
        lines = [f"averaged over {self.draws} draws of the tables (standard deviation over draws in brackets)"]
        for site, states in self.mean.items():
            numbers = "  ".join(f"{s} {p:.4f} ({self.sd[site][s]:.4f})" for s, p in states.items())
            lines.append(f"{site}  {numbers}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.summary()


@dataclass(frozen=True, eq=False)
class TableFit:
    """Conditional tables learned from cases.

    Attributes
    ----------
    sites : tuple of str
        The sites.
    states : tuple of tuples
        Their states.
    parents : dict
        The parents of each site.
    method : str
        "counts", "em" or "gibbs".
    prior : str
        What the prior is called.
    log_likelihood : float
        Of the observed cells, at the tables of `model`.
    path : tuple of float
        The objective of EM before each step of its best start; it never decreases.
    n_cases, n_missing : int
        Numbers of cases, and of missing cells in the columns of the network.
    diagnostics : Diagnostics
        How far to trust the tables.
    seconds : float
        Time taken.
    """

    sites: tuple[str, ...]
    states: tuple[tuple[Label, ...], ...]
    parents: Parents
    method: str
    prior: str
    log_likelihood: float
    path: tuple[float, ...]
    n_cases: int
    n_missing: int
    total: float
    diagnostics: Diagnostics
    seconds: float
    layout: Layout = field(repr=False)
    tables: Floats = field(repr=False)
    sds: Floats = field(repr=False)
    counts: Floats = field(repr=False)
    pseudocounts: Floats = field(repr=False)
    kept: Floats | None = field(repr=False)

    @property
    def model(self) -> FactorGraph:
        """The network with the learned tables: their posterior means, or those of maximum likelihood."""
        return make_model(self.layout, self.tables, self.sites, self.states)

    @property
    def network(self) -> BayesianNetwork:
        """The same as a network that can be looked at, changed and written to a file."""
        return BayesianNetwork.from_model(self.model)

    @property
    def converged(self) -> bool | None:
        """Whether the tables can be relied upon."""
        return self.diagnostics.converged

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why they cannot be relied upon, one sentence each."""
        return self.diagnostics.reasons

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        sizes = np.diff(self.layout.start)
        return int((sizes - sizes // self.layout.card).sum())

    @property
    def bic(self) -> float:
        """The log-likelihood less half the number of parameters times the logarithm of the number of cases."""
        return self.log_likelihood - 0.5 * self.n_parameters * float(np.log(self.total))

    @property
    def dirichlet(self) -> Floats | None:
        """Parameters of the Dirichlet posterior of all rows of all tables, None where it is another."""
        return self.counts + self.pseudocounts if self.method == "counts" and self.pseudocounts.any() else None

    def table(self, site: str) -> Floats:
        """Return the conditional table of a site, axes of its parents first.

        Parameters
        ----------
        site : str
            Name of the site.

        Examples
        --------
        >>> import gibbsite as gs
        >>> fit = gs.learn.fit_tables({"a": [0, 0, 1, 1], "b": [0, 1, 1, 1]}, [("a", "b")])
        >>> fit.table("b").tolist()
        [[0.5, 0.5], [0.0, 1.0]]
        """
        return self._part(site, self.tables)

    def sd(self, site: str) -> Floats:
        """Return the posterior standard deviations of a table, or standard errors of maximum likelihood.

        NaN where nothing is known: after EM, and for rows without cases.

        Parameters
        ----------
        site : str
            Name of the site.
        """
        return self._part(site, self.sds)

    def draws(self, site: str, size: int = 1000, rng: Any = 0) -> Floats:
        """Return posterior draws of a table (draws, parents..., states).

        Parameters
        ----------
        site : str
            Name of the site.
        size : int
            Number of draws; at most those of a Gibbs run, of which evenly spaced ones are taken.
        rng : int or Generator
            Seed for draws from the Dirichlet posterior.
        """
        found = self.draw_tables(size, rng)
        return found[:, self._slice(site)].reshape(len(found), *self._shape(site))

    def draw_tables(self, size: int, rng: Any = 0) -> Floats:
        """Return posterior draws of all tables (draws, entries), in the order of the sites."""
        size = check_integer("size", size, 1)
        if self.kept is not None:
            flat = self.kept.reshape(-1, self.kept.shape[-1])
            found: Floats = flat[np.linspace(0, len(flat) - 1, min(size, len(flat))).astype(int)]
            return found
        if self.dirichlet is None:
            raise ArgumentError(
                'these tables have no posterior; give a prior such as prior="bdeu", and with missing cells '
                'method="gibbs".'
            )
        generator, rows = np.random.default_rng(rng), row_of_entries(self.layout)
        return np.stack([draw_tables(self.layout, rows, self.dirichlet, generator) for _ in range(size)])

    @checked
    def infer(
        self,
        query: str | Sequence[str] | None = None,
        evidence: Mapping[str, Any] | None = None,
        *,
        draws: int = 200,
        rng: Any = 0,
    ) -> AveragedAnswer:
        """Answer a question with the uncertainty of the tables.

        Parameters
        ----------
        query : str or sequence of str, optional
            Sites asked for; all that are not observed by default.
        evidence : mapping, optional
            Observed states by site.
        draws : int
            Number of draws of the tables, each of which is solved exactly.
        rng : int or Generator
            Seed of the draws.

        Returns
        -------
        AveragedAnswer

        Notes
        -----
        Draws are weighted by the probability that they give to the evidence, so that the mean is the probability of a
        state in a new case with this evidence.

        Examples
        --------
        >>> import gibbsite as gs
        >>> data = {"rain": ["no", "yes"] * 20, "grass": ["dry", "wet"] * 19 + ["wet", "wet"]}
        >>> fit = gs.learn.fit_tables(data, [("rain", "grass")], prior="k2")
        >>> found = fit.infer("rain", {"grass": "wet"})
        >>> round(found.mean["rain"]["yes"], 1), 0.01 < found.sd["rain"]["yes"] < 0.1
        (0.9, True)
        """
        wanted, codes = self._read_question(query, evidence or {})
        several = self.draw_tables(check_integer("draws", draws, 2), rng)
        logs = np.empty(len(several))
        cells = np.empty((len(several), int(self.layout.card.sum())))
        for k, tables in enumerate(several):
            tree = CaseTree(make_model(self.layout, tables, self.sites))
            found, cell = tree.solve(codes)
            logs[k], cells[k] = found[0], cell[0]
        if not np.isfinite(logs).any():
            raise SupportError("the evidence is impossible in this network.")
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        first = np.cumsum(self.layout.card) - self.layout.card
        chosen = np.concatenate([first[i] + np.arange(self.layout.card[i]) for i in wanted])
        mean = weights @ cells[:, chosen]
        sd = np.sqrt(weights @ np.square(cells[:, chosen] - mean))
        independent = self.diagnostics.figures.get("ess_min") or np.inf
        share = max(float(np.square(weights).sum()), 1.0 / float(independent))
        domains = make_domains({self.sites[i]: list(self.states[i]) for i in wanted}, None)
        answers = (SiteTable(domains, numbers) for numbers in (mean, sd, sd * np.sqrt(share)))
        return AveragedAnswer(next(answers), next(answers), next(answers), len(several))

    def to_dataframe(self) -> Any:
        """Return all tables as a pandas DataFrame, a row for each entry.

        Returns
        -------
        pandas.DataFrame
            Columns ``site``, ``given`` (states of the parents as text), ``state``, ``probability``, ``sd`` and
            ``count``.
        """
        rows = [
            (site, given, state, self.tables[k], self.sds[k], self.counts[k])
            for k, (site, given, state) in enumerate(self._entries())
        ]
        columns = ["site", "given", "state", "probability", "sd", "count"]
        return load_pandas().DataFrame(rows, columns=columns)

    @property
    def statement(self) -> str:
        """What was learned from what."""
        missing = f", {self.n_missing:,} missing cells" if self.n_missing else ""
        return (
            f"{self.n_parameters:,} parameters of {len(self.sites)} tables from {self.n_cases:,} cases{missing}; "
            f"prior: {self.prior}; log-likelihood {self.log_likelihood:.6g}, BIC {self.bic:.6g}"
        )

    def summary(self, most: int = _SHOWN) -> str:
        """Return verdict and tables as readable text.

        Parameters
        ----------
        most : int
            Number of rows of tables to show.
        """
        lines = [self.diagnostics.line(), *(f"  {reason}" for reason in self.reasons), self.statement]
        shown: dict[tuple[str, str], list[str]] = {}
        for k, (site, given, state) in enumerate(self._entries()):
            error = "" if np.isnan(self.sds[k]) else f" ({self.sds[k]:.2g})"
            shown.setdefault((site, given), []).append(f"{state} {self.tables[k]:.4f}{error}")
        rows = list(shown.items())
        for (site, given), cells in rows[:most]:
            lines.append(f"{site}{f' | {given}' if given else ''}:  {'  '.join(cells)}")
        if len(rows) > most:
            lines.append(f"... and {len(rows) - most:,} more rows (to_dataframe)")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"TableFit({self.statement})"

    def _repr_html_(self) -> str:
        from gibbsite._common.html import card

        return card(self.diagnostics.word, [self.statement], good=bool(self.converged), notes=self.reasons)

    def _entries(self) -> Iterator[tuple[str, str, Label]]:
        """Yield site, states of the parents and state of each entry."""
        for i, site in enumerate(self.sites):
            scope = self.layout.site[self.layout.begin[i] : self.layout.begin[i + 1]].tolist()
            for codes in np.ndindex(*self._shape(site)):
                labels = [self.states[k][code] for k, code in zip(scope, codes, strict=True)]
                given = [f"{self.sites[k]}={label}" for k, label in zip(scope[:-1], labels, strict=False)]
                yield site, ", ".join(given), labels[-1]

    def _index(self, site: Any) -> int:
        if site not in self.sites:
            raise ArgumentError(unknown("the site", site, self.sites))
        return self.sites.index(site)

    def _slice(self, site: str) -> slice:
        i = self._index(site)
        return slice(int(self.layout.start[i]), int(self.layout.start[i + 1]))

    def _shape(self, site: str) -> tuple[int, ...]:
        i = self._index(site)
        scope = self.layout.site[self.layout.begin[i] : self.layout.begin[i + 1]]
        return tuple(self.layout.card[scope].tolist())

    def _part(self, site: str, flat: Array) -> Floats:
        return flat[self._slice(site)].reshape(self._shape(site)).copy()

    def _read_question(self, query: Any, evidence: Mapping[str, Any]) -> tuple[list[int], Ints]:
        """Return the sites asked for, and the evidence as a case."""
        codes = np.full((1, len(self.sites)), -1, np.int64)
        for site, state in evidence.items():
            i = self._index(site)
            texts = [str(label) for label in self.states[i]]
            if str(state) not in texts:
                raise ArgumentError(unknown(f"the state of {site}", state, texts))
            codes[0, i] = texts.index(str(state))
        if query is None:
            return np.flatnonzero(codes[0] < 0).tolist(), codes
        names = [query] if isinstance(query, str) else list(query)
        if not names:
            raise ArgumentError(f"{argument('query')} is empty; name a site.")
        return [self._index(name) for name in names], codes
