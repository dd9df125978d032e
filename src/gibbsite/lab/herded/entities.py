"""Named entities: annealed Gibbs, herded Gibbs and Viterbi, and skip-chains.

A chain that is trained on news labels persons, places and organisations of the IE-ER files. Annealed Gibbs cools
linearly from T = 1, and herded Gibbs is not annealed; both return the best labels that they visited, sentence by
sentence. With links between equal names of a document, Viterbi's algorithm does not apply; long runs that draw whole
sentences are the reference.
"""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import numpy as np

from gibbsite.applications.entities.columns import read_all
from gibbsite.applications.entities.decoding import Skip, visit
from gibbsite.applications.entities.documents import Document, Sentence
from gibbsite.applications.entities.links import find_links
from gibbsite.applications.entities.recognizer import EntityRecognizer
from gibbsite.applications.entities.scoring import paired_difference, score_labels
from gibbsite.lab.data import DataSource
from gibbsite.lab.drawing import COLORS, FAINT, Figure, tidy
from gibbsite.lab.experiment import HERDED, Experiment, Meter
from gibbsite.lab.findings import Claim, Findings, Rows, Table, compare_claims
from gibbsite.lab.timing import compare_times
from gibbsite.learn.crf.decoding import kernel_of

_TRAIN, _DEV = "ner/worldwide-newswire/train.tsv.gz", "ner/worldwide-newswire/devtest.tsv.gz"
_TEST = ("ner/ieer/APW_19980314.tsv.gz", "ner/ieer/APW_19980429.tsv.gz", "ner/ieer/NYT_19980315.tsv.gz")
DATA = DataSource("worldwide-newswire and IE-ER", (_TRAIN, _DEV, *_TEST), "MADE-UP news")
_NAMES = ("Jordan", "Chelsea", "Madison", "Lincoln", "Carter", "Wayne", "Houston", "Sydney", "Paris", "Austin")
_FRAMES = (
    ("the mayor {P} spoke in {L} .", "PL"),
    ("{P} said that {L} was quiet .", "PL"),
    ("{O} Corp. opened offices near {L} .", "OL"),
    ("Mr. {P} works for {O} Inc. now .", "PO"),
    ("rain fell on {L} and {L} .", "LL"),
    ("{P} met {P} yesterday .", "PP"),
    ("{P} came .", "P"),
    ("{L} waits .", "L"),
    ("they praised {O} .", "O"),
    ("they praised {P} .", "P"),
)
_CLASSES = {"P": "PERSON", "L": "LOCATION", "O": "ORGANIZATION"}


MADE_UP = "made up"


class News(NamedTuple):
    """Documents for training, development and test, and their source."""

    train: list[Document]
    dev: list[Document]
    test: list[Document]
    source: str

    @property
    def real(self) -> bool:
        """Whether this is real text."""
        return self.source != MADE_UP


def make_news(documents: int, seed: int) -> list[Document]:
    """Generate news in which names are ambiguous, but have one meaning throughout a document."""
    rng = np.random.default_rng(seed)
    found = []
    for d in range(documents):
        names = rng.permutation(_NAMES)
        owned = {"P": names[:3], "L": names[3:6], "O": names[6:8]}
        sentences = []
        for k in rng.integers(0, len(_FRAMES), 6):
            tokens: list[str] = []
            labels: list[str] = []
            for word in _FRAMES[k][0].split():
                kind = word[1:2] if word.startswith("{") else ""
                tokens.append(str(rng.choice(owned[kind])) if kind else word)
                labels.append(f"B-{_CLASSES[kind]}" if kind else "O")
            sentences.append(Sentence(tokens, labels))
        found.append(Document(f"made up {d}", sentences))
    return found


