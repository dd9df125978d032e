"""What speaks against a run, as sentences: states out of reach, and what a dispersed-start check has found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gibbsite.results.measure.measurement import CellNumbers
    from gibbsite.results.verdict.convergence import StartCheck, Unreached


def describe_unreached(unreached: tuple[Unreached, ...]) -> list[str]:
    """Put unreached into words, one sentence for each kind."""
    words = {
        "state": "{n} states were never possible for any chain, the first {site} = {state} ({known}): "
        "moves of this kernel may not reach all of the support; a kernel that moves several sites at once "
        "may.",
        "region": "moves of this kernel are not seen to connect the chains with all of the support, for "
        "example with states where {site} = {state}: zeros may cut it into regions; a kernel that moves "
        "several sites at once may connect them.",
        "scan": "the scan never visits {n} sites, the first {site}: they keep their start.",
    }
    said = []
    for why, sentence in words.items():
        mine = [doubt for doubt in unreached if doubt.why == why]
        if mine:
            known = "a state of positive probability contains it" if mine[0].proved else "not ruled out"
            first = {"site": mine[0].site, "state": mine[0].state, "known": known}
            said.append(sentence.format(n=len(mine), **first))
    return said


def put_first(causes: list[str], reasons: list[str]) -> list[str]:
    """Put states out of reach before what follows from them, which running longer does not mend."""
    return [*causes, *(reason.replace("; run longer.", ".") for reason in reasons)]


def describe_start_check(check: StartCheck, cells: CellNumbers, name: Any) -> list[str]:
    """Describe what a dispersed-start check has found."""
    found = check.findings
    if found.agree:
        return []
    if found.said:
        return [found.said]
    sentence = (
        f"the dispersed-start check with {check.chains} short chains from other starts ({check.sweeps} sweeps each) "
    )
    if found.cells:
        places = ", ".join(name(cell) for cell in found.cells)
        sentence += (
            f"finds two groups of chains: {found.strangers} of them differ from the run at {places} "
            f"(the first is {found.there[0]:.3g} in these chains, {found.here[0]:.3g} in the run)"
        )
        sentence += f", and {found.energy}" if found.energy else ""
        sentence += "; there may be several modes, whose weights are not known"
    else:
        sentence += f"does not agree with it in energy: {found.energy}; there may be modes that it has not seen"
    if not check.complete:
        sentence += ", or the short chains had too little time to settle"
    return [f"{sentence}."]
