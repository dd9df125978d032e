"""Scans for the mentions of one name in a document, tagged by a skip-chain.

The authors name language processing as future work. A conditional random field labels the tokens of news; links between
equal names make it a skip-chain. In each document the question is what the most often repeated name is: the scan is
optimised for its mentions, and compared with systematic sweeps of as many steps. All chains start at the label "O"
everywhere.

*Influence* is exact where the neighbours of a token have few configurations. Where its spectral radius is 1 or more,
bounds guarantee nothing; the scan is then optimised for the same influence, scaled down to a radius of 0.95.

*Errors* are total variation distances between the exact probabilities of the labels of a mention and their frequencies
in the last states of many chains, averaged over the mentions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite.applications.entities.documents import Document
from gibbsite.applications.entities.links import find_links
from gibbsite.applications.entities.recognizer import EntityRecognizer
from gibbsite.lab.dogs.dobrushin import run_short
from gibbsite.lab.drawing import COLORS, FAINT, Figure, tidy
from gibbsite.lab.experiment import DOGS, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims
from gibbsite.lab.herded.entities import DATA, find_news

SHARES = (0.125, 0.25, 0.5, 1.0, 2.0)  # numbers of steps, in sweeps
RADIUS = 0.95
_LONGEST = 600  # tokens of a document


class _Case(NamedTuple):
    """What was found about one document."""

    tokens: int
    mentions: int
    radius: float
    bounds: Floats  # (2, lengths): of the systematic scan and of DoGS, as shares of the bound before any step
    errors: Floats  # (2, lengths)
    noise: float  # expected error of frequencies in as many independent draws


def most_repeated(document: Document) -> Ints:
    """Return the positions of the tokens of the name with the most links, and none if no name is repeated."""
    pairs = find_links([document])
    if not len(pairs):
        return np.zeros(0, np.int64)
    count = np.bincount(pairs.ravel())
    words = [word.lower() for sentence in document.sentences for word in sentence.tokens]
    name = words[int(count.argmax())]
    return np.flatnonzero((np.array(words[: count.size]) == name) & (count > 0))


def study(document: Document, recognizer: EntityRecognizer, chains: int, rng: int) -> _Case | None:
    """Compare the scans in one document; None if it repeats no name or is too large for exact probabilities."""
    target = most_repeated(document)
    if not target.size or document.n_tokens > _LONGEST:
        return None
    model = recognizer.factor_graph([document])
    try:
        exact = gs.solve_exact(model).marginals
    except gs.errors.GibbsiteError:
        return None
    truth = np.array([list(exact[model.sites[k]].values()) for k in target])
    given = gs.influence.bound_influence(model)
    radius = min(given.norms)
    influence = given
    if radius >= 1.0:
        influence = gs.influence.read_influence(given.to_scipy() * (RADIUS / radius), model.n_sites)
    start = np.full(model.n_sites, model.labels(0).index("O"), np.int64)
    bounds, errors = np.empty((2, len(SHARES))), np.empty((2, len(SHARES)))
    for k, share in enumerate(SHARES):
        steps = max(1, round(share * model.n_sites))
        scan = gs.dogs(model, target=target.tolist(), steps=steps, influence=influence)
        bounds[:, k] = [each / target.size for each in (scan.input_variation, scan.variation)]
        for j, order in enumerate((gs.Systematic(), scan)):
            states = run_short(model, order, np.array([steps]), target, chains=chains, start=start, rng=rng)[0]
            shares = (states[..., None] == np.arange(truth.shape[1])).mean(axis=0)
            errors[j, k] = 0.5 * np.abs(shares - truth).sum(axis=1).mean()
    # the mean of the absolute error of a frequency is sqrt(2 / pi) times its standard deviation, nearly
    noise = 0.5 * np.sqrt(2.0 / np.pi * truth * (1.0 - truth) / chains).sum(axis=1).mean()
    return _Case(document.n_tokens, target.size, float(radius), bounds, errors, float(noise))


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Train a skip-chain and compare scans in the documents of the test text."""
    news = find_news(quick)
    chains, most = (400, 12) if quick else (4000, 100)
    meter.expect(1 + most)
    recognizer = EntityRecognizer(
        "document", scheme="io", links=True, min_count=1 if quick else 2, iterations=30 if quick else 80
    ).fit(news.train)
    meter.tick()
    cases: list[_Case] = []
    for number, document in enumerate(news.test[:most]):
        found = study(document, recognizer, chains, rng + number)
        if found is not None:
            cases.append(found)
        meter.tick()
    errors, bounds = (np.array([getattr(case, name) for case in cases]) for name in ("errors", "bounds"))
    radius, noise = np.array([case.radius for case in cases]), float(np.mean([case.noise for case in cases]))
    arrays: dict[str, Array] = {"sweeps": np.array(SHARES), "radius": radius, "noise": np.array(noise)}
    for k, scan in enumerate(("systematic", "DoGS")):
        arrays |= {f"error, {scan}": errors[:, k], f"bound, {scan}": bounds[:, k]}
    return Findings(
        tables=[_claims(errors, radius, news.real), _errors(errors, bounds), _sizes(cases)],
        arrays=arrays,
        notes=[
            f"Frequencies in {chains} independent exact draws would have errors of {noise:.4f}.",
            "Bounds are shares of the bound before any step. In documents whose influence has a radius of 1 or more "
            f"they are those of an influence scaled down to {RADIUS}, and guarantee nothing.",
            *(["The news are MADE UP, so that nothing follows about real ones."] if not news.real else []),
        ],
        settings={"news": news.source, "documents": len(cases), "chains": chains, "sweeps": list(SHARES)},
    )