def find_news(quick: bool) -> News:
    """Return real news from the folder that ``GIBBSITE_DATA`` names; without it, synthetic news."""
    if paths := DATA.paths():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # four sentences of the training text violate BIO
            train, dev, test = read_all(paths[:1]), read_all(paths[1:2]), read_all(paths[2:])
        if quick:
            train, dev, test = train[::8], dev[::8], test[::8]
        return News(train, dev, test, "worldwide-newswire, IE-ER")
    many = 40 if quick else 200
    return News(make_news(many, 1), make_news(many // 2, 2), make_news(many // 2, 3), MADE_UP)


#: Table 3 of the paper: F1 and seconds after 100, 400 and 800 iterations.
PAPER = {
    "annealed Gibbs": ("84.36 (0.16) [55.7 s]", "84.51 (0.10) [83.5 s]", "84.61 (0.05) [115.9 s]"),
    "herded Gibbs": ("84.70 [59.1 s]", "84.75 [90.5 s]", "84.81 [132.0 s]"),
    "Viterbi": (None, None, "84.81 [46.7 s]"),
}
SWEEPS = (100, 400, 800)
_METHODS = {"annealed Gibbs": "gibbs", "herded Gibbs": "herded"}


class _Run:
    """A model with its test text, which is decoded by all methods."""

    def __init__(self, recognizer: EntityRecognizer, news: News, skip: Skip | None) -> None:
        assert recognizer.chain is not None
        self.chain, self.news, self.skip = recognizer.chain, news, skip
        self.data = recognizer.features(news.test)
        self.true = [[s.labels or [] for s in d.sentences] for d in news.test]

    def labels(self, codes: Any) -> list[list[list[str]]]:
        """Return the labels of some codes, by document and sentence."""
        names = [self.chain.labels[code] for code in codes.tolist()]
        rows, at = [], 0
        for document in self.news.test:
            part = []
            for sentence in document.sentences:
                part.append(names[at : at + len(sentence.tokens)])
                at += len(sentence.tokens)
            rows.append(part)
        return rows

    def f1(self, codes: Any) -> float:
        """Return the F1 of entities, in percent."""
        return 100.0 * score_labels(self.true, self.labels(codes), repeats=0).total.f1

    def decode(self, method: str, sweeps: int, rng: int) -> tuple[float, float, float, Any]:
        """Return F1, log-potential, seconds and the labels of the best visited state."""
        begun = time.perf_counter()
        visited = visit(self.chain, self.data, self.skip, kernel_of(method, sweeps, self.data), sweeps, rng)
        codes, score = visited.best(self.data)
        seconds = time.perf_counter() - begun
        return self.f1(codes), score, seconds, codes


def run(quick: bool, rng: int, meter: Meter) -> Findings:
    """Decode the test text with a chain, then with a skip-chain."""
    news = find_news(quick)
    seeds, lengths = (2, (20, 40, 80)) if quick else (5, SWEEPS)
    meter.expect(2 + len(lengths) * (seeds + 1) + seeds + 3)
    recognizer = EntityRecognizer(
        "document", scheme="io", links=True, min_count=1 if quick else 2, iterations=30 if quick else 80
    ).fit(news.train)
    meter.tick()
    one = _Run(recognizer, news, None)
    for method in _METHODS.values():  # compile
        one.decode(method, 1, rng)
    begun = time.perf_counter()
    codes, scores = one.chain.best(one.data)
    viterbi = one.f1(codes), float(scores.sum()), time.perf_counter() - begun
    meter.tick()
    rows: list[tuple[Any, ...]] = []
    arrays: dict[str, Any] = {"sweeps": np.array(lengths), "Viterbi": np.array(viterbi)}
    for name, method in _METHODS.items():
        found = np.empty((len(lengths), seeds if method == "gibbs" else 1, 3))
        for k, sweeps in enumerate(lengths):
            for r in range(found.shape[1]):
                found[k, r] = one.decode(method, sweeps, rng + r)[:3]
                meter.tick()
        arrays[name] = found
        cells: list[Any] = [name]
        for k, sweeps in enumerate(lengths):
            spread = f" ({found[k, :, 0].std(ddof=1):.2f})" if found.shape[1] > 1 else ""
            theirs = [PAPER[name][SWEEPS.index(sweeps)]] if sweeps in SWEEPS else []
            cells += [*theirs, f"{found[k, :, 0].mean():.2f}{spread} [{found[k, :, 2].mean():.1f} s]"]
        rows.append(tuple(cells))
    heads = [head for n in lengths for head in ((f"{n}: paper",) if n in SWEEPS else ()) + (f"{n}: ours",)]
    last = [PAPER["Viterbi"][2]] if lengths[-1] in SWEEPS else []
    last.append(f"{viterbi[0]:.2f} [{viterbi[2]:.2f} s]")
    rows.append(("Viterbi", *[None] * (len(heads) - len(last)), *last))
    tables = [
        Table(f"F1 in percent [seconds] by number of iterations, {news.source}", ("method", *heads), rows),
        _gaps(arrays, viterbi[1], lengths),
    ]
    skip, extra = _skip_chain(recognizer, news, codes, lengths[-1], seeds, rng, meter, arrays)
    tables += [skip, compare_claims(*_claims(arrays, viterbi, news.real and not quick))]
    tokens = one.data.n_positions
    return Findings(
        tables=tables,
        arrays=arrays,
        notes=[
            "Model and training text are not those of the paper (the Stanford recogniser and its news): F1 is "
            "compared between methods, not with the paper.",
            "The gap is the difference of log-potential between Viterbi's labels, which are optimal, and the best "
            "visited ones.",
            *extra,
        ],
        settings={"news": news.source, "tokens": tokens, "seeds": seeds, "sweeps": list(lengths)},
    )


def _gaps(arrays: dict[str, Any], best: float, lengths: tuple[int, ...]) -> Table:
    rows = Rows()
    for name in _METHODS:
        gaps = best - arrays[name][:, :, 1].mean(axis=1)
        rows.add(name, *(f"{gap:.2f} ({gap / abs(best):.4%})" for gap in gaps))
    title = f"Log-potential below Viterbi's {best:.1f}, in nats (and as a share of it)"
    return Table(title, ("method", *(f"{n} iterations" for n in lengths)), rows)


def _skip_chain(
    recognizer: EntityRecognizer,
    news: News,
    viterbi: Any,
    sweeps: int,
    seeds: int,
    rng: int,
    meter: Meter,
    arrays: dict[str, Any],
) -> tuple[Table, list[str]]:
    """Decode with links; the reference is a long run that draws whole sentences."""
    assert recognizer.link_weights is not None
    one = _Run(recognizer, news, Skip(find_links(news.test), recognizer.link_weights))
    long = one.decode("blocks", 4 * sweeps, rng)
    meter.tick()
    best = long[1]
    rows = Rows([("blocks, long", 4 * sweeps, f"{long[0]:.2f}", "0", f"{long[2]:.1f}")])
    for name, method in (*_METHODS.items(), ("blocks", "blocks")):
        many = seeds if method == "gibbs" else 1
        found = np.empty((many, 3))
        for r in range(many):
            found[r] = one.decode(method, sweeps, rng + r)[:3]
            meter.tick()
        arrays[f"skip-chain: {name}"] = found
        gap = best - found[:, 1].mean()
        rows.add(name, sweeps, f"{found[:, 0].mean():.2f}", f"{gap:.2f}", f"{found[:, 2].mean():.1f}")
    gain = paired_difference(one.true, one.labels(viterbi), one.labels(long[3]))
    note = (
        f"Links change the F1 of the chain by {100 * gain[0]:+.2f} points (95 % interval by documents "
        f"{100 * gain[1]:+.2f} to {100 * gain[2]:+.2f}). Their weights: "
        + ", ".join(f"{w:.2f}" for w in recognizer.link_weights)
        + " (outside, then classes by name)."
    )
    columns = ("method", "iterations", "F1", "below the long run, nats", "seconds")
    return Table("Skip-chain: the same with links between equal names", columns, rows), [note]


def _claims(arrays: dict[str, Any], viterbi: tuple[float, float, float], full: bool) -> list[Claim]:
    """Compare the claims of the source with the findings; made-up or shortened news decide nothing."""
    herded, gibbs = arrays["herded Gibbs"], arrays["annealed Gibbs"]
    last = herded[-1, 0, 0], gibbs[-1, :, 0].mean()
    deviation = gibbs[-1, :, 0].std(ddof=1)
    ratios = [compare_times(gibbs[-1, :, 2], times) for times in herded[:, :, 2]]
    cheaper = max((k for k, ratio in enumerate(ratios) if ratio.middle >= 1.0), default=0)
    apart = herded[cheaper, 0, 0] - last[1]
    reach = [k for k in range(len(herded)) if herded[k, 0, 0] >= last[1]]
    same = compare_times(gibbs[-1, :, 2], herded[reach[0] if reach else -1, :, 2])
    found = [
        Claim(
            "herded Gibbs does no worse than Viterbi",
            f"F1 {last[0]:.2f} against {viterbi[0]:.2f}; {viterbi[1] - herded[-1, 0, 1]:.2f} nats below",
            last[0] >= viterbi[0] - 0.05,
        ),
        Claim(
            "it is more accurate than annealed Gibbs for equal computation",
            f"F1 {herded[cheaper, 0, 0]:.2f} after {arrays['sweeps'][cheaper]:.0f} iterations against {last[1]:.2f} "
            f"({deviation:.2f}) after {arrays['sweeps'][-1]:.0f}, which take {ratios[cheaper].text()} as long",
            None if abs(apart) <= 2 * deviation else apart > 0 and ratios[cheaper].exceeds(),
        ),
        Claim(
            "it is faster than annealed Gibbs to the same F1",
            f"annealed Gibbs takes {same.text()} as long" if reach else "it does not get there",
            same.exceeds() if reach else False,
        ),
    ]
    return found if full else [claim._replace(holds=None) for claim in found]


def draw(findings: Findings, figure: Figure) -> None:
    """Draw F1 and gaps against iterations."""
    left, right = figure.subplots(1, 2)
    sweeps, viterbi = findings.arrays["sweeps"], findings.arrays["Viterbi"]
    for name, color in (("annealed Gibbs", COLORS[0]), ("herded Gibbs", COLORS[5])):
        found = findings.arrays[name]
        left.plot(sweeps, found[:, :, 0].mean(axis=1), "o-", color=color, label=name)
        gap = np.maximum(viterbi[1] - found[:, :, 1].mean(axis=1), 1e-3)
        right.plot(sweeps, gap, "o-", color=color, label=name)
    left.axhline(viterbi[0], color=FAINT, label="Viterbi")
    right.set_yscale("log")
    tidy(left, "", "iterations", "F1, percent")
    tidy(right, "", "iterations", "log-potential below Viterbi's, nats")
    left.legend(frameon=False)


EXPERIMENT = Experiment(f"{HERDED}, Table 3", run, draw, (9.0, 4.0), DATA)
