"""Events are read as they are written, and decided by sites that follow them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.errors import ArgumentError, GibbsiteError
from gibbsite.inference.questions.events import add_event, read_event, truth_table
from tests.inference.questions.networks import random_network

MODEL = gs.FactorGraph({"a": 2, "b": [1, 5, 10], "c d": ["x y", "=z"], "e": ["no", "yes"]})
#: A text, and the same as a function of the labels.
TEXTS = {
    "a = 1": lambda a, b, c, e: a == 1,
    "a != 1 or b >= 5": lambda a, b, c, e: a != 1 or b >= 5,
    "not (a=1 and b<10) and e=yes": lambda a, b, c, e: not (a == 1 and b < 10) and e == "yes",
    "!(e = yes) | b > 1 & a == 0": lambda a, b, c, e: e != "yes" or (b > 1 and a == 0),
    "b in {1, 10} AND \"c d\" = 'x y'": lambda a, b, c, e: b in (1, 10) and c == "x y",
    "'c d' = \"=z\" or a <= 0 or e in {no}": lambda a, b, c, e: c == "=z" or a <= 0 or e == "no",
    "a = 1 and a = 0": lambda a, b, c, e: False,
    "(a = 1 or a = 0) and e != no": lambda a, b, c, e: e != "no",
    "not not e = no": lambda a, b, c, e: e == "no",
}


@pytest.mark.parametrize("text", TEXTS)
def test_an_event_means_what_it_says(text: str) -> None:
    event = read_event(MODEL, text)
    table = truth_table(MODEL, event)
    labels = [MODEL.labels(site) for site in MODEL.sites]
    for codes in itertools.product(*(range(len(each)) for each in labels)):
        wanted = TEXTS[text](*(each[code] for each, code in zip(labels, codes, strict=True)))
        assert bool(table[tuple(codes[site] for site in event.sites)]) == wanted, codes


@pytest.mark.parametrize("text", TEXTS)
def test_added_sites_decide_the_event(text: str) -> None:
    event = read_event(MODEL, text)
    if isinstance(event.tree, bool):
        return
    wider, name, yes = add_event(MODEL, event)
    p = np.array(list(gs.exact.enumerate(wider).marginals[name].values()))[yes].sum()
    assert p == pytest.approx(truth_table(MODEL, event).mean(), abs=1e-12)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected the name of a site"),
        ("a", "expected a comparison such as a = STATE"),
        ("a =", "expected a state of 'a' at the end"),
        ("a = 1 and", "expected the name of a site at the end"),
        ("(a = 1", "a parenthesis is not closed"),
        ("a = 1)", "before ')'"),
        ("a = 1 b = 5", "before 'b'"),
        ("b in 1", "expected states in braces"),
        ("b in {1", "a brace is not closed"),
        ("e < yes", "compares numbers"),
        ("e < 3", "compares numbers"),
        ("'a = 1", "quotation mark"),
        ("z = 1", "z"),
        ("e = maybe", "maybe"),
        ("= 1", "expected the name of a site instead of '='"),
    ],
)
def test_wrong_texts_are_refused_with_the_place(text: str, said: str) -> None:
    with pytest.raises(GibbsiteError) as caught:
        read_event(MODEL, text)
    assert said in str(caught.value)


def test_evidence_decides_parts_of_an_event() -> None:
    seen = MODEL.observe({"a": 1})
    assert read_event(seen, "a = 1").tree is True
    assert read_event(seen, "a = 0 and e = yes").tree is False
    assert read_event(seen, "a = 1 and e = yes").sites == [seen.index("e")]
    with pytest.raises(ArgumentError, match="state of the site 'a'"):
        read_event(seen, "a = 2")


def test_a_long_event_is_decided_without_a_table_of_all_sites() -> None:
    chain = gs.ising_grid((60,), coupling=0.5)
    text = " and ".join(f"{k} = 1" for k in range(60))
    found = gs.questions.ask(chain, [text]).probability(0)
    # all spins up: e^(59 J) / (2 (2 cosh J)^59)
    assert found == pytest.approx(0.5 * (np.exp(0.5) / (2 * np.cosh(0.5))) ** 59, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_probabilities_equal_those_of_enumeration(seed: int) -> None:
    model = random_network(seed)
    law = gs.exact.enumerate(model).law
    text = "v0 = s0 and (v1 = s1 or not v2 = s0) or v5 = s1 and v3 != s0"
    v = np.meshgrid(*(np.arange(card) for card in law.shape), indexing="ij")
    holds = (v[0] == 0) & ((v[1] == 1) | (v[2] != 0)) | (v[5] == 1) & (v[3] != 0)
    assert gs.questions.ask(model, [text]).probability(0) == pytest.approx(law[holds].sum(), abs=1e-9)
