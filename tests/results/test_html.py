"""Every object that people look at shows itself in notebooks, and markup in names has no effect."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

import gibbsite as gs

NAME, STATE = "<b>a&", "<i>\x1b[1m"
MODEL = gs.FactorGraph({NAME: ["no", STATE], "b": 2}, [((NAME, "b"), [[3, 1], [1, 2]]), (NAME, [1, 2])])
ISING = gs.ising([[0.0, 0.3], [0.3, 0.0]], fields=[0.1, 0.0], sites=[NAME, "b"])
DATA = [[1, 1], [1, -1], [-1, 1], [1, 1]]
VERIFIED = gs.testing.Report([gs.testing.Check("law", NAME, False, STATE), gs.testing.Check("law", "b", True, "")])
QUIET: dict[str, Any] = {"rng": 1, "progress": False}


def sampled(**how: Any) -> Any:
    return gs.sample(MODEL, sweeps=500, **QUIET, **how)


def observed() -> Any:
    record = ["marginals", gs.Observable(NAME, lambda x: (x > 0).sum())]
    return gs.sample(ISING, sweeps=500, record=record, **QUIET).observables


def dogs() -> Any:
    return gs.dogs(ISING, target=0, steps=4)


# each object, and texts that must be there; "name" and "state" stand for the ones with markup
OBJECTS: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "model": (lambda: MODEL, ("name", "2 factors")),
    "observed model": (lambda: MODEL.observe({NAME: STATE}), ("name", "state")),
    "exact": (lambda: gs.solve_exact(MODEL), ("name", "state", "exact")),
    "infer MAR": (lambda: gs.infer(MODEL), ("name", "state", "exact")),
    "infer MAP": (lambda: gs.infer(MODEL, "MAP"), ("name", "state", "log-potential")),
    "infer PR": (lambda: gs.infer(MODEL, "PR"), ("log Z", "2.302585")),
    "sampled": (sampled, ("name", "state", "±")),
    "weighted": (lambda: gs.sample_weighted(MODEL, gs.importance.MiniBucket(), draws=1024, **QUIET), ("name", "state")),
    "mean field": (lambda: gs.mean_field(MODEL), ("name", "state")),
    "beliefs": (lambda: gs.belief_propagation(MODEL), ("name", "state")),
    "log Z interval": (lambda: gs.log_z.bound_log_z(MODEL, draws=1024, **QUIET), ("log Z", "2.30")),
    "coupling": (lambda: gs.couple(MODEL, pairs=50, rng=1), ("name", "state", "pairs")),
    "particles": (lambda: gs.log_z.particle_log_z(MODEL, rng=1), ("log Z", "2.3")),
    "annealed": (lambda: gs.log_z.annealed_importance(MODEL, rng=1), ("log Z", "2.3")),
    "diagnostics": (lambda: sampled().diagnostics, ("rhat max", "converged")),
    "exact diagnostics": (lambda: gs.infer(MODEL).diagnostics, ("exact",)),
    "marginals": (lambda: sampled().marginals, ("name", "state", "probability")),
    "errors": (lambda: sampled().mcse, ("name", "state", "value")),
    "effective draws": (lambda: sampled().ess, ("name", "state", "value")),
    "observables": (observed, ("name", "autocorrelation time", "±")),
    "observable": (lambda: observed()[NAME], ("name", "autocorrelation time", "±")),
    "certificate": (lambda: gs.certify(ISING, accuracy=0.01), ("The bias after",)),
    "scan": (dogs, ("sites visited", "2 of 2", "bias at most")),
    "short runs": (lambda: gs.influence.short_runs(ISING, target=[0], runs=100, sweeps=5, rng=1), ("name", "0.95")),
    "influence": (lambda: gs.influence.bound_influence(ISING), ("spectral", "Total influence")),
    "comparison": (lambda: gs.compare(sampled(), gs.solve_exact(MODEL)), ("name", "state", "total variation")),
    "fit": (lambda: gs.learn.fit_ising(DATA, ridge=1.0, gradient="exact", progress=False), ("coupling", "parameters")),
    "advice": (lambda: gs.recommend(MODEL, seconds=0.5, rng=1), ("Gibbs", "effective draws a second")),
    "tempering": (lambda: gs.sample(ISING, gs.Tempered(), sweeps=200, **QUIET).tempering, ("round trips", "beta")),
    "verification": (lambda: VERIFIED, ("name", "state", "1 failed")),
    "table of an experiment": (lambda: gs.lab.Table(NAME, [NAME], [[STATE]]), ("name", "state")),
    "findings": (lambda: gs.lab.Findings([gs.lab.Table(NAME, [NAME], [[STATE]])], notes=[NAME]), ("name", "state")),
}


class Page(HTMLParser):
    """Collects the tags that are open, those that do not fit, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_show_themselves(name: str) -> None:
    make, texts = OBJECTS[name]
    page = Page()
    page.feed(make()._repr_html_())
    page.close()
    assert page.open == []
    assert page.seen <= {
        "div",
        "strong",
        "span",
        "table",
        "tr",
        "th",
        "td",
        "ul",
        "li",
    }  # markup of names has no effect
    assert "\x1b" not in page.text
    assert "None" not in page.text
    assert " nan" not in page.text
    for text in texts:
        text = {"name": NAME, "state": "<i>\\u001b[1m"}.get(text, text)
        assert text in page.text
