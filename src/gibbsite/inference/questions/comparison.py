"""The difference between two sets of observations: which probabilities change, and by how much."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gibbsite._common.arguments import checked
from gibbsite._common.wording import escaped
from gibbsite.inference.answer import Inference
from gibbsite.inference.asking import infer
from gibbsite.inference.questions.evidence import _read_hard
from gibbsite.inference.questions.shown import Shown
from gibbsite.models import FactorGraph
from gibbsite.results.wording import probability_text


@dataclass(frozen=True)
class EvidenceComparison(Shown):
    """Marginals given two sets of observations.

    Attributes
    ----------
    first, second : dict
        The observations.
    first_answer, second_answer : Inference
        The answers.

    Examples
    --------
    >>> import gibbsite as gs
    >>> found = gs.questions.compare_evidence(gs.example("asia"), {"xray": "no"}, {"xray": "yes"})
    >>> found.changes()[0][:2]
    ('either', 0.5745...)
    """

    first: Mapping[str, Any]
    second: Mapping[str, Any]
    first_answer: Inference
    second_answer: Inference

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why sampled numbers cannot be relied upon."""
        return tuple(dict.fromkeys([*self.first_answer.reasons, *self.second_answer.reasons]))

    def changes(self) -> list[tuple[str, float, float]]:
        """Return sites that are observed in neither, their largest change of a probability, and its standard error."""
        found = []
        tables = self.first_answer.marginals, self.second_answer.marginals
        errors = self.first_answer.mcse, self.second_answer.mcse
        assert tables[0] is not None and tables[1] is not None and errors[0] is not None and errors[1] is not None
        for site in self.first_answer.model.sites:
            if site in self.second:
                continue
            one, other = tables[0][site], tables[1][site]
            state = max(one, key=lambda label: abs(other[label] - one[label]))
            error = math.hypot(errors[0][site][state], errors[1][site][state])
            found.append((site, abs(other[state] - one[state]), error))
        return sorted(found, key=lambda item: -item[1])

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data; the schema of ``gibbsite infer --compare --json``."""
        tables = self.first_answer.marginals, self.second_answer.marginals
        assert tables[0] is not None and tables[1] is not None
        found: dict[str, Any] = {"first": {k: str(v) for k, v in self.first.items()}}
        found["second"] = {k: str(v) for k, v in self.second.items()}
        found["changes"] = {
            site: {
                "first": {str(label): p for label, p in tables[0][site].items()},
                "second": {str(label): p for label, p in tables[1][site].items()},
                "largest": change,
                "mcse": error if math.isfinite(error) else None,
            }
            for site, change, error in self.changes()
        }
        found["reasons"] = list(self.reasons)
        return found

    def lines(self, most: int = 40) -> Iterator[str]:
        """Yield the sites that change most line by line."""
        tables = self.first_answer.marginals, self.second_answer.marginals
        assert tables[0] is not None and tables[1] is not None
        changes = self.changes()
        width = max((len(escaped(site)) for site, _, _ in changes[:most]), default=0)
        for site, change, error in changes[:most]:
            pairs = zip(tables[0][site].items(), tables[1][site].values(), strict=True)
            shown = "  ".join(f"{escaped(label)} {p:.4f} -> {q:.4f}" for (label, p), q in pairs)
            sign = "" if error == 0.0 else f"   (largest change {probability_text(change, error)})"
            yield f"{escaped(site):<{width}}  {shown}{sign}"
        if len(changes) > most:
            yield f"... and {len(changes) - most:,} more sites"


@checked
def compare_evidence(
    model: FactorGraph, first: Mapping[str, Any], second: Mapping[str, Any], **how: Any
) -> EvidenceComparison:
    """Return the marginals given two sets of observations, and where they differ most.

    Parameters
    ----------
    model : FactorGraph
        The model before any of these observations.
    first, second : mapping
        Site -> state.
    **how
        Arguments of :func:`gibbsite.infer`.

    Examples
    --------
    >>> import gibbsite as gs
    >>> found = gs.questions.compare_evidence(gs.example("asia"), {"smoke": "no"}, {"smoke": "yes"})
    >>> print(next(found.lines()))
    bronc   yes 0.3000 -> 0.6000  no 0.7000 -> 0.4000
    """
    cases = [_read_hard(model, evidence, 0) for evidence in (first, second)]
    answers = [infer(model.observe(case) if case else model, **how) for case in cases]
    return EvidenceComparison(cases[0], cases[1], answers[0], answers[1])
