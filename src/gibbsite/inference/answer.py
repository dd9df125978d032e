"""The answer of :func:`gibbsite.infer`, and its text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from gibbsite._common.arguments import checked, describe
from gibbsite._common.wording import Text, argument, escaped
from gibbsite.errors import ArgumentError, GibbsiteError
from gibbsite.results.answer import Answer, Diagnostics
from gibbsite.results.rows import site_lines
from gibbsite.results.wording import with_sign

if TYPE_CHECKING:
    import pandas

    from gibbsite._common.arrays import Floats
    from gibbsite.inference.belief import BeliefResult
    from gibbsite.inference.best_states.found import RankedState, SearchResult
    from gibbsite.inference.exact import ExactResult
    from gibbsite.inference.importance import LogZInterval, WeightedResult
    from gibbsite.inference.mean_field import MeanFieldResult
    from gibbsite.models import FactorGraph, Model
    from gibbsite.results.result import Result
    from gibbsite.results.table import SiteTable


_PIECE = 1 << 16  # sites whose standard errors are computed together


@checked
@dataclass(frozen=True, eq=False, repr=False)
class Inference(Answer):
    """An answer and how it was found.

    Attributes
    ----------
    task : {"MAR", "MAP", "PR", "MMAP"}
        Marginals, most probable state, log-partition function, or marginal MAP: the best states of some sites with all
        others summed out.
    method, reason : str
        The method, and why it was chosen.
    result : ExactResult, Result, SearchResult, WeightedResult, LogZInterval, MeanFieldResult or BeliefResult
        The answer of the method itself.
    assignment : mapping, optional
        The state found (MAP, MMAP), by name and label, observed sites included.
    log_potential : float, optional
        Its log-potential; on MMAP the logarithm of the sum over all other sites, which is the logarithm of the
        probability of the state plus the log-partition function.
    ranked : tuple of RankedState
        The best states (MAP), as many as were asked for: assignment, log-potential, and how many chains have found it.
        An exact answer has the most probable states; a search has distinct local maxima that it has seen, and there may
        be others between them.
    ties : dict, optional
        How many states are as good as the best one (MAP): "count", whether these are all ("complete"), and whether they
        were "counted" by an exact solution or "seen" by a search.

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
        """Whether the answer is exact, an estimate, an approximation, a bound, or the best state found."""
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

    def log_probability_of(self, log_potential: float) -> float | None:
        """Return the log-probability, given the evidence, of a state from its log-potential (MAP, MMAP).

        None if the log-partition function is not known, because the model was not solved exactly.
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
        from gibbsite.inference.answer import answer_lines

        return answer_lines(self, most=most)

    @property
    def plan(self) -> dict[str, Any]:
        """Everything that determined the numbers, as plain data."""
        plan: Any = self.result.plan
        return plan if isinstance(plan, dict) else {**plan.to_dict(), "sweeps": self.diagnostics.n_draws * plan.thin}

    def rows(self, sites: Iterable[str] | None = None) -> Iterator[tuple[str, dict[Any, float], dict[Any, float]]]:
        """Yield name, probabilities and standard errors of every site, or of some.

        Standard errors of very large models are computed piece by piece.

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
        names = iter(table if sites is None else (_known(table, site) for site in sites))
        while piece := list(islice(names, _PIECE)):
            known: Any = errors(piece)
            for name in piece:
                yield name, table[name], known[name]

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


def _known(table: SiteTable, site: Any) -> Any:
    """Return a site of a table; refuse others."""
    if not isinstance(site, str | int) or site not in table:
        raise ArgumentError(f"{argument('sites')} must be sites of the answer, got {describe(site)}.")
    return site


