"""A skip-chain, and a paragraph tagged by annealed Gibbs, herded Gibbs and Viterbi.

The graph is that of a short text in which a name occurs twice: tokens beside each other are linked, and so are equal
names. The paragraph is the example of the paper, which the small recogniser of the package tags. Gibbs sampling that
moves one label at a time can freeze in a state in which a name has a wrong class throughout: each single change of it
is forbidden by the scheme or improbable. Many seeds show how often.

The paragraph is from the article on the film Pulp Fiction by the contributors of Wikipedia (CC BY-SA 3.0, see the file
NOTICE in this folder), as the paper quotes it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gibbsite.applications.entities.decoding import Skip, span_probabilities, span_shares, visit
from gibbsite.applications.entities.documents import Document, read_text
from gibbsite.applications.entities.links import classes_of, find_links
from gibbsite.applications.entities.recognizer import EntityRecognizer
from gibbsite.lab.drawing import COLORS, FAINT, INK, Axes, Figure
from gibbsite.lab.experiment import HERDED, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims
from gibbsite.learn.crf.decoding import kernel_of
from gibbsite.learn.crf.labels import find_spans

PARAGRAPH = (
    '"Pumpkin" (Tim Roth) and "Honey Bunny" (Amanda Plummer) are having breakfast in a diner. They decide to rob it '
    "after realizing they could make money off the customers as well as the business, as they did during their "
    "previous heist. Moments after they initiate the hold-up, the scene breaks off and the title credits roll. As "
    "Jules Winnfield (Samuel L. Jackson) drives, Vincent Vega (John Travolta) talks about his experiences in Europe, "
    'from where he has just returned: the hash bars in Amsterdam, the French McDonald\'s and its "Royale with Cheese".'
)
# The annotation of the paper, by all three methods.
PAPER = {
    "Tim Roth": "PER",
    "Amanda Plummer": "PER",
    "Jules Winnfield": "PER",
    "Samuel L. Jackson": "PER",
    "Vincent Vega": "PER",
    "John Travolta": "PER",
    "Europe": "LOC",
    "Amsterdam": "LOC",
    "McDonald's": "ORG",
}
LINKED = "Vincent Vega returned from Amsterdam. Moments later Vega drove on."
_LINK = 2.0  # weight of links between names of equal class, by hand
_METHODS = {"annealed Gibbs": "gibbs", "herded Gibbs": "herded"}
_CLASS_COLORS = {"PER": COLORS[1], "LOC": COLORS[2], "ORG": COLORS[4]}
_WIDTH = 100  # characters of a line of the picture


class Name(NamedTuple):
    """An entity: its tokens in the text, numbered through all sentences, and its class."""

    first: int
    last: int
    label: str


class _Text:
    """A text that a recogniser tags by several methods."""

    def __init__(self, recognizer: EntityRecognizer, text: str, links: bool = False) -> None:
        assert recognizer.chain is not None
        self.chain, self.scheme = recognizer.chain, recognizer.scheme
        self.document: Document = read_text(text)
        self.data = recognizer.features([self.document])
        self.tokens = [token for sentence in self.document.sentences for token in sentence.tokens]
        self.offsets = [place for sentence in self.document.sentences for place in sentence.offsets or ()]
        self.pairs = find_links([self.document])
        weights = np.full(len(classes_of(self.chain.labels)[0]), _LINK)
        weights[0] = 0.0  # nothing for names that are both outside
        self.skip = Skip(self.pairs, weights) if links else None

    def names(self, codes: Any) -> list[Name]:
        """Return the entities of labels."""
        found = []
        for a, b in pairwise(self.data.begin.tolist()):
            row = [self.chain.labels[code] for code in codes[a:b]]
            found += [Name(a + span.start, a + span.end, span.label) for span in find_spans(row)]
        return found

    def read(self, name: Name) -> str:
        """Return the text of an entity; a genitive belongs to it."""
        last = name.last + (name.last < len(self.tokens) and self.tokens[name.last] == "'s")
        text: str = (self.document.text or "")[self.offsets[name.first][0] : self.offsets[last - 1][1]]
        return text

    def sample(self, method: str, sweeps: int, rng: int) -> tuple[Any, float]:
        """Return the best visited labels and their log-potential."""
        found = visit(self.chain, self.data, self.skip, kernel_of(method, sweeps, self.data), sweeps, rng)
        return found.best(self.data)

    def asked(self, name: Name, label: str) -> tuple[int, int, int, str]:
        """Return the place of an entity for the functions that compute its probability."""
        sentence = int(np.searchsorted(self.data.begin, name.first, "right")) - 1
        at = int(self.data.begin[sentence])
        return sentence, name.first - at, name.last - at, label


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Tag the paragraph with every method, annealed and herded Gibbs with several seeds."""
    recognizer = EntityRecognizer.shipped()
    paragraph = _Text(recognizer, PARAGRAPH)
    seeds, lengths = (10, (100, 400)) if quick else (100, (100, 400, 800))
    meter.expect(2 + len(lengths) * len(_METHODS))
    viterbi, scores = paragraph.chain.best(paragraph.data)
    codes: dict[str, Any] = {"Viterbi": viterbi}
    arrays: dict[str, Any] = {"sweeps": np.array(lengths)}
    differences = Rows()
    classes: dict[str, dict[Name, int]] = {}
    for name, method in _METHODS.items():
        for sweeps in lengths:
            runs = [paragraph.sample(method, sweeps, rng + k) for k in range(seeds)]
            gaps = float(scores.sum()) - np.array([score for _, score in runs])
            arrays[f"{name}, {sweeps}: below Viterbi"] = np.maximum(gaps, 0.0)
            differences.add(name, sweeps, *_differ(paragraph, viterbi, [found for found, _ in runs], gaps))
            meter.tick()
            if sweeps == 400:
                codes[name] = runs[0][0]
                classes[name] = {}
                for found, _ in runs:
                    for one in paragraph.names(found):
                        classes[name][one] = classes[name].get(one, 0) + 1
    entities, right = _entities(paragraph, codes, classes, seeds)
    meter.tick()
    linked, graph = _linked(recognizer, rng, 400 if quick else 4000)
    meter.tick()
    arrays |= {f"labels by {name}": np.asarray(found, np.int64) for name, found in codes.items()} | graph
    missing = [text for text, good in right.items() if not good]
    herded, annealed = (
        np.mean(arrays[f"{name}, 400: below Viterbi"] > 1e-6) for name in ("herded Gibbs", "annealed Gibbs")
    )
    return Findings(
        tables=[
            entities,
            Table(
                f"Differences from Viterbi, {seeds} seeds each",
                ("method", "sweeps", "runs that differ", "nats below Viterbi, mean", "most frequent difference"),
                differences,
            ),
            linked,
            compare_claims(
                Claim(
                    "all methods give the same annotation",
                    f"after 400 sweeps {herded:.0%} of the herded runs and {annealed:.0%} of the annealed runs differ "
                    "from Viterbi",
                    herded == annealed == 0.0,
                ),
                Claim(
                    "all nine names are found, with their classes",
                    f"Viterbi: {len(right) - len(missing)} of {len(right)}"
                    + (f", not {', '.join(missing)}" if missing else ""),
                    not missing,
                ),
            ),
        ],
        arrays=arrays,
        notes=[
            "The recogniser is the small one of this package, not that of the paper; its classes are PER, LOC and ORG.",
            "Annealed Gibbs moves one label at a time. If a name of two words has a wrong class, each single change of "
            "a label is forbidden by the BIO scheme or improbable, and the run freezes there when it cools.",
        ],
        settings={"seeds": seeds, "sweeps": list(lengths), "link weight": _LINK},
    )


