"""Named entities: files, tokens, features, links and decoding, on small corpora."""

from __future__ import annotations

import gzip
import html
import re
from pathlib import Path

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._common.archive import pack_archive
from gibbsite.applications.entities import (
    Document,
    EntityRecognizer,
    Sentence,
    read_columns,
    read_text,
    render,
    score_labels,
)
from gibbsite.applications.entities.decoding import Skip, visit
from gibbsite.applications.entities.extraction import Extractor
from gibbsite.applications.entities.links import find_links, link_model
from gibbsite.applications.entities.lists import WordLists
from gibbsite.applications.entities.template import parse_template
from gibbsite.learn.crf.decoding import block_kernel, kernel_of
from gibbsite.learn.crf.labels import find_spans

PEOPLE, PLACES = ("Anna", "Bert", "Carla", "Dora"), ("Rome", "Paris", "Oslo", "Lima")


def corpus(documents: int = 12, seed: int = 1) -> list[Document]:
    rng = np.random.default_rng(seed)
    found = []
    for d in range(documents):
        who, where = rng.choice(PEOPLE), rng.choice(PLACES)
        rows = [
            ([who, "Smith", "went", "to", where, "."], ["B-PER", "I-PER", "O", "O", "B-LOC", "O"]),
            (["In", where, "it", "rained", "."], ["O", "B-LOC", "O", "O", "O"]),
            (["Then", "Smith", "left", "."], ["O", "B-PER", "O", "O"]),
        ]
        found.append(Document(f"d{d}", [Sentence(list(a), list(b)) for a, b in rows]))
    return found


@pytest.fixture(scope="module")
def linked() -> EntityRecognizer:
    return EntityRecognizer("window", l2=0.1, links=True, threads=1, iterations=30).fit(corpus())


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_offsets_prove_that_no_text_is_lost() -> None:
    text = "Dr. Who's  TARDIS\tlanded\n\nin “New-York”, U.S.A. — 3.5 km away!!! \U0001f600 n't\u00a0x\n"
    document = read_text(text)
    at, out = 0, ""
    for sentence in document.sentences:
        assert sentence.offsets is not None
        for token, (start, end) in zip(sentence.tokens, sentence.offsets, strict=True):
            assert text[start:end] == token
            assert text[at:start].strip() == ""
            out += text[at:end]
            at = end
    assert out + text[at:] == text


def test_files_of_both_formats_are_read(tmp_path: Path) -> None:
    tabs = write(tmp_path / "a.tsv", "-DOCSTART-\tone\n\nAnna B\tB-PER\tx\nsaw\tO\ty\n\nRome\tB-LOC\tz\n")
    (one,) = read_columns(tabs)
    assert (one.name, one.sentences[0].tokens, one.sentences[1].labels) == ("one", ["Anna B", "saw"], ["B-LOC"])
    conll = write(tmp_path / "b.txt", "-DOCSTART- -X- -X- O\n\nU.N. NNP I-NP I-ORG\nsays VBZ I-VP O\n")
    for scheme in ("iob1", "io"):
        assert read_columns(conll, scheme=scheme)[0].sentences[0].labels == ["B-ORG", "O"]
    with pytest.raises(gs.errors.FormatError, match=r"b\.txt:3: 'I-ORG' follows 'O'.*name the scheme"):
        read_columns(conll)
    packed = tmp_path / "c.tsv.gz"
    packed.write_bytes(gzip.compress(b"Rome\tS-LOC\nis\tO\n"))
    assert read_columns(packed)[0].sentences[0].labels == ["B-LOC", "O"]
    assert read_columns(tabs, classes={"PER": "person", "LOC": ""})[0].sentences[0].labels == ["B-person", "O"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\tO\nb\n", ":2: 'b' has no label"),
        ("a\tO\nb\tO\tx\n", ":2: 3 columns, but earlier lines have 2"),
        ("a\tO\nb\tI-PER\nc\tB-LOC\n", ":2: 'I-PER' follows 'O'"),
        ("a\tB-X\n\nc\tPERSON\n", ":3: the label 'PERSON' is neither"),
        ("a\tB-X\nb\tS-Y\n", ":2: 'S-Y' follows 'B-X', whose span has not ended"),
        ("\n\n", "the file is empty"),
        ("-DOCSTART-\tx\n\n", "the file has no sentence"),
        ("x" * 2000 + "\tO\n", ":1: a token of 2,000 characters"),
    ],
)
def test_bad_files_are_refused_with_their_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(gs.errors.FormatError) as caught:
        read_columns(write(tmp_path / "bad.tsv", text), labelled=True)
    assert said in str(caught.value)