def _finite(value: Any) -> Any:
    """Return a value for JSON, which has neither NaN nor infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _by_text(states: Mapping[Any, float]) -> dict[str, float | None]:
    return {str(state): _finite(p) for state, p in states.items()}


_QUICK = 2.0  # seconds that the marginals before evidence may take
_LEAST = 1e-300  # probabilities below are shown by their logarithms


def answer_lines(
    answer: Inference,
    sites: Sequence[str] | None = None,
    *,
    before: Model | None = None,
    most: int | None = None,
    more: str = "",
    all_states: bool = False,
) -> Iterator[str]:
    """Yield an answer line by line.

    ``sites`` selects sites; by default all free ones are shown, in a best state also observed ones, up to ``most``, and
    ``more`` says where to find the others. ``before`` is the model before evidence: if it can be solved exactly in a
    moment, sites whose probabilities the evidence has changed most come first, with the probabilities before it.
    ``all_states`` shows all states of every site.
    """
    if answer.task == "PR":
        yield from _log_z_lines(answer, before)
    elif answer.task in ("MAP", "MMAP"):
        yield from _state_lines(answer, sites, most, more)
    else:
        yield from _marginal_lines(answer, sites, before, most, more, all_states)


def _marginal_lines(
    answer: Inference, sites: Sequence[str] | None, before: Model | None, most: int | None, more: str, all_states: bool
) -> Iterator[str]:
    evidence, marginals = answer.model.evidence, answer.marginals
    prior = None if before is None or before is answer.model else _prior(before)
    ordered = sites
    if prior is not None and sites is None and marginals is not None:
        free = [name for name in answer.model.sites if name not in evidence]
        ordered = sorted(free, key=lambda name: -_change(marginals[name], prior[name]))
    many = answer.model.n_sites if sites is None else len(sites)
    shown = many if most is None else min(many, most)

    def names() -> Iterator[str]:
        return islice(ordered if ordered is not None else answer.model.domains.names, shown)

    drawn = answer.kind == "estimate"
    yield from site_lines(
        ((name, states, errors if drawn else None) for name, states, errors in answer.rows(names())),
        observed=evidence,
        before=prior,
        width=max((len(escaped(name)) for name in names()), default=0),
        all_states=all_states,
    )
    if many > shown:
        yield f"... and {many - shown:,} more sites{more}"


def _log_z_lines(answer: Inference, before: Model | None) -> Iterator[str]:
    """Yield the log-partition function and its certain bounds."""
    log_z = answer.log_z
    if log_z is None or not math.isfinite(log_z):
        yield f"log Z   no {answer.kind} known"
        return
    signs = {"exact": "=", "estimate": "=", "lower bound": ">=", "upper bound": "<="}
    sign, note = signs.get(answer.kind, "~"), "" if answer.kind == "exact" else f"   {answer.kind}"
    error = with_sign(answer.log_z_error or math.nan)
    log10 = f"{log_z / math.log(10):.10g}"
    yield f"log Z {sign} {log_z:.10g}{error}   (log10 {log10}){note}"
    known = answer.log_z_bounds if answer.kind in ("estimate", "approximation") else None
    for way, one in zip((">=", "<="), known or (), strict=False):
        if math.isfinite(one):
            yield f"log Z {way} {one:.10g}   certain"
    if before is not None and before is not answer.model and is_network(before):
        yield f"P(evidence) {sign} {_probability(log_z)}"


def is_network(model: Any) -> bool:
    """Tell whether a model without evidence is a Bayesian network, so that Z is the probability of evidence.

    Examples
    --------
    >>> import gibbsite as gs
    >>> is_network(gs.example("asia")), is_network(gs.ising_grid((2, 2)))
    (True, False)
    """
    groups = [group for group in model.groups if group.size]
    return (
        not model.evidence
        and all(group.directed for group in groups)
        and sum(group.size for group in groups) == model.n_sites
        and abs(model.log_offset) < 1e-9
    )


def _state_lines(answer: Inference, sites: Sequence[str] | None, most: int | None, more: str) -> Iterator[str]:
    """Yield the best states side by side, with log-potentials and the numbers of chains that found them."""
    evidence = answer.model.evidence
    whole = list(sites or answer.ranked[0].assignment)
    names = whole if most is None else whole[:most]
    what, state = "log of the sum" if answer.task == "MMAP" else "log-potential", "state"
    if sites is not None and len(set(sites)) < len(answer.ranked[0].assignment):
        what, state = f"{what} of the best state of all sites", "that state"
    widths = [max((len(escaped(one.assignment[name])) for name in names), default=0) for one in answer.ranked]
    width = max((len(escaped(name)) for name in names), default=0)
    for name in names:
        states = zip(answer.ranked, widths, strict=True)
        row = "  ".join(f"{escaped(one.assignment[name]):<{each}}" for one, each in states)
        seen = "   (observed)" if name in evidence else ""
        yield f"{escaped(name):<{width}}  {row.rstrip()}{seen}"
    if len(whole) > len(names):
        yield f"... and {len(whole) - len(names):,} more sites{more}"
    for number, one in enumerate(answer.ranked, 1):
        which = f"{number}. " if len(answer.ranked) > 1 else ""
        chance = answer.log_probability_of(one.log_potential)
        given = f"{state} | evidence" if evidence else state
        known = "" if chance is None else f"   P({given}) = {_probability(chance)}"
        yield f"{which}{what} {one.log_potential:.10g}{known}{_finders(answer, one.found)}"
    if answer.ties is not None and answer.ties["count"] > 1:
        most_ties = "" if answer.ties["how"] == "counted" and answer.ties["complete"] else "at least "
        yield f"{most_ties}{answer.ties['count']:,} states are as good ({answer.ties['how']})"


def _finders(answer: Inference, found: int | None) -> str:
    """Return the text on how many chains have found a state, or that it was combined from states of several."""
    if found is None:
        return ""
    if found == 0:
        return "   combined from the states of several chains"
    return f"   found by {found} of {int(answer.diagnostics.chains)} chains"


def _probability(log: float) -> str:
    """Return a probability as text, given its logarithm, even if it is too small for a float."""
    return f"{math.exp(log):.6g}" if log > math.log(_LEAST) else f"exp({log:.6g})"


def _prior(model: Any) -> SiteTable | None:
    """Return the marginals without evidence if they are cheap to compute."""
    from gibbsite.inference.exact import predict_exact, solve_exact

    try:
        if predict_exact(model).seconds > _QUICK:
            return None
        return solve_exact(model).marginals
    except GibbsiteError:
        return None


def _change(after: dict[Any, float], before: dict[Any, float]) -> float:
    """Return the total variation between two distributions."""
    return 0.5 * sum(abs(p - before[state]) for state, p in after.items())
