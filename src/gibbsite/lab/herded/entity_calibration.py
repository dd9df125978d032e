"""Named entities: the calibration of the probabilities of entities."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite.applications.entities.calibration import NO_CORRECTION, calibration_error, compare
from gibbsite.applications.entities.recognizer import EntityRecognizer
from gibbsite.lab.drawing import COLORS, FAINT, Figure, tidy
from gibbsite.lab.experiment import HERDED, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims
from gibbsite.lab.herded.entities import DATA, find_news

_GOAL = 0.03


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Train a model with and without correction; compare stated and true shares on two kinds of text."""
    news, sweeps = find_news(quick), 50 if quick else 400
    meter.expect(5)
    rows = Rows()
    arrays: dict[str, Any] = {}
    errors = {}

    def train(**how: Any) -> EntityRecognizer:
        found = EntityRecognizer("document", min_count=1 if quick else 2, iterations=30 if quick else 80, **how)
        found.fit(news.train)
        meter.tick()
        return found

    chain, linked = train(calibrate=True), train(links=True)
    corrected = chain.calibration
    for name, recognizer, method, correction in (
        ("chain", chain, "viterbi", NO_CORRECTION),
        ("chain, corrected", chain, "viterbi", corrected),
        ("skip-chain", linked, "blocks", NO_CORRECTION),
    ):
        recognizer.calibration = correction
        for text, documents in (("held-out", news.dev), ("IE-ER", news.test)):
            tagged = recognizer.tag_documents(documents, method=method, sweeps=sweeps, rng=rng)
            stated, right = compare(documents, tagged)
            error, bins = calibration_error(stated, right)
            errors[name, text] = error
            rows.add(name, text, len(right), f"{stated.mean():.3f}", f"{right.mean():.3f}", f"{error:.4f}")
            arrays[f"{name}, {text}"] = np.array([[b["stated"], b["right"], b["entities"]] for b in bins])
        meter.tick()
    columns = ("model", "text", "entities", "stated", "right", "calibration error")
    claim = Claim(
        f"calibration error at most {_GOAL} on text of the same kind",
        f"{errors['chain, corrected', 'held-out']:.4f} corrected, {errors['chain', 'held-out']:.4f} as learnt",
        errors["chain, corrected", "held-out"] <= _GOAL if news.real and not quick else None,
    )
    return Findings(
        tables=[Table(f"Probabilities of entities, {news.source}", columns, rows), compare_claims(claim)],
        arrays=arrays,
        notes=[
            "The paper does not discuss probabilities; the claim is a goal of this project.",
            "The correction is learnt on a quarter of the training documents with a chain that is trained on the "
            "others, so it does not account for text of another kind and year.",
        ],
        settings={"news": news.source, "sweeps": sweeps, "correction": list(corrected)},
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw the share of correct entities against the stated probability."""
    axes = figure.subplots(1, 2, sharey=True)
    for panel, text in zip(axes, ("held-out", "IE-ER"), strict=True):
        panel.plot([0, 1], [0, 1], color=FAINT)
        for name, color in (("chain", COLORS[0]), ("chain, corrected", COLORS[2]), ("skip-chain", COLORS[5])):
            bins = findings.arrays[f"{name}, {text}"]
            if len(bins):
                panel.plot(bins[:, 0], bins[:, 1], "o-", color=color, label=name)
        tidy(panel, text, "stated probability", "share that is right" if panel is axes[0] else "")
    axes[0].legend(frameon=False)


EXPERIMENT = Experiment(f"{HERDED}, section 4.4 (beyond it)", run, draw, (9.0, 4.2), DATA)
