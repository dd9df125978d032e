"""Named entities: training against crfsuite (same features, same iterations), memory, and tagging.

Each contestant runs in a process of its own, ``python -m benchmarks.entities NAME THREADS ITERATIONS``.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.data import DATA, ROOT
from benchmarks.report import Section, Target

TRAIN, DEV = "ner/worldwide-newswire/train.tsv.gz", "ner/worldwide-newswire/devtest.tsv.gz"


def sentences(quick: bool) -> list[Any]:
    """Return the sentences of the training text; quickly, every tenth."""
    from gibbsite.applications.entities import read_columns

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        documents = read_columns(DATA / TRAIN)
    found = [sentence for document in documents for sentence in document.sentences]
    return found[::10] if quick else found


def features(tokens: list[str]) -> list[list[str]]:
    """Return words, shapes, affixes and windows of two as names, as one gives them to crfsuite."""
    from gibbsite.applications.entities.attributes import shape

    small, shapes = [token.lower() for token in tokens], [shape(token) for token in tokens]
    rows = []
    for t, token in enumerate(tokens):
        row = ["bias", f"w={token}"]
        for offset in range(-2, 3):
            if 0 <= t + offset < len(tokens):
                row += [f"l{offset}={small[t + offset]}", f"s{offset}={shapes[t + offset]}"]
            else:
                row.append(f"edge{offset}")
        row += [f"p={token[:k]}" for k in range(1, min(4, len(token)) + 1)]
        row += [f"e={token[-k:]}" for k in range(1, min(4, len(token)) + 1)]
        rows.append(row)
    return rows


def train_ours(quick: bool, threads: int, iterations: int) -> dict[str, float]:
    """Train a chain; return seconds and loss."""
    import numpy as np

    from gibbsite.learn.crf.chain import fit_chain
    from gibbsite.learn.crf.sequences import Vocabulary

    data = sentences(quick)
    few, words = Vocabulary(), Vocabulary()
    names = sorted({label for sentence in data for label in sentence.labels})
    codes = np.array([names.index(label) for sentence in data for label in sentence.labels], np.uint8)
    how: dict[str, Any] = {"l2": 1.0, "all_pairs": False, "boundaries": False, "tolerance": 0.0, "flatness": 0.0}
    small = few.read([features(data[0].tokens)], grow=True)
    fit_chain(small, codes[: small.n_positions], names, len(few), iterations=1, **how)  # compile
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    rows = words.read((features(sentence.tokens) for sentence in data), grow=True)
    indexed = time.perf_counter()
    done = fit_chain(rows, codes, names, len(words), iterations=iterations, threads=threads, **how)
    return _facts(before, begun, indexed, done.minimum.value, done.minimum.iterations)


def train_crfsuite(quick: bool, iterations: int) -> dict[str, float]:
    """Train with crfsuite; return seconds and loss."""
    import pycrfsuite

    data = sentences(quick)
    trainer = pycrfsuite.Trainer(verbose=False, algorithm="lbfgs")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    for sentence in data:
        trainer.append(features(sentence.tokens), sentence.labels)
    indexed = time.perf_counter()
    settings = {"c1": 0.0, "c2": 1.0, "max_iterations": iterations, "delta": 0.0, "period": 10**6, "epsilon": 0.0}
    trainer.set_params(settings)
    trainer.train(os.devnull)
    last = trainer.logparser.last_iteration
    return _facts(before, begun, indexed, last["loss"], last["num"])


def _facts(before: int, begun: float, indexed: float, loss: float, iterations: int) -> dict[str, float]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    now = time.perf_counter()
    return {
        "indexing": indexed - begun,
        "training": now - indexed,
        "megabytes": (peak - before) / 1000.0,
        "loss": loss,
        "iterations": iterations,
    }


def tag(quick: bool) -> dict[str, float]:
    """Return tokens per second from documents to labels: Viterbi, and marginals; the window template."""
    from gibbsite.applications.entities import EntityRecognizer, read_columns

    dev = read_columns(DATA / DEV)
    recognizer = EntityRecognizer("window", iterations=10, min_count=2, threads=1).fit(dev[::4])
    tokens = sum(document.n_tokens for document in dev)
    chain, found = recognizer.chain, {}
    assert chain is not None
    for name, ask in (("viterbi", chain.best), ("marginals", chain.marginals)):
        seconds = []
        for _ in range(2 if quick else 7):
            begun = time.process_time()
            ask(recognizer.features(dev))
            seconds.append(time.process_time() - begun)
        found[name] = tokens / min(seconds)
    return found


def _child(*words: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.entities", *words],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure(*, quick: bool = False) -> Iterator[Section]:
    """Race training and time tagging; nothing without the data."""
    if not (DATA / TRAIN).exists():
        return
    size, steps = ("quick", "20") if quick else ("full", "60")
    seen = {"one thread": _child("ours", size, "1", steps), "two threads": _child("ours", size, "2", steps)}
    targets, rows = [], []
    try:
        theirs = _child("crfsuite", size, "1", steps)
    except subprocess.CalledProcessError:  # not installed
        theirs = None
    if theirs is not None:
        seen["crfsuite"] = theirs
        whole = {name: one["indexing"] + one["training"] for name, one in seen.items()}
        for name, bound in (("one thread", 1.0), ("two threads", 1.6)):
            ratio = theirs["training"] / seen[name]["training"]
            targets.append(Target(f"training on {name}", ratio, bound, True, "crfsuite"))
        targets.append(
            Target("with indexing, one thread", whole["crfsuite"] / whole["one thread"], 1.0, True, "crfsuite")
        )
        memory = seen["two threads"]["megabytes"] / max(theirs["megabytes"], 1.0)
        targets.append(Target("memory, two threads", memory, 1.5, False, "crfsuite"))
    rates = _child("tag", size, "1", steps)
    targets.append(Target("tagging by Viterbi", rates["viterbi"] / 1e3, 100.0, True, "thousand tokens/s"))
    targets.append(Target("marginals", rates["marginals"] / 1e3, 50.0, True, "thousand tokens/s"))
    for name, one in seen.items():
        rows.append([name, *(f"{one[key]:.1f}" for key in ("indexing", "training", "megabytes", "loss", "iterations"))])
    head = ["training", "indexing s", "training s", "MB", "loss", "iterations"]
    yield Section("entities", targets, head, rows, {**seen, "tagging": rates})


if __name__ == "__main__":
    name, size, threads, steps = sys.argv[1:]
    sys.path.insert(0, str(Path(__file__).parent.parent))
    if name == "ours":
        print(json.dumps(train_ours(size == "quick", int(threads), int(steps))))
    elif name == "crfsuite":
        print(json.dumps(train_crfsuite(size == "quick", int(steps))))
    else:
        print(json.dumps(tag(size == "quick")))
