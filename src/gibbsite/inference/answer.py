"""An answer of :func:`gibbsite.infer`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from gibbsite._common.arguments import checked
from gibbsite._common.wording import Text, argument
from gibbsite.errors import ArgumentError
from gibbsite.results.answer import Answer, Diagnostics

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


@dataclass(frozen=True, eq=False, repr=False)
class Inference(Answer):
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
    seconds : float
        Time taken.
    assignment : mapping, optional
        The state found (MAP, MMAP), by name and label, observed sites included.
    log_potential : float, optional
        Its log-potential; on MMAP the logarithm of the sum over all other sites, which is the log of the
        state's probability plus the log-partition function.
    ranked : tuple of RankedState
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
    seconds: float
    assignment: Mapping[str, Any] | None = field(default=None)
    log_potential: float | None = field(default=None)
    ranked: tuple[RankedState, ...] = ()
    log_z_bounds: tuple[float, float] | None = field(default=None)
    ties: dict[str, Any] | None = None

    @property
    def diagnostics(self) -> Diagnostics:
        """How far to trust the answer."""
        return self.result.diagnostics

    @property
    def kind(self) -> str:
        """What the answer is: exact, an estimate, an approximation, a bound, or the best found."""
        return str(self.diagnostics.kind)

    @property
    def marginals(self) -> SiteTable | None:
        """Probability of every state of every site; None if the method gives none."""
        return self.result.marginals

    @property
    def mcse(self) -> SiteTable | None:
        """Standard error of every marginal; zero for exact answers, NaN where it is not known."""
        return self.result.mcse

    @property
    def log_z(self) -> float | None:
        """Natural logarithm of the partition function, or an estimate, approximation or bound of it."""
        return self.result.log_z

    @property
    def log_z_error(self) -> float | None:
        """Standard error of the log-partition function: zero if it is exact, None where it is not known."""
        return self.result.log_z_error

    def joint(self, *sites: str | int) -> Floats:
        """Return the joint probabilities of a set of sites, one axis per site, as the result has them."""
        joint = getattr(self.result, "joint", None)
        if joint is None:
            raise ArgumentError(f"This method gives no joint probabilities; ask for {argument('task', 'MAR')}.")
        return joint(*sites)  # type: ignore[no-any-return]

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the answer as a pandas table, as the result has it."""
        return super().to_dataframe() if self.task in ("MAP", "MMAP") else self.result.to_dataframe()

    @checked
    def log_probability_of(self, log_potential: float) -> float | None:
        """Return the log of the probability, given the evidence, of a state with a log-potential (MAP, MMAP).

        None where the log-partition function is not known, that is, where the model was not solved exactly.
        """
        from gibbsite.inference.exact import ExactResult

        return log_potential - self.result.log_z if isinstance(self.result, ExactResult) else None

    @property
    def remarks(self) -> tuple[str, ...]:
        """General warnings of the method about its answers."""
        return self.result.remarks

    @property
    def interrupted(self) -> bool:
        """Whether the run was ended early by Ctrl-C."""
        return self.result.interrupted

    def line(self) -> str:
        """Return method, reason and verdict in one line."""
        reason = self.reason.marked if isinstance(self.reason, Text) else self.reason
        return Text(f"{self.method} ({reason})" + (f"; {self.result.line()}" if self.diagnostics.text else ""))

    def __repr__(self) -> str:
        return f"Inference({self.task} by {self.line()})"

    def _lines(self, most: int) -> Iterator[str]:
        from gibbsite.inference.showing import answer_lines

        return answer_lines(self, most=most)

    @property
    def plan(self) -> dict[str, Any]:
        """What decided the numbers, as plain data."""
        plan: Any = self.result.plan
        return plan if isinstance(plan, dict) else {**plan.to_dict(), "sweeps": self.diagnostics.draws * plan.thin}

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
        if table is None:
            return
        errors = getattr(self.result, "errors_of", lambda names: self.mcse)
        names = iter(table if sites is None else sites)
        while piece := list(islice(names, _PIECE)):
            known: Any = errors(piece)
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
                for one in self.ranked
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
        answer["diagnostics"] = {key: _finite(value) for key, value in self.diagnostics.to_dict().items()}
        answer["remarks"] = list(self.remarks)
        answer["seconds"] = self.seconds
        answer["plan"] = self.plan
        return answer


def _finite(value: Any) -> Any:
    """Return a value for JSON, which knows no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _by_text(states: Mapping[Any, float]) -> dict[str, float | None]:
    return {str(state): _finite(p) for state, p in states.items()}
