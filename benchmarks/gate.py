"""The gate: no ratio may fall far below the one committed.

Seconds and bytes belong to a machine; ratios formed inside one run nearly do not, so only they are compared.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.figures import Figures
from benchmarks.report import Target

#: Of the committed figure, at least this share must be seen: ratios vary by a fifth on a busy machine.
SHARE = 0.7
UNITS = ("C", "C agreements", "C tables", "bare", "one thread", "pyAgrum", "NumPy", "Gibbs", "dense")


@dataclass(frozen=True)
class Comparison:
    """One ratio now and as it was committed."""

    now: Target
    before: Target

    @property
    def share(self) -> float:
        """What is left of the committed figure; above one if it is better now."""
        better, worse = (self.now, self.before) if self.now.least else (self.before, self.now)
        return better.seen / max(worse.seen, 1e-12)

    @property
    def fell(self) -> bool:
        return self.share < SHARE

    def __str__(self) -> str:
        figures = f"{self.now.seen:.2f} {self.now.unit}, committed {self.before.seen:.2f}"
        return f"{self.now.name}: {figures} ({self.share:.2f} of it, {SHARE} allowed)"


def compare(now: Figures, committed: Figures) -> list[Comparison]:
    """Pair the ratios that both have, by name and unit."""
    before = {(target.name, target.unit): target for target in committed.targets if target.unit in UNITS}
    pairs = ((target, before.get((target.name, target.unit))) for target in now.targets)
    return [Comparison(target, old) for target, old in pairs if old is not None]


def judge(now: Figures, committed: Figures) -> tuple[bool, list[str]]:
    """Return whether the gate opens, and what to say; it stays shut where nothing could be compared."""
    compared = compare(now, committed)
    fallen = [comparison for comparison in compared if comparison.fell]
    absent = sum(target.unit in UNITS for target in committed.targets) - len(compared)
    lines = [f"fell: {comparison}" for comparison in fallen]
    lines.append(f"gate: {len(compared)} ratios compared, {len(fallen)} fell, {absent} not measured this time")
    if now.environment.get("processor") != committed.environment.get("processor"):
        lines.append("gate: the committed figures are of another processor")
    return bool(compared) and not fallen, lines