def _differ(text: _Text, viterbi: Any, runs: list[Any], gaps: Any) -> tuple[str, float, str | None]:
    """Return how many runs differ from Viterbi's labels, how far they are below, and where most of them differ."""
    best = set(text.names(viterbi))
    counts: dict[str, int] = {}
    for found in runs:
        names = text.names(found)
        for name in best - set(names):
            other = [n.label for n in names if n.first < name.last and n.last > name.first] or ["not found"]
            said = f"{text.read(name)}: {', '.join(other)}"
            counts[said] = counts.get(said, 0) + 1
        for name in names:
            if not any(name.first < n.last and name.last > n.first for n in best):
                said = f"{text.read(name)}: {name.label} (Viterbi: none)"
                counts[said] = counts.get(said, 0) + 1
    most = max(counts, key=lambda said: counts[said]) if counts else None
    different = int((gaps > 1e-6).sum())
    return (
        f"{different} of {len(runs)}",
        float(np.maximum(gaps, 0.0).mean()),
        None if most is None else f"{most} ({counts[most]})",
    )


def _entities(
    text: _Text, codes: dict[str, Any], classes: dict[str, dict[Name, int]], seeds: int
) -> tuple[Table, dict[str, bool]]:
    """Compare the entities of all methods with those of the paper; probabilities are exact."""
    found = {name: text.names(each) for name, each in codes.items()}
    places = {(n.first, n.last) for names in found.values() for n in names}
    places |= {(n.first, n.last) for counts in classes.values() for n in counts}
    labels = sorted(_CLASS_COLORS)
    asked = [text.asked(Name(*place, ""), label) for place in sorted(places) for label in labels]
    shares = span_probabilities(text.chain, text.data, asked, text.scheme).reshape(-1, len(labels))
    rows = Rows()
    right = dict.fromkeys(PAPER, False)
    for k, place in enumerate(sorted(places)):
        said = text.read(Name(*place, ""))
        by_viterbi = next((n.label for n in found["Viterbi"] if (n.first, n.last) == place), None)
        right[said] = right.get(said, False) or (said in PAPER and by_viterbi == PAPER[said])
        counts = [
            ", ".join(f"{label} {many}" for (a, b, label), many in sorted(classes[name].items()) if (a, b) == place)
            or None
            for name in _METHODS
        ]
        rows.add(
            said,
            PAPER.get(said),
            by_viterbi,
            ", ".join(f"{label} {p:.2f}" for label, p in zip(labels, shares[k], strict=True) if p >= 0.005) or None,
            *counts,
        )
    columns = ("entity", "paper", "Viterbi", "exact probabilities", *(f"{name}, runs" for name in _METHODS))
    title = f"Entities of the paragraph; runs of {seeds} with 400 sweeps by class"
    return Table(title, columns, rows), {name: good for name, good in right.items() if name in PAPER}