def test_a_few_faults_of_a_large_file_are_a_warning(tmp_path: Path) -> None:
    text = "a\tO\nb\tB-X\n\n" * 1500 + "a\tO\nb\tI-X\n"
    with pytest.warns(UserWarning, match=r"big\.tsv:4502: 'I-X' follows 'O'.*1 of 1,501 sentences"):
        documents = read_columns(write(tmp_path / "big.tsv", text))
    assert documents[0].sentences[-1].labels == ["O", "B-X"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("word", "template:1: 'word' is not an attribute with a place"),
        ("word[0]\nlowr[1]", "template:2: .*lower"),
        ("word[2..1]", "places go from low to high"),
        ("lower[0..1] & word[0]", "must have a single place"),
        ("# nothing", "has no line"),
    ],
)
def test_bad_templates_are_refused(text: str, said: str) -> None:
    with pytest.raises(gs.errors.FormatError, match=said):
        parse_template(text)


def test_features_are_those_of_the_template() -> None:
    document = Document("x", [Sentence(["New", "York", "won"]), Sentence(["York"])])
    functions = {"long": lambda tokens, t: len(tokens[t]) > 3}
    template = "word[0]\nlower[-1..1]\nword[0]&kind[1]\nlong[0]\ngazetteer[0]\ncluster[0]"
    lists = WordLists({"new york": {"city"}}, {}, {"won": "7"})
    extractor = Extractor(template, lists, functions=functions)
    data = extractor.read([document], grow=True)
    names = extractor.names
    rows = [{names[k] for k in data.feature[a:b]} for a, b in zip(data.first[:-1], data.first[1:], strict=True)]
    assert rows[0] == {
        "word[0]=New",
        "lower[-1]=<s>",
        "lower[0]=new",
        "lower[1]=york",
        "word[0]&kind[1]=New|title",
        "gazetteer[0]=city first",
    }
    assert rows[2] == {
        "word[0]=won",
        "lower[-1]=york",
        "lower[0]=won",
        "lower[1]=</s>",
        "word[0]&kind[1]=won|</s>",
        "cluster[0]=7",
    }
    assert "long[0]=yes" in rows[3]
    # another text: known features have their numbers, others are left out
    again = extractor.read([Document("y", [Sentence(["Old", "York"])])])
    assert [names[k] for k in again.feature[again.first[1] : again.first[2]]][:1] == ["word[0]=York"]
    assert (Extractor(template, lists, names, functions).read([document]).feature == data.feature).all()


def test_the_lexicon_does_not_tell_a_document_its_own_labels() -> None:
    lists = WordLists()
    lists.learn_lexicon(corpus(2)[:1])
    assert list(lists.lexicon_of(["Smith"], 0)) == [()]
    assert list(lists.lexicon_of(["Smith"], None)) == [("PER all of 1",)]


def test_links_join_equal_names_of_a_document() -> None:
    documents = corpus(2)
    pairs = find_links(documents)
    words = [word for d in documents for s in d.sentences for word in s.tokens]
    assert len(pairs)
    assert all(words[a] == words[b] and a < b for a, b in pairs.tolist())
    half = documents[0].n_tokens
    assert all((a < half) == (b < half) for a, b in pairs.tolist())


