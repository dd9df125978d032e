"""What a fit of couplings returns: the model, and how it came about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Bools, Floats, Ints, Ints32
from gibbsite.results.dataframe import load_pandas

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


_SHOWN = 12  # pairs in a notebook


@checked
@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model, with the course and the accuracy of the fit.

    Attributes
    ----------
    model : FactorGraph
        The model; its groups are "couplings" and "fields".
    pairs : int array (pairs, 2)
        Sites that may be coupled.
    couplings : float array (pairs,), or (pairs, K, K) for tables
        Their couplings.
    fields : float array (sites,), or (sites, K); empty without fields
        Fields.
    strengths : float array (pairs,)
        Strengths of the couplings: absolute couplings, or the largest entries of tables minus row and column means.
    path : float array (kept, parameters)
        Parameters before the first step and after each step, pairs first; long paths are thinned.
    path_steps : int array (kept,)
        Numbers of steps of these parameters.
    lengths : int array (steps,)
        Number of updates of each chain at each step.
    variations : float array (steps,)
        Bounds on the total variation between a chain's state and the model; NaN for persistent chains.
    updates : int
        Number of single-site updates of all chains in all steps.
    check_updates : int
        Number of further updates, for the error bound.
    error_bound : float
        Bound on the Euclidean distance of the parameters from the maximum of the penalised likelihood; infinite if
        nothing is known.
    confidence : float
        Confidence level of the bound.
    exact : bool
        Whether gradients were exact.
    seconds : float
        Time of the fit.
    interrupted : bool
        Whether Ctrl-C ended the ascent early; the error bound is then infinite.
    standard_errors : float array (parameters,)
        Standard errors of the parameters, pairs first, if the draws are independent and follow a model of this
        structure: how far the maximum of the penalised likelihood is from what infinitely many draws would give.
        They do not contain the distance from the maximum, which `error_bound` bounds. NaN where they are not known:
        of fits to moments, of tables without a ridge, of parameters at a bound or of statistics that never change
        in the data, after an interrupt, and of more than 2,000 parameters.
    """

    model: FactorGraph
    pairs: Ints32
    couplings: Floats
    fields: Floats
    strengths: Floats
    path: Floats
    path_steps: Ints
    lengths: Ints
    variations: Floats
    updates: int
    check_updates: int
    error_bound: float
    confidence: float
    exact: bool
    seconds: float
    interrupted: bool
    standard_errors: Floats

    @property
    def gradient_steps(self) -> int:
        """Number of gradient steps."""
        return len(self.lengths)

    @property
    def parameters(self) -> Floats:
        """All parameters, pairs first."""
        last: Floats = self.path[-1]
        return last

    def edges(self, threshold: float = 0.0) -> list[tuple[str, str, float]]:
        """Return the pairs with a strength above a threshold, strongest first, by name.

        Parameters
        ----------
        threshold : float
            Smallest strength, exclusive.

        Returns
        -------
        list of (str, str, float)
            Two sites and their signed coupling: the coupling of an Ising model, or the strength of a table, which
            is negative if equal states are on average less favoured than others.

        Examples
        --------
        >>> import gibbsite as gs
        >>> fit = gs.learn.fit_ising(
        ...     moments=[[1.0, -0.5], [-0.5, 1.0]], fields=False, gradient="exact", progress=False
        ... )
        >>> [(a, b, round(coupling, 4)) for a, b, coupling in fit.edges()]
        [('0', '1', -0.5493)]
        """
        order = np.argsort(-self.strengths, kind="stable")
        names = self.model.sites
        chosen = [k for k in order.tolist() if self.strengths[k] > threshold]
        signed = np.where(self._repels(), -self.strengths, self.strengths).tolist()
        ends = self.pairs.tolist()
        return [(names[ends[k][0]], names[ends[k][1]], signed[k]) for k in chosen]

    def to_dataframe(self) -> Any:
        """Return all parameters as a pandas DataFrame, a row each.

        Returns
        -------
        pandas.DataFrame
            Columns ``site`` and ``other`` (None for fields), of tables ``state`` and ``other_state`` as well, and
            ``value`` and ``se``, the standard error.

        Examples
        --------
        >>> import gibbsite as gs
        >>> fit = gs.learn.fit_ising([[1, 1], [1, -1], [-1, 1], [1, 1]], ridge=1.0, gradient="exact", progress=False)
        >>> fit.to_dataframe()["site"].tolist()
        ['0', '0', '1']
        """
        pandas = load_pandas()
        names, states = self.model.sites, self.couplings.shape[1:]
        ends = self.pairs.tolist()
        rows: list[tuple[Any, ...]] = []
        if not states:
            rows += [(names[i], names[j]) for i, j in ends]
            rows += [(name, None) for name, _ in zip(names, self.fields, strict=False)]
            columns = ["site", "other"]
        else:
            labels = [self.model.labels(k) for k in range(len(names))]
            rows += [(names[i], names[j], a, b) for i, j in ends for a in labels[i] for b in labels[j]]
            for k, _ in enumerate(self.fields):
                rows += [(names[k], None, a, None) for a in labels[k]]
            columns = ["site", "other", "state", "other_state"]
        found = pandas.DataFrame(rows, columns=columns, dtype=object)
        return found.assign(value=self.parameters, se=self.standard_errors)

    def _repels(self) -> Bools:
        """Return, for each pair, whether equal states are less favoured than others."""
        if self.couplings.ndim == 1:
            return self.couplings < 0.0
        equal = np.trace(self.couplings, axis1=1, axis2=2) / self.couplings.shape[1]
        found: Bools = equal < self.couplings.mean(axis=(1, 2))
        return found

    @property
    def statement(self) -> str:
        """A description of the fit and its accuracy."""
        how = "exact gradients" if self.exact else f"{self.updates:,} single-site updates"
        text = f"{self.parameters.size} parameters, {self.gradient_steps} gradient steps, {how}."
        if self.interrupted:
            text = f"Interrupted before the end: {text}"
        if unknown := count_unknown(self.variations):
            text += f" In {unknown} of them, nothing is known about the distance of chains from the model."
        if np.isfinite(self.error_bound):
            sure = "" if self.exact else f", with confidence {self.confidence:.3g}"
            return f"{text} Distance from the maximum: at most {self.error_bound:.3g}{sure}."
        return f"{text} Nothing is known about the distance from the maximum."

    def __repr__(self) -> str:
        return f"Fit({self.statement})"

    def _repr_html_(self) -> str:
        from gibbsite._common.html import card, grid

        edges = self.edges()
        rows = [(a, b, f"{value:.4g}") for a, b, value in edges[:_SHOWN]]
        table = grid(("site", "other", "coupling"), rows, len(edges) - len(rows), "pairs") if rows else []
        return card("Fit", [self.statement], table=table)


def count_unknown(variations: Floats) -> int:
    """Return the number of steps without a useful bound on the distance of chains from the model."""
    return int((~(variations < 1.0)).sum())
