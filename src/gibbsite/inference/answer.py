"""An answer of :func:`gibbsite.infer`, and the verdict on it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from gibbsite._common.arguments import check_count, checked
from gibbsite._common.wording import Text, argument
from gibbsite.errors import ArgumentError

if TYPE_CHECKING:
    import pandas

    from gibbsite._common.arrays import Floats
    from gibbsite.inference.belief import BeliefResult
    from gibbsite.inference.best_states.found import RankedState, SearchResult
    from gibbsite.inference.exact import ExactResult
    from gibbsite.inference.importance import LogZInterval, WeightedResult
    from gibbsite.inference.mean_field import MeanFieldResult
    from gibbsite.models import FactorGraph
    from gibbsite.results.result import Result
    from gibbsite.results.table import SiteTable

_PIECE = 1 << 16  # sites whose standard errors are computed at a time


@dataclass(frozen=True)
class Verdict:
    """How far to trust an answer, in the words and numbers of its method.

    Attributes
    ----------
    kind : str
        What the answer is: "exact", "estimate", "approximation", "lower bound", "upper bound" or "best
        found".
    text : str
        The verdict in one line; empty if there is nothing to say.
    reasons : tuple of str
        Why the answer cannot be relied upon, one sentence each.
    numbers : dict
        Diagnostics as plain data.
    plan : dict
        What decided the numbers, as plain data.
    error_known : bool
        Whether the method can tell how large the error of its answer is. Where it cannot, as with loopy
        belief propagation, mean field and bounds, the answer is never called converged.
    """

    kind: str
    text: str = ""
    reasons: tuple[str, ...] = ()
    numbers: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] = field(default_factory=dict)
    error_known: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class Inference:
    """An answer and how it was found.

    Attributes
    ----------
    task : {"MAR", "MAP", "PR", "MMAP"}
        Marginals, most probable state, log-partition function, or marginal MAP: the best states of some
        sites with all others summed out.
    method, reason : str
        What was used, and why.
    result : ExactResult, Result, SearchResult, WeightedResult, LogZInterval, MeanFieldResult or BeliefResult
        The answer with everything that belongs to it.
    verdict : Verdict
        What the answer is, and how far to trust it.
    seconds : float
        Time taken.
    assignment : mapping, optional
        The state found (MAP, MMAP), by name and label, observed sites included.
    log_potential : float, optional
        Its log-potential; on MMAP the logarithm of the sum over all other sites, which is the log of the
        state's probability plus the log-partition function.
    best : tuple of RankedState
        The best states (MAP), as many as were asked for: assignment, log-potential, and how many chains have
        found it. An exact answer has the most probable states of all; a search has distinct local maxima
        that it has seen, and there may be others between them.
    log_z_bounds : (float, float), optional
        A lower and an upper bound of the log-partition function that are certain, beside an estimate of it
        (PR); infinite where nothing is known.
    ties : dict, optional
        How many states are as good as the best one (MAP): "count", whether that is all of them ("complete"),
        and whether they were "counted" by an exact solution or "seen" by a search.

    Examples
    --------
    >>> import gibbsite as gs
    >>> answer = gs.infer(gs.ising_grid((3, 3), coupling=0.3, field=0.1), progress=False)
    >>> answer.method, answer.kind
    ('exact', 'exact')
    """

    task: str
    method: str
    reason: str
    model: FactorGraph
    result: ExactResult | Result | SearchResult | WeightedResult | LogZInterval | MeanFieldResult | BeliefResult
    verdict: Verdict
    seconds: float
    assignment: Mapping[str, Any] | None = None
    log_potential: float | None = None
    best: tuple[RankedState, ...] = ()
    log_z_bounds: tuple[float, float] | None = None
    ties: dict[str, Any] | None = None

    @property
    def kind(self) -> str:
        """What the answer is: exact, an estimate, an approximation, a bound, or the best found."""
        return self.verdict.kind

    @property
    def marginals(self) -> SiteTable:
        """Probability of every state of every site."""
        table: SiteTable | None = getattr(self.result, "marginals", None)
        if table is None:
            raise ArgumentError(f"A search for the best state gives no marginals; ask for {argument('task', 'MAR')}.")
        return table

    @property
    def mcse(self) -> SiteTable:
        """Standard error of every marginal; zero for exact answers, NaN where it is not known."""
        known: SiteTable | None = getattr(self.result, "mcse", None)
        if known is not None:
            return known
        import numpy as np

        from gibbsite.results.table import SiteTable

        table = self.marginals
        seen = {site: dict.fromkeys(states, 0.0) for site, states in table.observed.items()}
        return SiteTable(table.domains, np.full(table.cells.shape, np.nan), table.binary, False, seen)

    def joint(self, *sites: str | int) -> Floats:
        """Return the joint probabilities of a set of sites, one axis per site, as the result has them."""
        return self._answer("joint")(*sites)  # type: ignore[no-any-return]

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the marginals as a pandas table, as the result has it."""
        return self._answer("to_dataframe")()

    def _answer(self, name: str) -> Any:
        """Return a method of the result; a search for the best state has none about probabilities."""
        method = getattr(self.result, name, None)
        if method is None:
            raise ArgumentError(
                f"A search for the best state gives no probabilities; ask for {argument('task', 'MAR')}."
            )
        return method

    @property
    def log_z(self) -> float:
        """Natural logarithm of the partition function, or an estimate, approximation or bound of it."""
        untempered = "betas" not in getattr(self.result, "kept", {"betas": None})
        log_z: float | None = None if untempered else getattr(self.result, "log_z", None)
        if log_z is None:
            raise ArgumentError(
                f"This run gives no log-partition function; use {argument('method', 'tempered')} or "
                f"{argument('method', 'exact')}, or {argument('method', 'mean-field')} for a lower bound."
            )
        return log_z

    @property
    def log_z_error(self) -> float | None:
        """Standard error of the log-partition function: zero if it is exact, None where it is not known."""
        if self.kind == "exact":
            return 0.0
        error: float | None = getattr(self.result, "log_z_error", None)
        return error

    @checked
    def log_probability_of(self, log_potential: float) -> float | None:
        """Return the log of the probability, given the evidence, of a state with a log-potential (MAP, MMAP).

        None where the log-partition function is not known, that is, where the model was not solved exactly.
        """
        from gibbsite.inference.exact import ExactResult

        return log_potential - self.result.log_z if isinstance(self.result, ExactResult) else None

    @property
    def converged(self) -> bool | None:
        """Whether the answer can be relied upon: the run has converged, and to the accuracy asked for.

        None for bounds and approximations whose error is not known.
        """
        if self.reasons:
            return False
        return True if self.verdict.error_known else None

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the answer cannot be relied upon, one sentence each."""
        return self.verdict.reasons

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the method says about its answers beforehand, that no number shows."""
        return tuple(getattr(self.result, "remarks", ()))

    @property
    def interrupted(self) -> bool:
        """Whether the run was ended early by Ctrl-C."""
        return bool(getattr(self.result, "interrupted", False))

    def line(self) -> str:
        """Return method, reason and verdict in one line."""
        reason = self.reason.marked if isinstance(self.reason, Text) else self.reason
        return Text(f"{self.method} ({reason})" + (f"; {self.verdict.text}" if self.verdict.text else ""))

    def __repr__(self) -> str:
        return f"Inference({self.task} by {self.line()})"

    def __str__(self) -> str:
        return self.summary()

    def summary(self, most: int = 20) -> str:
        """Return the answer and the verdict on it as a readable table.

        Parameters
        ----------
        most : int
            Number of sites to show.

        Examples
        --------
        >>> import gibbsite as gs
        >>> print(gs.infer(gs.FactorGraph({"a": ["no", "yes"]}, [("a", [1, 3])])))
        exact (largest clique 2 entries, about 0.001 s)
        a  no 0.2500  yes 0.7500
        """
        check_count("most", most)
        from gibbsite.inference.showing import answer_lines

        lines = [self.line(), *(f"  {reason}" for reason in self.reasons)]
        if self.interrupted:
            lines.append("  interrupted: this is what there was")
        lines += [f"  note: {remark}" for remark in self.remarks]
        return "\n".join([*lines, *answer_lines(self, most=most)])

    def _repr_html_(self) -> str:
        from gibbsite.inference.showing import answer_html

        return answer_html(self)

    def rows(self, sites: Iterable[str] | None = None) -> Iterator[tuple[str, dict[Any, float], dict[Any, float]]]:
        """Yield name, probabilities and standard errors of every site, or of some.

        Standard errors of very large models are computed for some sites at a time.

        Examples
        --------
        >>> import gibbsite as gs
        >>> model = gs.FactorGraph({"a": ["no", "yes"]}, [("a", [1, 3])])
        >>> list(gs.infer(model).rows())
        [('a', {'no': 0.25, 'yes': 0.75}, {'no': 0.0, 'yes': 0.0})]
        """
        table = self.marginals
        errors = getattr(self.result, "errors_of", lambda names: self.mcse)
        names = iter(table if sites is None else sites)
        while piece := list(islice(names, _PIECE)):
            known = errors(piece)
            for name in piece:
                yield name, table[name], known[name]

    @checked
    def to_dict(self, sites: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the answer as JSON values, of all or some sites; the schema of ``gibbsite infer --json``."""
        answer: dict[str, Any] = {"task": self.task, "method": self.method, "reason": self.reason}
        answer["kind"] = self.kind
        if self.task == "MAR":
            rows = list(self.rows(sites))
            answer["marginals"] = {site: _by_text(states) for site, states, _ in rows}
            answer["mcse"] = {site: _by_text(errors) for site, _, errors in rows}
        elif self.task in ("MAP", "MMAP"):
            assert self.assignment is not None
            chosen = self.assignment if sites is None else sites
            answer["assignment"] = {site: str(self.assignment[site]) for site in chosen}
            answer["log_potential"] = self.log_potential
            assert self.log_potential is not None
            answer["log_probability"] = self.log_probability_of(self.log_potential)
            answer["proved"] = self.kind == "exact"
            answer["best"] = [
                {
                    "assignment": {site: str(one.assignment[site]) for site in chosen},
                    "log_potential": one.log_potential,
                    "found": one.found,
                }
                for one in self.best
            ]
            answer["best_are"] = "most probable states" if self.kind == "exact" else "local maxima found"
            answer["log_potential_is"] = (
                "log of the sum over all other sites" if self.task == "MMAP" else "log-potential of the state"
            )
            if self.ties is not None:
                answer["ties"] = self.ties
        else:
            answer["log_z"] = _finite(self.log_z)
            answer["log_z_error"] = _finite(self.log_z_error)
            if self.log_z_bounds is not None:
                answer["log_z_bounds"] = [_finite(bound) for bound in self.log_z_bounds]
        verdict = {**self.verdict.numbers, "converged": self.converged, "reasons": list(self.reasons)}
        answer["diagnostics"] = {key: _finite(value) for key, value in verdict.items()}
        answer["remarks"] = list(self.remarks)
        answer["seconds"] = self.seconds
        answer["plan"] = self.verdict.plan
        return answer


def _finite(value: Any) -> Any:
    """Return a value for JSON, which knows no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _by_text(states: Mapping[Any, float]) -> dict[str, float | None]:
    return {str(state): _finite(p) for state, p in states.items()}
