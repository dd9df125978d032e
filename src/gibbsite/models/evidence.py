"""Folding evidence into a model: observed sites disappear, likelihoods become factors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from gibbsite._common.arrays import Floats, Ints32
from gibbsite._common.reals import read_reals
from gibbsite._common.wording import site_name
from gibbsite.errors import ModelError
from gibbsite.models.domain import Domains, Label
from gibbsite.models.factor import FactorGroup, TableFactors

Finding: TypeAlias = Label | Mapping[Any, float] | Sequence[float] | Floats
"""The evidence about one site: its state, or a likelihood for each state."""


@dataclass(frozen=True, eq=False)
class Folding:
    """The observed sites with their states, and the new positions of the others.

    Parameters
    ----------
    domains : Domains
        The sites before folding.
    codes : int array (n,)
        Observed state code, -1 where the site stays free.
    position : int array (n,)
        New position of each free site.

    Examples
    --------
    >>> from gibbsite.models.domain import make_domains
    >>> Folding.of(make_domains(4, 2), {1: 0}).position.tolist()
    [0, -1, 1, 2]
    """

    domains: Domains
    codes: Ints32
    position: Ints32

    @classmethod
    def of(cls, domains: Domains, hard: Mapping[int, int]) -> Folding:
        """Build from observed positions and codes."""
        codes = np.full(domains.n_sites, -1, np.int32)
        codes[np.fromiter(hard.keys(), np.intp, len(hard))] = np.fromiter(hard.values(), np.int32, len(hard))
        free = codes < 0
        position = np.where(free, np.cumsum(free, dtype=np.int32) - 1, -1).astype(np.int32)
        return cls(domains, codes, position)

    def impossible(self, text: str, scope: Iterable[Any]) -> ModelError:
        """Return the error for evidence that leaves a factor without a positive entry."""
        seen = [int(p) for p in scope if self.codes[p] >= 0]
        entry = self.domains.entry_text(seen, self.codes[seen])
        return ModelError(
            f"the evidence {entry} is impossible: {text} is zero there; change the evidence or the factor."
        )


def read_evidence(
    domains: Domains, evidence: Mapping[Any, Finding], observed: Mapping[str, Label]
) -> tuple[dict[int, int], dict[int, Floats]]:
    """Return hard evidence as position -> code, and soft evidence as position -> likelihood of each state.

    ``observed`` is the evidence that has been folded in before.
    """
    if not isinstance(evidence, Mapping):
        raise ModelError(f"evidence must be a mapping site -> state or likelihoods, got {type(evidence).__name__}.")
    hard: dict[int, int] = {}
    soft: dict[int, Floats] = {}
    for site, finding in evidence.items():
        if (site := site_name(site)) in observed:
            raise ModelError(
                f"the site {site!r} is already observed as {observed[str(site)]!r}; start from "
                "the model before that evidence to change it."
            )
        at = domains.position(site, "the evidence")
        if at in hard or at in soft:
            raise ModelError(f"the evidence has the site {domains.names[at]!r} twice, by name and by position.")
        if isinstance(finding, np.ndarray) and finding.ndim == 0:
            finding = cast(Label, finding.item())
        if isinstance(finding, (Mapping, Sequence, np.ndarray)) and not isinstance(finding, str):
            soft[at] = _read_likelihood(domains, at, finding)
        else:
            hard[at] = domains.code(at, finding)
    return hard, soft


def fold_groups(groups: Iterable[FactorGroup], folding: Folding) -> tuple[list[FactorGroup], float]:
    """Return what remains of all groups on the free sites, and the constant part."""
    folded: list[FactorGroup] = []
    constant = 0.0
    for group in groups:
        parts, value = group.fold(folding)
        folded += [part for part in parts if part.size or part.name is not None]
        constant += value
    return merge_tables(folded), constant


def soft_factors(domains: Domains, soft: Mapping[int, Floats]) -> list[TableFactors]:
    """Return likelihoods as one group of factors per number of states."""
    by_states: dict[int, list[int]] = {}
    for at in soft:
        by_states.setdefault(len(soft[at]), []).append(at)
    with np.errstate(divide="ignore"):
        return [
            TableFactors(np.array(sites, np.int32)[:, None], np.log([soft[at] for at in sites]))
            for sites in by_states.values()
        ]


def merge_tables(groups: Sequence[FactorGroup]) -> list[FactorGroup]:
    """Join unnamed table groups of equal shape, as slicing makes many small groups."""
    merged: list[FactorGroup] = []
    alike: dict[tuple[tuple[int, ...], bool], list[TableFactors]] = {}
    for group in groups:
        # A table shared by many factors stays shared.
        own = isinstance(group, TableFactors) and len(group.weights) == group.size
        if isinstance(group, TableFactors) and own and group.name is None:
            alike.setdefault((group.weights.shape[1:], group.directed), []).append(group)
        else:
            merged.append(group)
    for (_, directed), parts in alike.items():
        if len(parts) == 1:
            merged.append(parts[0])
            continue
        scopes = np.concatenate([part.scopes for part in parts])
        tables = np.concatenate([part.weights for part in parts])
        merged.append(TableFactors(scopes, tables, directed))
    return merged


def _read_likelihood(domains: Domains, at: int, given: Mapping[Any, float] | Sequence[float] | Floats) -> Floats:
    name, labels = domains.names[at], domains.labels(at)
    if isinstance(given, Mapping):
        by_code = {domains.code(at, label): value for label, value in given.items()}
        missing = [label for code, label in enumerate(labels) if code not in by_code]
        if missing or len(by_code) < len(given):
            problem = f"misses the state {missing[0]!r}" if missing else "has a state twice"
            raise ModelError(f"the soft evidence for {name!r} {problem}; give each state one likelihood.")
        given = [by_code[code] for code in range(len(labels))]
    likelihood = read_reals(given, f"the soft evidence for {name!r}").copy()
    if likelihood.shape != (len(labels),):
        raise ModelError(
            f"the soft evidence for {name!r} has shape {likelihood.shape}; the site has "
            f"{len(labels)} states, so give {len(labels)} likelihoods."
        )
    fine = (likelihood >= 0) & (likelihood < np.inf)
    if not fine.all():
        code = int(np.argmin(fine))
        raise ModelError(
            f"the soft evidence for {name!r} has the likelihood {likelihood[code]:g} for state "
            f"{labels[code]!r}; likelihoods are finite and not negative."
        )
    if not likelihood.any():
        raise ModelError(f"the soft evidence for {name!r} is zero for every state; make one positive.")
    return likelihood
