"""``gibbsite.sample_weighted``, which draws from proposals until the budget is used up and judges the weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import check_integer, check_seconds, checked, read_query
from gibbsite._common.arrays import Array, Bools
from gibbsite._common.notice import warn_user
from gibbsite._common.wording import argument
from gibbsite._numba.jit import announcing, clock
from gibbsite.errors import ArgumentError, ConvergenceWarning
from gibbsite.inference.importance.base import BLOCK, ImportanceProposal, SourceSettings, WeightedSource
from gibbsite.inference.importance.estimate import WeightedEstimate, estimate
from gibbsite.inference.importance.result import WeightedResult
from gibbsite.inference.importance.tally import GROUPS, Tally
from gibbsite.inference.importance.verdict import judge
from gibbsite.models.networks.expansion import expand
from gibbsite.results.answer import Diagnostics
from gibbsite.results.verdict.criteria import DEFAULT_ACCURACY, Criteria, read_criteria
from gibbsite.sampling.executor import Threads, read_threads
from gibbsite.sampling.plan import as_data, package_version, read_entropy
from gibbsite.sampling.progress import Flag, Progress, Status, catch_interrupt, choose_progress

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph

DEFAULT_DRAWS = 100_000
_ROUND_SECONDS = 0.1  # between two checks of the clock
_FIRST_JUDGED = 1 << 15  # draws before a run may end early


@checked
def sample_weighted(
    model: FactorGraph,
    proposal: ImportanceProposal | None = None,
    *,
    draws: int | None = None,
    seconds: float | None = None,
    criteria: Criteria | None = None,
    stop_early: bool = False,
    marginals: bool = True,
    rng: Any = None,
    threads: int | None = None,
    progress: Any = None,
) -> WeightedResult:
    """Estimate marginals and the log-partition function from independent weighted draws.

    Parameters
    ----------
    model : FactorGraph
        The model, with evidence folded in.
    proposal : ImportanceProposal, optional
        The proposal; by default ``gs.importance.Forward()``, which needs a Bayesian network.
    draws : int, optional
        Number of draws, rounded up to whole blocks of 256; 100,000 by default.
    seconds : float, optional
        Time limit; alone, or beside ``draws``. Compilation does not count.
    criteria : Criteria, optional
        The accuracy, 0.01 by default, and the sites that are asked for. A run has converged only if four standard
        errors of every marginal are at most the accuracy, and if states that were not drawn cannot have more
        probability.
    stop_early : bool
        End the run as soon as it has converged.
    marginals : bool
        Whether marginals count for the verdict; False if only the log-partition function is asked for.
    rng : int, numpy.random.Generator or SeedSequence, optional
        Seed. Equal seeds and numbers of draws give equal bytes, with any number of threads.
    threads : int, optional
        Threads to use; all cores by default.
    progress : optional
        As in :func:`gibbsite.sample`.

    Returns
    -------
    WeightedResult

    Raises
    ------
    ArgumentError
        If an argument is invalid.
    ModelError
        If the proposal does not apply to the model.
    SupportError
        If the evidence is found to be impossible.

    See Also
    --------
    solve_exact : Exact marginals.
    sample : Markov chains.
    importance.bound_log_z : Bounds on log Z from weighted draws.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.example("asia").observe({"xray": "yes", "dysp": "yes"})
    >>> found = gs.sample_weighted(model, draws=200_000, rng=1, progress=False)
    >>> exact = gs.solve_exact(model)
    >>> found.converged, abs(found.log_z - exact.log_z) < 4 * found.log_z_error + 1e-9
    (True, True)
    """
    from gibbsite.models import FactorGraph

    if not isinstance(model, FactorGraph):
        raise ArgumentError(f"sample_weighted needs a model of states, got {type(model).__name__}.")
    if proposal is None:
        from gibbsite.inference.importance.forward import Forward

        proposal = Forward()
    if not isinstance(proposal, ImportanceProposal):
        raise ArgumentError(
            f"{argument('proposal')} must be a proposal such as gs.importance.Forward(), got {proposal!r}."
        )
    limit, criteria = check_seconds(seconds), read_criteria(criteria)
    if not criteria.dispersed_starts:
        raise ArgumentError(f"Weighted draws have no starts; leave out {argument('dispersed_starts', False)}.")
    accuracy = DEFAULT_ACCURACY if criteria.accuracy is None else criteria.accuracy
    if draws is not None:
        draws = check_integer("draws", draws, 1)
    elif seconds is None:
        draws = DEFAULT_DRAWS
    asked = np.full(model.n_sites, criteria.query is None)
    if criteria.query is not None:
        asked[read_query(model, criteria.query)] = True
    entropy, members = read_entropy(rng), read_threads(threads)
    show = choose_progress(progress)
    try:
        with (
            announcing(show.say, "weighted draws"),
            catch_interrupt(show.say) as interrupt,
            Threads(members) as executor,
        ):
            begun = clock()
            blocks = None if draws is None else -(-draws // BLOCK)
            run = _Run(
                model.cards[asked], blocks, limit, accuracy, bool(stop_early), bool(marginals), begun, show, interrupt
            )
            whole = None if blocks is None else blocks * BLOCK
            wide = expand(model)  # hidden sites are drawn, and not recorded
            wanted = np.append(asked, np.zeros(wide.n_sites - model.n_sites, np.bool_))
            setting = SourceSettings(entropy, wanted, limit, whole, run.elapsed, members, lambda: interrupt.up)
            for share, source in proposal.sources(wide, setting):
                run.draw(source, share, executor)
                if run.done:
                    break
            found, verdict = run.judge()
    finally:
        show.close()
    result = WeightedResult(
        domains=model.domains,
        evidence=model.evidence,
        evidence_labels=model.evidence_labels,
        estimate=_spread(found, asked, model.cards),
        diagnostics=verdict,
        sources=tuple(_describe(source, tally) for source, tally in zip(run.sources, run.tallies, strict=True)),
        plan={
            "gibbsite": package_version(),
            "method": proposal.method,
            "model": model.digest,
            "proposal": as_data(proposal.describe()),
            "entropy": entropy,
            "draws": found.n_draws,
        },
        interrupted=interrupt.up,
        seconds=run.elapsed(),
    )
    if not result.converged:
        reasons = " ".join(result.reasons)
        warn_user(f"The weighted draws have not converged: {reasons}", ConvergenceWarning)
    return result


@dataclass
class _Run:
    """A run: its budget, the criteria of its verdict, and the tallies of the sources so far."""

    cards: Array
    most_blocks: int | None
    seconds: float
    accuracy: float
    stop_early: bool
    marginals: bool
    begun: float
    show: Progress
    interrupt: Flag
    sources: list[WeightedSource] = field(default_factory=list)
    tallies: list[Tally] = field(default_factory=list)
    blocks: int = 0
    done: bool = False
    judged: int = _FIRST_JUDGED

    def elapsed(self) -> float:
        """Return the seconds since the start, without compilation."""
        return clock() - self.begun

    def draw(self, source: WeightedSource, share: float, executor: Threads) -> None:
        """Draw from a source until its share of the budget is used up; at least one block."""
        tally = source.make_tally(self.cards)
        self.sources.append(source)
        self.tallies.append(tally)
        most = math.inf if self.most_blocks is None else self.most_blocks
        until = most if math.isinf(most) else max(math.ceil(share * most), self.blocks + 1)
        mine, pace = 0, 1
        while True:
            left = until - self.blocks
            many = int(min(left, pace))
            before = self.elapsed()
            shares = [(group, mine + (group - mine) % GROUPS) for group in range(GROUPS)]  # first block of each group
            jobs = [
                (group, first, -(-(mine + many - first) // GROUPS)) for group, first in shares if first < mine + many
            ]
            executor.map(lambda job: source.draw(tally, *job, GROUPS), jobs)
            mine += many
            self.blocks += many
            now = self.elapsed()
            total = 0 if self.most_blocks is None else self.most_blocks * BLOCK
            self.show.show(Status(source.name, self.blocks * BLOCK, total, now, self.seconds, 1, "draw"))
            if self.interrupt.up or now >= self.seconds or self.blocks >= most:
                self.done = True
            elif self.stop_early and self.blocks * BLOCK >= self.judged:
                self.judged *= 2
                self.done = bool(self.judge()[1].converged)
            if self.done or self.blocks >= until or now >= share * self.seconds:
                return
            took = max(now - before, 1e-6)
            pace = int(min(max(pace * min(_ROUND_SECONDS / took, 4.0), 1.0), 1 << 20))
            if math.isfinite(self.seconds):
                rest = share * self.seconds - now
                pace = max(1, min(pace, math.ceil(many * rest / took)))

    def judge(self) -> tuple[WeightedEstimate, Diagnostics]:
        """Return estimates and verdict."""
        return judge(
            self.tallies,
            [one.log_bound for one in self.sources],
            self.accuracy,
            marginals=self.marginals,
            exact=all(one.exact for one in self.sources),
        )


def _describe(source: WeightedSource, tally: Tally) -> dict[str, Any]:
    """Return a source and its estimates as plain data."""
    found = estimate(tally, source.exact)
    return {
        **source.describe(),
        "draws": found.n_draws,
        "effective": found.effective,
        "pareto_k": found.k,
        "log_z": found.log_z,
        "log_z_error": found.log_z_error,
        "log_bound": source.log_bound,
    }


def _spread(found: WeightedEstimate, asked: Bools, cards: Array) -> WeightedEstimate:
    """Return estimates for all sites, NaN for those that were not queried."""
    if asked.all():
        return found
    cells, errors = np.full((2, int(cards.sum(dtype=np.int64))), np.nan)
    here = np.repeat(asked, cards)
    cells[here], errors[here] = found.cells, found.errors
    return replace(found, cells=cells, errors=errors)