def _linked(recognizer: EntityRecognizer, rng: int, sweeps: int) -> tuple[Table, dict[str, Any]]:
    """Tag the short text with and without links; return the table and the graph for the picture."""
    plain, linked = _Text(recognizer, LINKED), _Text(recognizer, LINKED, links=True)
    best = plain.chain.best(plain.data)[0]
    states = visit(linked.chain, linked.data, linked.skip, kernel_of("blocks", sweeps, linked.data), sweeps, rng).states
    names = linked.names(linked.sample("blocks", 400, rng)[0])
    asked = [linked.asked(name, name.label) for name in names]
    exact = span_probabilities(plain.chain, plain.data, asked, plain.scheme)
    shares, errors = span_shares(states[sweeps // 5 :], linked.data, linked.chain.labels, asked)
    rows = Rows()
    for name, before, after, error in zip(names, exact, shares, errors, strict=True):
        rows.add(linked.read(name), name.label, f"{before:.3f}", f"{after:.3f} ({error:.3f})")
    codes = linked.sample("herded", 400, rng)[0]
    title = f"A skip-chain: {LINKED!r}, links of weight {_LINK:g}"
    return Table(title, ("entity", "class", "P without links", "P with links"), rows), {
        "links": linked.pairs,
        "begin": linked.data.begin,
        "labels without links": best.astype(np.int64),
        "labels with links": codes.astype(np.int64),
    }


def draw(findings: Findings, figure: Figure) -> None:
    """Draw the skip-chain, then the paragraph once for each method, in colours."""
    recognizer = EntityRecognizer.shipped()
    axes = figure.subplots(4, 1, gridspec_kw={"height_ratios": (1.5, 1, 1, 1)})
    _draw_graph(axes[0], _Text(recognizer, LINKED, links=True), findings.arrays)
    text = _Text(recognizer, PARAGRAPH)
    best = set(text.names(findings.arrays["labels by Viterbi"]))
    for panel, name in zip(axes[1:], ("annealed Gibbs", "herded Gibbs", "Viterbi"), strict=True):
        _draw_text(panel, text, text.names(findings.arrays[f"labels by {name}"]), best)
        sweeps = "" if name == "Viterbi" else f", 400 sweeps, seed {findings.rng}"
        panel.set_title(name + sweeps, loc="left", fontsize=10, color=INK)
    for label, color in _CLASS_COLORS.items():
        axes[-1].plot([], [], "s", color=color, ms=8, label=label)
    axes[-1].plot([], [], "s", mfc="none", mec=COLORS[5], ms=8, label="differs from Viterbi")
    axes[-1].legend(ncols=4, frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 0.0))


def _draw_graph(axes: Axes, text: _Text, arrays: Any) -> None:
    """Draw labels above their words, chains of labels, and an arc for each link."""
    axes.set_axis_off()
    begin, codes = arrays["begin"].tolist(), arrays["labels with links"]
    x = np.arange(len(text.tokens)) + np.repeat(np.arange(len(begin) - 1), np.diff(begin)) * 0.7
    for a, b in pairwise(begin):
        axes.plot(x[a:b], np.ones(b - a), color=INK, lw=1.2, zorder=1)
    for k, token in enumerate(text.tokens):
        label = text.chain.labels[codes[k]]
        axes.plot([x[k], x[k]], [0, 1], color=FAINT, lw=1.0, zorder=1)
        color = _CLASS_COLORS.get(label[2:], "white")
        axes.plot(x[k], 1, "o", ms=26, mfc=color, mec=INK, zorder=2)
        axes.text(x[k], 1, label, ha="center", va="center", fontsize=6.5, color=INK, zorder=3)
        box = {"boxstyle": "square,pad=0.3", "fc": "#eeeeee", "ec": FAINT}
        axes.text(x[k], 0, token, ha="center", va="center", fontsize=8, color=INK, bbox=box, zorder=3)
    for a, b in text.pairs.tolist():
        t = np.linspace(0.0, np.pi, 60)
        middle, half = (x[a] + x[b]) / 2, (x[b] - x[a]) / 2
        axes.plot(middle - half * np.cos(t), 1.28 + 0.55 * np.sin(t), color=COLORS[5], lw=1.5, zorder=1)
        axes.plot([x[a], x[a]], [1, 1.28], [x[b], x[b]], [1, 1.28], color=COLORS[5], lw=1.5, zorder=1)
    axes.set(xlim=(-0.8, x[-1] + 0.8), ylim=(-0.4, 2.0))
    axes.set_title(
        "A skip-chain: labels, their words, and a link between equal names", loc="left", fontsize=10, color=INK
    )


def _draw_text(axes: Axes, text: _Text, names: list[Name], best: set[Name]) -> None:
    """Draw a text in letters of equal width; names are coloured, and marked if they are not Viterbi's."""
    axes.set_axis_off()
    whole = text.document.text or ""
    line, column, places = 0, 0, []
    for word in whole.split(" "):
        if column and column + len(word) > _WIDTH:
            line, column = line + 1, 0
        places += [(line, column + k) for k in range(len(word) + 1)]
        column += len(word) + 1
    shown = [(name, name in best) for name in names]
    shown += [(name, False) for name in best if not any(n.first < name.last and n.last > name.first for n in names)]
    for name, same in shown:
        begin, end = text.offsets[name.first][0], text.offsets[name.last - 1][1]
        color = _CLASS_COLORS[name.label] if name in names else "white"
        for row in {places[k][0] for k in range(begin, end)}:
            columns = [places[k][1] for k in range(begin, end) if places[k][0] == row]
            low, high = min(columns), max(columns) + 1
            axes.fill_between([low, high], row + 0.42, row - 0.42, color=color, alpha=0.55, lw=0, zorder=1)
            if not same:
                axes.plot(
                    [low, high, high, low, low],
                    row + np.array([0.42, 0.42, -0.42, -0.42, 0.42]),
                    color=COLORS[5],
                    lw=1.6,
                )
    for k, letter in enumerate(whole):
        if letter != " ":
            row, column = places[k]
            axes.text(column + 0.5, row, letter, ha="center", va="center", fontsize=8, family="monospace", color=INK)
    axes.set(xlim=(0, _WIDTH), ylim=(line + 0.6, -0.6))


EXPERIMENT = Experiment(f"{HERDED}, Figures 10 and 11", run, draw, (9.0, 8.5))
