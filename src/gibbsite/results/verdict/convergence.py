"""The verdict on a run: how far its numbers can be trusted.

A run is called converged when all of these hold:

* R-hat of every state indicator, over the halves of all chains, is at most 1.01;
* every probability is known as well as from 400 independent draws;
* the log-potentials of the chains agree;
* no state that the factors allow was out of reach during the whole run (single-site moves that cannot cross the
  zeros of a model are detected here, or by chains that disagree);
* many short chains from dispersed starts come to agree with the run
  (:mod:`gibbsite.results.verdict.dispersed_starts`).

If the user asked for certain sites, R-hat, effective size and standard errors are those of these sites. Other sites
must agree and mix, too, but to a lower standard (R-hat 1.1, 50 effective draws): then their slow moves occur often
enough to be included in the errors of the sites asked for. Log-potentials, states out of reach and dispersed starts are
judged for all sites.

A run that recorded only the best state is judged by it: it has converged when two chains have found equally good
states, which shows agreement but proves nothing.

R-hat and effective size are judged where a probability is between 0.001 and 0.999; outside, chains must
agree within 0.005. A site that is a number is judged by its mean and standard deviation, measured in units
of the latter. All numbers come from half-chain and batch means, so they exist for millions of sites.

Draws that are not random contain no information about their error. For kernels that declare this
(``Kernel.error_source``), all numbers come from the means of whole chains. If there are fewer than four chains, or
chains are not replicates, there are no such numbers, and the run is not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools, Floats
from gibbsite.results.answer import Diagnostics
from gibbsite.results.measure.agreement import Findings
from gibbsite.results.measure.measurement import (
    FEWEST_REPLICATES,
    SPREADS,
    CellNumbers,
    is_material,
    measure_disagreement,
    source_of_errors,
)
from gibbsite.results.verdict.criteria import STANDARD_ERRORS
from gibbsite.results.verdict.sentences import describe_start_check, describe_unreached, put_first
from gibbsite.results.wording import rhat_text, verdict_word

MOST_JUDGED = 1 << 18  # cells; of a larger model, this number of evenly spaced ones
RHAT_LIMIT = 1.01
ESS_LIMIT = 400.0
#: The limits for sites that were not asked for, whose slow moves must be included in the errors of those that were.
OTHERS_RHAT, OTHERS_ESS = 1.1, 50.0
_AGREEMENT = 0.005
_ROUNDING = 1e-9  # log-potentials closer than this, relatively, are equal
_ENERGY_LIMIT = 1.1  # of R-hat of the log-potentials, of which there are a few dozen for each chain
#: Instead of a dispersed-start check: draws are independent, whatever state a sweep began in.
INDEPENDENT = "independent"
#: The same for draws that are counted, in which a possible state may be missing.
COUNTED = "independent, counted"
UNCHECKED = (INDEPENDENT, COUNTED)
#: Instead of a dispersed-start check: chains cross between modes themselves (``Kernel.doubts``).
CROSSED = "crossed"
#: Instead of a dispersed-start check: exact marginals agree with those of the run, and nothing else was recorded.
EXACT = "exact marginals"
_SETTLED = 1e-5  # standard error at which the number of independent draws does not matter
_FEWEST_DRAWS = 4  # with fewer there is no R-hat


@dataclass(frozen=True)
class Unreached:
    """A state that the factors allow but that no chain may have been able to enter.

    ``proved`` tells whether a full state of positive probability that contains it is known. ``why`` is
    "state" (it was never possible), "region" (it belongs to states that are not seen to be connected with the
    chains), or "scan" (its site is never visited).
    """

    site: str
    state: Any
    proved: bool
    why: str = "state"


@dataclass(frozen=True)
class StartCheck:
    """What the dispersed-start check of a run has found: many short chains from dispersed starts beside it.

    Attributes
    ----------
    chains, sweeps : int
        Number of short chains, and their length; none, if there was nothing to compare.
    findings : Findings
        Where they differ from the run.
    complete : bool
        Whether they had the time to come to agree.
    """

    chains: int
    sweeps: int
    findings: Findings = field(default_factory=Findings)
    complete: bool = True


@dataclass(frozen=True)
class Check:
    """The comparison of a run with the answer of a second method.

    ``apart`` is the largest difference of two marginals, None if the second method had no time to converge.
    """

    method: str
    by: str
    apart: float | None


def judge(
    cells: CellNumbers,
    chains: int,
    draws: int,
    unreached: tuple[Unreached, ...],
    name: Any,
    blind: bool = False,
    errors: str = "draws",
    period: int | None = None,
    bests: Floats | None = None,
    pulse: Floats | None = None,
    start_check: StartCheck | str = "not needed",
    n_cells: int | None = None,
    observed: Sequence[tuple[str, float, float]] = (),
    doubts: tuple[str, ...] = (),
    asked: Bools | None = None,
    others: Bools | None = None,
    *,
    task: str = "MAR",
    accuracy: float | None = None,
    log_z_error: float | None = None,
    check: Check | None = None,
) -> Diagnostics:
    """Judge a run: the one place where convergence and accuracy are decided.

    ``name`` turns a cell number into words; ``blind``: no probability was recorded that could be judged; ``errors``:
    the source of standard errors; ``period``: the number of draws over which averages should be taken; ``bests``:
    largest log-potential of each chain, if they are known; ``pulse``: log-potentials of each chain over its length, if
    they are known; ``start_check``: the dispersed-start check, or why there is none; ``n_cells``: cells of the whole
    run, where not all of them are judged; ``observed``: names, R-hat and effective sizes of observables; ``doubts``:
    warnings of the kernel about its chains; ``asked``: which cells were asked for, None: all; ``others``: which of the
    remaining ones are judged, too, None: all; ``task`` and
    ``accuracy``: what the run is to answer, and the half-width that four standard errors must stay below; ``check``:
    the comparison with a second method.

    The figures of the verdict are:

    ``rhat_max``, ``ess_min``, ``rhat_at``, ``ess_at``
        Worst R-hat and effective number of independent draws, with the site and state they belong to.
    ``mcse_max``, ``mcse_in_sds``
        Largest standard error of a probability; that of a mean is counted in standard deviations of its
        site. The numbers are None where nothing is known about errors.
    ``disagreement``
        Largest difference between the probability of a chain, or half of one, and the pooled one.
    ``unreached``, ``frozen``
        States no chain could enter, and the sites they belong to.
    ``chains``, ``n_draws``
        Number of chains, and of draws in each.
    ``found``
        Number of chains that have seen a state as good as the best, where a run is judged by it.
    ``errors``
        What standard errors are taken from: the dependence of "draws", the spread of "chains" that are
        replicates, the spread of "sums" over chains, or "none".
    ``dispersed_starts``, ``dispersed_chains``, ``dispersed_sweeps``
        The dispersed-start check: short chains "agrees" or "differs", it was turned "off", had "no time", was
        "impossible" or "not needed", for example because an earlier check had failed; draws are "independent",
        chains have "crossed" between modes, or "exact marginals" of a tiny model made it unnecessary. Then the
        number and length of the short chains.
    ``energy_rhat``
        R-hat of the log-potentials of the chains, where they are known.
    ``judged``, ``cells``
        Number of probabilities the verdict is about, and of all; of very large models an even selection.
    ``of_query``
        Whether R-hat, effective draws and standard error are those of the sites that were asked for.
    """
    reasons: list[str] = []
    found = None
    something = bool(cells.mean.size) or blind  # without free sites there is nothing to estimate
    source = source_of_errors(errors, chains) if something else "draws"
    if something and source != errors:
        reasons.append(
            "one chain has no standard error, because only its sums were kept; take two chains or more."
            if errors == "sums"
            else f"there is no standard error from fewer than {FEWEST_REPLICATES} chains, because their draws are more "
            f"even than random ones; take {FEWEST_REPLICATES} chains or more."
        )
    if period is not None and draws != period and not blind:
        reasons.append(
            f"averages are meant to be taken over {period:,} draws, and {draws:,} were made; there is no "
            "gain before the period is complete."
        )
    if blind and bests is not None and bests.size:
        top = float(bests.max())
        found = int((bests >= top - _ROUNDING * (1.0 + abs(top))).sum())
        if found < 2:
            reasons.append(
                f"the best state was found by one chain of {chains}: there may be better ones; run longer, "
                "or use more chains."
            )
    elif blind:
        reasons.append(
            "no probabilities were recorded, so nothing shows whether the chains agree; add gs.Marginals() to record=."
        )
    worst = _find_worst(cells, chains, draws, name, asked) if source != "none" else _Worst()
    independent = start_check in UNCHECKED
    if independent and worst.ess is not None:
        worst = worst._replace(ess=max(worst.ess, float(chains * draws)))
    settled = independent and worst.error is not None and worst.error <= _SETTLED
    if worst.rhat == np.inf and draws < _FEWEST_DRAWS:
        reasons.append("the run is too short to tell whether chains agree; run longer.")
    elif worst.rhat is not None and worst.rhat > RHAT_LIMIT and not independent:
        parts = "chains disagree" if chains > 1 else "the two halves of the chain disagree"
        reasons.append(
            f"{parts}: R-hat is {rhat_text(worst.rhat)} at {worst.rhat_at}, more than {RHAT_LIMIT}; run longer."
        )
    if worst.ess is not None and worst.ess < ESS_LIMIT and cells.mean.size and not settled:
        place = f" at {worst.ess_at}" if worst.ess_at else ""
        reasons.append(
            f"too few effective draws: {worst.ess:.0f}{place}, fewer than {ESS_LIMIT:.0f}; "
            f"{'use more chains, or ' if source == 'chains' else ''}run longer."
        )
    if asked is not None and source != "none" and not independent:
        reasons += _doubted_others(_find_worst(cells, chains, draws, name, ~asked if others is None else others))
    reasons += _doubted_observables(observed) if source == "draws" and observed else []
    energy_rhat = None if pulse is None or not pulse.size else measure_disagreement(pulse)
    if energy_rhat is not None and energy_rhat > _ENERGY_LIMIT and chains > 1 and not independent:
        size = rhat_text(energy_rhat)
        reasons.append(
            f"chains disagree in energy: R-hat of the log-potential is {size}, more than "
            f"{_ENERGY_LIMIT}; they may be in different modes, or still settling; run longer."
        )
    reasons = put_first(describe_unreached(unreached), reasons) if unreached else reasons
    reasons += doubts if found is None else ()
    if isinstance(start_check, StartCheck):
        reasons += describe_start_check(start_check, cells, name)
    elif start_check == "no time" and not reasons:
        reasons.append(
            "there was no time for the dispersed-start check, so other modes may have been missed; allow more time."
        )
    elif start_check == "impossible" and not reasons:
        reasons.append(
            "no dispersed-start check was possible, because no chain could be started elsewhere and compared with the "
            "run, so other modes may have been missed."
        )
    word = start_check if isinstance(start_check, str) else "agrees" if start_check.findings.agree else "differs"
    doubted: dict[str, int] = {}
    for doubt in unreached:
        doubted[doubt.site] = doubted.get(doubt.site, 0) + 1
    figures: dict[str, Any] = {
        "rhat_max": worst.rhat,
        "rhat_at": worst.rhat_at,
        "ess_min": worst.ess,
        "ess_at": worst.ess_at,
        "mcse_max": worst.error,
        "disagreement": float(cells.spread.max(initial=0.0)),
        "frozen": tuple(doubted),
        "unreached": unreached,
        "chains": chains,
        "n_draws": draws,
        "errors": source,
        "found": found,
        "dispersed_starts": INDEPENDENT if independent else word,
        "dispersed_chains": start_check.chains if isinstance(start_check, StartCheck) else 0,
        "dispersed_sweeps": start_check.sweeps if isinstance(start_check, StartCheck) else 0,
        "energy_rhat": energy_rhat,
        "judged": cells.mean.size,
        "cells": cells.mean.size if n_cells is None else max(n_cells, cells.mean.size),
        "mcse_in_sds": worst.in_sds,
        "of_query": asked is not None,
    }
    if accuracy is not None:
        reasons += _judge_accuracy(figures, task, accuracy, log_z_error)
    checked = ""
    if check is not None and check.apart is None:
        checked = f"; {check.by} had no time to check it"
    elif check is not None and check.apart is not None and accuracy is not None:
        figures |= {"checked_by": check.by, "check_difference": check.apart}
        if check.apart > 2.0 * accuracy:
            reasons.append(
                f"{check.method} and {check.by} differ by {check.apart:.2g}, and both were called converged, so that "
                "one of them is wrong; run longer."
            )
        else:
            checked = f"; checked by {check.by}, which differs by {check.apart:.2g} at most"
    converged = not reasons and source != "none"
    return Diagnostics(
        kind="best found" if found is not None or task == "MAP" else "estimate",
        converged=converged,
        reasons=tuple(reasons),
        figures=figures,
        text=f"{verdict_word(converged, source)}: {_describe_figures(figures, converged)}{checked}",
    )


def _judge_accuracy(figures: dict[str, Any], task: str, accuracy: float, log_z_error: float | None) -> list[str]:
    """Return the reasons why the answer of a run does not have the accuracy that was asked for."""
    if task == "PR":
        known = log_z_error is not None and np.isfinite(log_z_error)
        return [] if known else ["the standard error of log Z is not known: the run is too short."]
    largest = figures["mcse_max"]
    if largest is None or not np.isfinite(largest):
        said = f"there are no standard errors, so nothing shows whether marginals are off by more than {accuracy:g}."
        return [said] if task == "MAR" else []
    if STANDARD_ERRORS * largest <= accuracy:
        return []
    whose = " of the sites asked for" * figures["of_query"]
    return [
        f"four standard errors{whose} are up to {STANDARD_ERRORS * largest:.2g}, more than the accuracy of "
        f"{accuracy:g}{'' if figures['unreached'] else '; run longer, or ask for less accuracy'}."
    ]


def _describe_figures(figures: dict[str, Any], converged: bool) -> str:
    """Return the figures of a run in one line."""
    chains, draws, rhat_max, mcse = figures["chains"], figures["n_draws"], figures["rhat_max"], figures["mcse_max"]
    if figures["found"] is not None:
        return f"the best state found by {figures['found']} of {chains} chains x {draws:,} draws"
    size = f"{chains} chain{'s' * (chains != 1)} x {draws:,} draw{'s' * (draws != 1)}"
    if rhat_max is None:
        return f"no standard errors ({size})"
    spread = "spread of " if figures["errors"] in SPREADS else ""
    looked = {
        "off": "; no dispersed-start check, as asked" if converged else "",
        INDEPENDENT: "; draws are independent",
        CROSSED: "; states cross between modes" if converged else "",
        EXACT: "; agrees with exact marginals" if converged else "",
    }.get(figures["dispersed_starts"], "")
    if figures["dispersed_starts"] == "agrees":
        looked = _describe_agreement(figures["dispersed_chains"], figures["dispersed_sweeps"])
    part = f"; judged at {figures['judged']:,} of {figures['cells']:,} sites" * (figures["judged"] < figures["cells"])
    error = f"at most {mcse:.2g}" if np.isfinite(mcse) else "not known"
    unit = " standard deviations" * (figures["mcse_in_sds"] and bool(np.isfinite(mcse)))
    rhat = "not known" if draws < _FEWEST_DRAWS else "infinite"
    if np.isfinite(rhat_max):
        text = rhat_text(rhat_max, ".4f")
        rhat = text if text.startswith("above") else f"at most {text}"
    return (
        f"R-hat {rhat}, effective draws at least {figures['ess_min']:,.0f}, "
        f"standard error {error}{unit} ({spread}{size})"
        f"{looked}{'; judged at the sites asked for' * figures['of_query']}{part}"
    )


def _describe_agreement(chains: int, sweeps: int) -> str:
    """Return what a dispersed-start check that has found nothing has done."""
    if not chains:
        return ""
    if not sweeps:
        return f"; dispersed-start check: no other mode found from {chains} starts"
    return f"; dispersed-start check: {chains} short chains agree"


def _doubted_others(worst: _Worst) -> list[str]:
    """Say where chains disagree, or move too slowly, so much that the sites asked for may be wrong, too."""
    assert worst.rhat is not None and worst.ess is not None
    follows = "which may make the sites asked for wrong; run longer."
    if worst.rhat > OTHERS_RHAT:
        size = rhat_text(worst.rhat)
        return [
            f"chains disagree about a site that was not asked for: R-hat is {size} at {worst.rhat_at}, more "
            f"than {OTHERS_RHAT}, {follows}"
        ]
    if worst.ess < OTHERS_ESS:
        return [
            f"there are {worst.ess:.0f} effective draws of a site that was not asked for ({worst.ess_at}), "
            f"fewer than {OTHERS_ESS:.0f}, {follows}"
        ]
    return []


def _doubted_observables(observed: Sequence[tuple[str, float, float]]) -> list[str]:
    """Say which observable chains disagree about most, and which is known worst, where that is too bad."""
    said = []
    apart = max(observed, key=lambda each: each[1], default=None)
    if apart is not None and apart[1] > RHAT_LIMIT:
        said.append(
            f"chains disagree about the observable {apart[0]}: R-hat is {rhat_text(apart[1])}, more "
            f"than {RHAT_LIMIT}; run longer."
        )
    few = min(observed, key=lambda each: each[2], default=None)
    if few is not None and few[2] < ESS_LIMIT:
        said.append(
            f"too few effective draws of the observable {few[0]}: {few[2]:.0f}, fewer than {ESS_LIMIT:.0f}; run longer."
        )
    return said


class _Worst(NamedTuple):
    """The worst numbers of a run and where they are; None where nothing is known."""

    rhat: float | None = None
    rhat_at: str = ""
    ess: float | None = None
    ess_at: str = ""
    error: float | None = None
    in_sds: bool = False


def _find_worst(cells: CellNumbers, chains: int, draws: int, name: Any, among: Bools | None = None) -> _Worst:
    """Return the worst numbers of all cells, or of some."""
    material = is_material(cells.mean, cells.numbers)
    chosen = material | (cells.spread > _AGREEMENT)
    errors = cells.error / cells.scale
    if among is not None:
        chosen &= among
        errors = np.where(among, errors, 0.0)
    judged = np.flatnonzero(chosen)
    error = float(errors.max(initial=0.0))
    in_sds = bool(cells.numbers.size) and int(np.argmax(errors)) in cells.numbers
    if not judged.size:
        return _Worst(1.0, "", float(chains * draws), "", error, in_sds)
    most = int(judged[np.argmax(cells.rhat[judged])])
    least = int(judged[np.argmin(cells.ess[judged])])
    return _Worst(float(cells.rhat[most]), name(most), float(cells.ess[least]), name(least), error, in_sds)