def _mean(values: Floats) -> tuple[float, float]:
    """Return a mean with its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size))


def _text(values: Floats) -> str:
    mean, error = _mean(values)
    return f"{mean:.4f} ({error:.4f})"


def _errors(errors: Floats, bounds: Floats) -> Table:
    rows = Rows()
    for k, share in enumerate(SHARES):
        one, two = errors[:, 0, k], errors[:, 1, k]
        middle = [f"{value:.3g}" for value in np.median(bounds[:, :, k], axis=0)]
        rows.add(share, _text(one), _text(two), _text(two - one), *middle)
    head = ("sweeps", "systematic", "DoGS", "DoGS - systematic", "bound, systematic", "of DoGS")
    return Table(f"Errors of the labels of a mention, means of {len(errors)} documents (standard errors)", head, rows)


def _sizes(cases: list[_Case]) -> Table:
    rows = Rows()
    for name in ("tokens", "mentions", "radius"):
        values = np.array([getattr(case, name) for case in cases], np.float64)
        rows.add(name, *(f"{value:.3g}" for value in np.quantile(values, [0.0, 0.5, 1.0])))
    return Table("Documents", ("what", "smallest", "median", "largest"), rows)


def _claims(errors: Floats, radius: Floats, real: bool) -> Table:
    """Compare with what the authors hope for; made-up news decide nothing."""
    below = int((radius < 1.0).sum())
    one, quarter = SHARES.index(1.0), SHARES.index(0.25)
    equal, less = errors[:, 1, one] - errors[:, 0, one], errors[:, 1, quarter] - errors[:, 0, one]

    def decide(apart: Floats) -> bool | None:
        mean, error = _mean(apart)
        return None if not real or abs(mean) <= 2 * error else mean < 0

    return compare_claims(
        Claim(
            "DoGS suits language processing (named as future work)",
            f"after a sweep the error is {_text(equal)} apart from that of a systematic one",
            decide(equal),
        ),
        Claim(
            "with fewer steps than a sweep",
            f"after a quarter of them it is {_text(less)} apart from that of a systematic sweep",
            decide(less),
        ),
        Claim(
            "influence is below 1, so that there is a guarantee",
            f"in {below} of {radius.size} documents",
            below == radius.size if real else None,
        ),
    )


def draw(findings: Findings, figure: Figure) -> None:
    """Draw errors by number of steps, and their paired differences."""
    arrays = findings.arrays
    left, right = figure.subplots(1, 2)
    sweeps = np.array(arrays["sweeps"])
    both = [np.array(arrays[f"error, {scan}"]) for scan in ("systematic", "DoGS")]

    def bars(axes: Any, values: Floats, label: str, color: str) -> None:
        spread = 2 * values.std(axis=0, ddof=1) / np.sqrt(len(values))
        axes.errorbar(sweeps, values.mean(axis=0), spread, label=label, color=color, marker="o", ms=4, capsize=3)

    for errors, scan, color in zip(both, ("systematic", "DoGS"), (COLORS[0], COLORS[5]), strict=True):
        bars(left, errors, scan, color)
    left.axhline(float(arrays["noise"]), color=FAINT, lw=1, label="exact draws")
    bars(right, both[1] - both[0], "DoGS - systematic", COLORS[2])
    right.axhline(0, color=FAINT, lw=1)
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xticks(sweeps, [f"{share:g}" for share in sweeps])
        axes.minorticks_off()
        axes.legend(fontsize=8, frameon=False)
    tidy(left, "Labels of the mentions of a name", "steps, in sweeps", "total variation, 2 s.e.")
    tidy(right, "Paired differences", "steps, in sweeps", "")


EXPERIMENT = Experiment(f"{DOGS}; section 6, future work", run, draw, (10.0, 4.2), DATA)