def test_marginals_by_blocks_are_those_of_the_junction_tree(linked: EntityRecognizer) -> None:
    documents = corpus(1, seed=7)
    data, chain = linked.features(documents), linked.chain
    assert chain is not None
    pairs = find_links(documents)
    assert len(pairs) == 2
    # weights strong enough to matter
    model = link_model(chain, data, pairs, np.array([0.5, 1.5, -1.0]))
    exact = gs.solve_exact(model)
    result = gs.sample(model, block_kernel(data), sweeps=20_000, warmup=100, chains=2, rng=3, progress=False)
    far = 0.0
    for site in model.sites:
        for label, p in exact.marginals[site].items():
            error = max(result.mcse[site][label], 1e-5)
            far = max(far, abs(result.marginals[site][label] - p) / error)
    # 15 sites with 5 labels; six standard errors: false alarms of 75 x 2e-9
    assert far < 6.0
    free = gs.solve_exact(link_model(chain, data, pairs[:0], np.zeros(3)))
    moved = max(abs(exact.marginals[s][x] - free.marginals[s][x]) for s in model.sites for x in exact.marginals[s])
    assert moved > 0.001


@pytest.mark.parametrize("method", ["gibbs", "herded", "blocks", "plain"])
def test_the_best_visited_state_is_scored_rightly(linked: EntityRecognizer, method: str) -> None:
    documents = corpus(3, seed=9)
    data, chain = linked.features(documents), linked.chain
    assert chain is not None
    skip = Skip(find_links(documents), np.array([0.1, 0.2, 0.3]))
    visited = visit(chain, data, skip, kernel_of(method, 60, data), 60, 1)
    codes, score = visited.best(data)
    model = link_model(chain, data, skip.pairs, skip.weights)
    assert score == pytest.approx(model.log_potential(codes.astype(int)), abs=1e-9)
    assert score >= model.log_potential(visited.states[-1].astype(int)) - 1e-9
    without = visit(chain, data, None, kernel_of(method, 60, data), 60, 1)
    best, viterbi = without.best(data)[1], float(chain.best(data)[1].sum())
    assert best <= viterbi + 1e-9
    assert best == pytest.approx(viterbi, abs=1e-6)  # these sentences are easy


@pytest.mark.parametrize("method", ["viterbi", "posterior", "gibbs", "herded", "blocks"])
def test_every_method_finds_easy_names(linked: EntityRecognizer, method: str) -> None:
    tagged = linked.tag("Anna Smith went to Rome. In Rome it rained.", method=method, sweeps=60)
    assert [(tagged.text[e.start : e.end], e.label) for e in tagged.entities] == [
        ("Anna Smith", "PER"),
        ("Rome", "LOC"),
        ("Rome", "LOC"),
    ]
    for entity in tagged.entities:
        assert entity.probability is not None
        assert 0.0 <= entity.probability <= 1.0
    assert linked.tag("", method=method).entities == []


def test_models_survive_their_file(linked: EntityRecognizer, tmp_path: Path) -> None:
    linked.save(tmp_path / "a.ner")
    again = EntityRecognizer.load(tmp_path / "a.ner")
    text = "Bert Smith went to Oslo. Then Bert left."
    for method in ("viterbi", "blocks"):
        one, two = (each.tag(text, method=method, sweeps=30) for each in (linked, again))
        assert [e.label for e in one.entities] == [e.label for e in two.entities]
    again.save(tmp_path / "b.ner")
    third = EntityRecognizer.load(tmp_path / "b.ner")
    assert third.chain is not None
    assert again.chain is not None
    assert (third.chain.x == again.chain.x).all()
    data = (tmp_path / "a.ner").read_bytes()
    for wrong, said in (
        (b"hello", "not a model of gibbsite ner"),
        (pack_archive({"kind": "gibbsite ner", "format": 9}, {}), "version 9"),
        (pack_archive({"kind": "gibbsite segment", "format": 1}, {}), "not a model of gibbsite ner"),
        (data[:-5] + b"xxxxx", "damaged"),
        (data[:2000], "damaged"),
    ):
        (tmp_path / "wrong.ner").write_bytes(wrong)
        with pytest.raises(gs.errors.FormatError, match=said):
            EntityRecognizer.load(tmp_path / "wrong.ner")


