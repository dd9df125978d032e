"""Many cases of evidence on one model: by one clique tree if that fits, otherwise each by sampling."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite.errors import ModelError
from gibbsite.inference.asking import choose, infer
from gibbsite.inference.methods import DEFAULT_SECONDS
from gibbsite.models import FactorGraph
from gibbsite.results.verdict.criteria import Criteria

Case = Mapping[str, Any]


class Solved(NamedTuple):
    """Answers for cases, a row each: log Z, marginals of all cells, their standard errors, and what is not sure."""

    log_z: Floats
    log_z_error: Floats
    cells: Floats
    errors: Floats
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class CaseSolver:
    """Solves cases of evidence on a model.

    Attributes
    ----------
    model : FactorGraph
        The model before the evidence of the cases.
    method, exact, seconds, run
        As in :func:`gibbsite.infer`; ``seconds`` is for all cases together.

    Examples
    --------
    >>> import gibbsite as gs
    >>> solver = CaseSolver(gs.example("asia"))
    >>> solver.solve([{}, {"smoke": "yes"}]).cells[:, solver.cell("lung", "yes")].round(4).tolist()
    [0.055, 0.1]
    """

    model: FactorGraph
    method: Any = "auto"
    exact: bool = True
    seconds: float | None = None
    run: Mapping[str, Any] | None = None

    @cached_property
    def chosen(self) -> tuple[Any, str]:
        """The method and the reason for it."""
        return choose(self.model, "MAR", self.method, self.seconds, self.exact)

    @property
    def is_exact(self) -> bool:
        """Whether answers are exact."""
        return bool(self.chosen[0] == "exact")

    @cached_property
    def _tree(self) -> Any:
        from gibbsite.inference.exact.cases import CaseTree

        return CaseTree(self.model, threads=os.cpu_count() or 1)

    @cached_property
    def offset(self) -> Ints:
        """The first cell of each site."""
        return np.concatenate([[0], np.cumsum(self.model.cards)]).astype(np.int64)

    def cell(self, site: str | int, state: Any) -> int:
        """Return the number of the cell of a state."""
        at = self.model.index(site)
        return int(self.offset[at]) + self.model.domains.code(at, state)

    def cells_of(self, site: str | int) -> slice:
        """Return the cells of a site."""
        at = self.model.index(site)
        return slice(int(self.offset[at]), int(self.offset[at + 1]))

    def codes(self, cases: Sequence[Case]) -> Ints:
        """Return cases as codes (cases, sites), -1 where nothing is observed."""
        found = np.full((len(cases), self.model.n_sites), -1, np.int64)
        for row, case in zip(found, cases, strict=True):
            for site, state in case.items():
                at = self.model.index(site)
                row[at] = self.model.domains.code(at, state)
        return found

    def solve(self, cases: Sequence[Case], query: Sequence[str] | None = None, log_z: bool = True) -> Solved:
        """Return the answers for all cases; those of impossible ones are NaN, with log Z minus infinity.

        Where cases are sampled, ``query`` names the sites that matter, and log Z is computed only if it is needed.
        """
        if self.is_exact:
            log_sums, cells = self._tree.solve(self.codes(cases))
            nothing = np.zeros(len(cases))
            return Solved(log_sums, nothing, cells, np.where(np.isnan(cells), np.nan, 0.0), ())
        many, size = len(cases), int(self.offset[-1])
        nothing = np.full((many, size), np.nan)
        found = Solved(np.full(many, np.nan), np.full(many, np.nan), nothing, nothing.copy(), ())
        reasons: list[str] = []
        share = (DEFAULT_SECONDS if self.seconds is None else self.seconds) / max(many, 1) / (1 + log_z)
        for k, case in enumerate(cases):
            reasons += self._sample(found, k, case, query, share, log_z)
        return found._replace(reasons=tuple(dict.fromkeys(reasons)))

    def _sample(
        self, found: Solved, k: int, case: Case, query: Sequence[str] | None, seconds: float, log_z: bool
    ) -> list[str]:
        """Answer one case by sampling; return why the answer is not sure."""
        run: dict[str, Any] = {"progress": False, **(self.run or {})}
        how: dict[str, Any] = {"method": self.method, **({"exact": False} if self.method == "auto" else {})}
        try:
            observed = self.model.observe(case) if case else self.model
        except ModelError:
            found.log_z[k] = -np.inf
            return []
        asked = None if query is None else [site for site in query if site not in case]
        reasons: list[str] = []
        if asked is None or asked:
            answer = infer(observed, seconds=seconds, criteria=Criteria(accuracy=0.01, query=asked), **how, **run)
            reasons += answer.reasons
            assert answer.marginals is not None and answer.mcse is not None
            for site in self.model.sites:
                cells = self.cells_of(site)
                found.cells[k, cells] = list(answer.marginals[site].values())
                found.errors[k, cells] = list(answer.mcse[site].values())
        for site in case:
            found.cells[k, self.cells_of(site)] = 0.0
            found.cells[k, self.cell(site, case[site])] = 1.0
            found.errors[k, self.cells_of(site)] = 0.0
        if log_z:
            of_case = infer(observed, "PR", seconds=seconds, **run)
            found.log_z[k] = math.nan if of_case.log_z is None else of_case.log_z
            found.log_z_error[k] = math.nan if of_case.log_z_error is None else of_case.log_z_error
            reasons += of_case.reasons
        return reasons