def test_functions_of_users_must_be_given_again(tmp_path: Path) -> None:
    functions = {"short": lambda tokens, t: ["yes"] if len(tokens[t]) < 4 else None}
    template = write(tmp_path / "t.txt", "word[0]\nshort[-1..1]\n")
    recognizer = EntityRecognizer(template, functions=functions, threads=1, iterations=5).fit(corpus(3))
    recognizer.save(tmp_path / "f.ner")
    with pytest.raises(gs.errors.ArgumentError, match="function 'short'"):
        EntityRecognizer.load(tmp_path / "f.ner")
    assert EntityRecognizer.load(tmp_path / "f.ner", functions).classes == ["LOC", "PER"]


def test_nothing_to_learn_is_refused() -> None:
    with pytest.raises(gs.errors.ModelError, match="nothing to learn"):
        EntityRecognizer("window").fit([])
    with pytest.raises(gs.errors.ModelError, match="has no labels"):
        EntityRecognizer("window").fit([read_text("Anna.", "x")])


def test_every_format_shows_the_entities_and_all_of_the_text(linked: EntityRecognizer) -> None:
    text = "Anna Smith <b>went</b> & to Rome.\n"
    tagged = [linked.tag(text, "a<b", method="viterbi")]
    inline = render(tagged, "inline")
    assert "[PER Anna Smith]" in inline
    assert inline.replace("[PER ", "").replace("[LOC ", "").replace("]", "") == text
    page = render(tagged, "html")
    body = re.sub(r"<small>.*?</small>", "", page.split('<div class="text">')[1].split("</div>")[0])
    assert html.unescape(re.sub(r"<[^>]*>", "", body)) == text
    assert "a&lt;b" in page
    assert "%" in page
    labels = [line.split("\t")[1] for line in render(tagged, "tsv").splitlines() if line.count("\t") == 1][1:]
    assert [span.label for span in find_spans(labels)] == [e.label for e in tagged[0].entities]


def test_scores_are_those_of_the_definition() -> None:
    true = [[["B-X", "I-X", "O", "B-Y"]], [["B-X", "O"]]]
    found = [[["B-X", "O", "O", "B-Y"]], [["B-X", "B-Y"]]]
    score = score_labels(true, found, repeats=200)
    assert (score.total.true, score.total.found, score.total.right) == (3, 4, 2)
    assert (score.total.precision, score.total.recall) == (0.5, 2 / 3)
    assert score.total.f1 == pytest.approx(4 / 7)
    assert score.confusion == {("X", "-"): 1, ("-", "X"): 1, ("Y", "Y"): 1, ("X", "X"): 1, ("-", "Y"): 1}
    low, high = score.total.intervals["f1"]
    assert low <= score.total.f1 <= high
    assert score.to_dict()["classes"]["X"]["recall"] == 0.5


def test_iob1_takes_labels_that_begin_entities_and_says_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("Anna\tI-PER\nSmith\tI-PER\nBob\tB-PER\nin\tO\nRome\tB-LOC\n")
    (document,) = read_columns(path, scheme="iob1")
    assert document.sentences[0].labels == ["B-PER", "I-PER", "B-PER", "O", "B-LOC"]
    path.write_text("Anna\tI-PER\nSmith\tE-PER\n")
    with pytest.raises(gs.errors.FormatError, match="not a label of the scheme iob1"):
        read_columns(path, scheme="iob1")
