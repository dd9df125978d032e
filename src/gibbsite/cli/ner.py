"""``gibbsite ner``: learn to recognise named entities, mark them in text, and score the result."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import click

from gibbsite._common.wording import nearest
from gibbsite.applications.methods import ENTITIES, ENTITY_FORMATS
from gibbsite.cli import parameters
from gibbsite.cli.help import Command
from gibbsite.cli.outputs import deliver, echo, note_on_compiling, tell, warnings_on_stderr

if TYPE_CHECKING:
    from gibbsite.applications.entities import Document, EntityRecognizer

_EXACT = ("viterbi", "posterior")
SHIPPED = "english"


@click.group("ner")
def command() -> None:
    """Find names of persons, places and organisations in text.

    \b
    gibbsite ner tag TEXT                 mark names, with the small English model of the package
    gibbsite ner train FILES -o MODEL     learn another model from labelled text
    gibbsite ner tag MODEL TEXT           mark names with that model
    gibbsite ner score MODEL FILES        compare it with labelled text
    """  # noqa: D301 (a backspace, by which click keeps lines)


map_option = click.option(
    "--map",
    "renamed",
    multiple=True,
    metavar="OLD=NEW",
    help="Rename a class of the files; an empty NEW drops it. May be repeated.",
)
scheme_option = click.option(
    "--labels",
    "file_scheme",
    type=parameters.Choice(["bio", "bioes", "iob1", "io"]),
    help="Labelling scheme of the files. [default: bio, or bioes if labels begin with E- or S-]",
)


method_option = click.option(
    "--method", type=parameters.Choice(ENTITIES), help="[default: viterbi; blocks if the model has links]"
)
sweeps_option = click.option(
    "--sweeps", type=parameters.COUNT, default=400, show_default=True, help="Number of sweeps of sampling."
)


@command.command(
    "train",
    cls=Command,
    short_help="Learn a model from labelled text.",
    examples=(
        "gibbsite ner train train.tsv -o model.ner",
        "gibbsite ner train news/*.conll -o model.ner --calibrate --map MISC=",
    ),
    common={
        "Model": ("out", "template", "order", "links", "calibrate"),
        "Labels of the files": ("file_scheme", "renamed"),
        "Training": ("l1", "l2", "iterations", "threads", "quiet"),
    },
    rare={
        "Features": ("min_count", "clusters", "gazetteer", "cluster_file"),
        "More of the model": ("scheme", "compact"),
    },
)
@click.argument("files", nargs=-1, required=True, type=parameters.INPUT)
@click.option("-o", "--output", "out", type=parameters.OUTPUT, required=True, help="File for the model.")
@click.option(
    "--template",
    default="document",
    show_default=True,
    metavar="NAME|FILE",
    help='Template of the features: "document", "window", or a file.',
)
@click.option("--scheme", type=parameters.Choice(["bio", "bioes", "io"]), default="bio", show_default=True)
@click.option(
    "--order", type=parameters.Integer(1, 2), default=1, show_default=True, help="Order of the Markov chain of labels."
)
@click.option(
    "--l1",
    type=parameters.NOT_NEGATIVE,
    default=0.0,
    show_default=True,
    help="Penalty on absolute weights, which makes models small.",
)
@click.option("--l2", type=parameters.NOT_NEGATIVE, default=0.5, show_default=True, help="Penalty on squared weights.")
@click.option("--min-count", type=parameters.COUNT, default=1, show_default=True, help="Drop features that are rarer.")
@click.option("--links", is_flag=True, help="Also learn links between equal names of a document (skip-chain).")
@click.option("--calibrate", is_flag=True, help="Calibrate probabilities on held-out documents.")
@click.option(
    "--clusters", type=parameters.Integer(0), default=0, show_default=True, help="Number of word clusters to learn."
)
@click.option("--gazetteer", multiple=True, type=parameters.INPUT, help="File of LIST<tab>PHRASE lines.")
@click.option("--cluster-file", multiple=True, type=parameters.INPUT, help="File of WORD<tab>CLUSTER lines.")
@map_option
@scheme_option
@click.option("--iterations", type=parameters.COUNT, default=100, show_default=True)
@click.option("--compact", is_flag=True, help="Store weights in 16 bits.")
@click.option("--threads", type=parameters.COUNT, help="[default: all cores]")
@parameters.quiet_option
def train(**given: Any) -> None:
    """Learn a model from FILES with a token, a tab and its label per line, or CoNLL columns; also gzipped.

    Empty lines end sentences, and -DOCSTART- begins a document. Labels are BIO, unless --labels is given.
    """
    from gibbsite.applications.entities import EntityRecognizer
    from gibbsite.applications.entities.columns import read_all, read_classes

    quiet, begun = given["quiet"], time.monotonic()
    if given["files"].count("-") > 1:
        raise click.UsageError("FILES can name stdin only once.")
    with warnings_on_stderr():
        classes = read_classes(given["renamed"])
        documents = read_all(given["files"], labelled=True, classes=classes, scheme=given["file_scheme"])
    names = ("scheme", "order", "l1", "l2", "min_count", "links", "calibrate", "clusters", "iterations", "threads")
    recognizer = EntityRecognizer(
        given["template"],
        gazetteers=given["gazetteer"],
        cluster_files=given["cluster_file"],
        **{name: given[name] for name in names},
    )

    def watch(what: str, step: int, value: float) -> bool:
        if step % 10 == 0 or step == 1:
            tell(f"{what}, step {step}: {value:.1f}, {time.monotonic() - begun:.0f} s", quiet)
        return False

    with note_on_compiling(quiet), warnings_on_stderr():
        recognizer.fit(documents, watch)
    deliver(given["out"], lambda out: recognizer.save(out, compact=given["compact"]))
    sentences = sum(len(document.sentences) for document in documents)
    tokens = sum(document.n_tokens for document in documents)
    assert recognizer.chain is not None
    tell(
        f"{', '.join(recognizer.classes)} from {sentences:,} sentences, {tokens:,} tokens; "
        f"{recognizer.chain.weights.size:,} weights of {recognizer.chain.n_features:,} features, "
        f"{time.monotonic() - begun:.0f} s",
        quiet,
    )


def _load(model: str) -> EntityRecognizer:
    from gibbsite.applications.entities import EntityRecognizer

    if model == SHIPPED and not os.path.exists(model):
        return EntityRecognizer.shipped()
    return EntityRecognizer.load(model)


def _read_plain(path: str, encoding: str | None) -> Document:
    """Read a text file; refuse one with another encoding."""
    from gibbsite.applications.entities import read_text
    from gibbsite.errors import FormatError
    from gibbsite.formats.parsing.text import load

    source = load(path, text=False)
    name = "" if path == "-" else os.path.basename(path)
    try:
        text = source.data.decode(encoding or "utf-8")
    except LookupError:
        raise click.UsageError(f"there is no encoding {encoding!r}.") from None
    except UnicodeDecodeError as error:
        line = source.data.count(b"\n", 0, error.start) + 1
        raise FormatError(
            f"this is not {encoding or 'UTF-8'} text; give --encoding, for example latin-1.", source.name, line
        ) from None
    return read_text(text, name)


@command.command(
    "tag",
    cls=Command,
    short_help="Mark names in text.",
    examples=(
        "gibbsite ner tag article.txt",
        "gibbsite ner tag model.ner article.txt --format html -o article.html",
        "gibbsite ner tag < article.txt",
    ),
)
@click.argument("model", required=False)
@click.argument("texts", nargs=-1, type=parameters.INPUT)
@method_option
@click.option("--format", "form", type=parameters.Choice(ENTITY_FORMATS), default="inline", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.option("-o", "--output", "out", type=parameters.OUTPUT, default="-", help="File to write. [default: stdout]")
@sweeps_option
@click.option("--columns", is_flag=True, help="TEXTS have one token per line; labels are ignored.")
@click.option("--encoding", help="Encoding of TEXTS. [default: utf-8]")
@parameters.rng_option
@parameters.quiet_option
def tag(**given: Any) -> None:
    """Mark the entities of TEXTS (files, also gzipped; stdin if there are none or "-") with MODEL.

    MODEL is a file written by gibbsite ner train, or "english", the small model of the package. It may be left
    out: if the first argument is not a model, "english" is used.
    """
    from gibbsite.applications.entities import read_columns, render

    if given["method"] in _EXACT:
        parameters.refuse(["sweeps", "rng"], f"with --method {given['method']}")
    if given["as_json"]:
        if parameters.is_given("form") and given["form"] != "json":
            raise click.UsageError(f"--json and --format {given['form']} contradict each other; give one.")
        given["form"] = "json"
    model, texts = _find_model(given["model"], given["texts"])
    recognizer = _load(model)
    if given["columns"]:
        parameters.refuse(["encoding"], "with --columns, which are UTF-8")
        documents = [document for path in texts for document in read_columns(path, labelled=False)]
    else:
        documents = [_read_plain(path, given["encoding"]) for path in texts]
    needed = given["form"] in ("json", "html")
    with note_on_compiling(given["quiet"]):
        tagged = recognizer.tag_documents(
            documents, method=given["method"], sweeps=given["sweeps"], rng=given["rng"], probabilities=needed
        )
    from gibbsite.formats.parsing.text import save

    deliver(given["out"], lambda out: save(out, render(tagged, given["form"])), text=True)


def _find_model(model: str | None, texts: tuple[str, ...]) -> tuple[str, list[str]]:
    """Separate the model from the texts; without a model, the one of the package is used."""
    if model is None:
        return SHIPPED, ["-"]
    if model == SHIPPED or texts:
        return model, list(texts) or ["-"]
    if model == "-":
        return SHIPPED, ["-"]
    from gibbsite.applications.storage import MAGIC

    try:
        with open(model, "rb") as file:
            is_model = file.read(len(MAGIC)) == MAGIC
    except OSError:
        is_model = model.endswith(".ner")  # the error about the missing file comes when it is read
    return (model, ["-"]) if is_model else (SHIPPED, [model])


def _report_unknown_classes(known: list[str], documents: list[Document]) -> None:
    """Tell the user which classes of the files are unknown to the model, and suggest how to rename them."""
    labels = {label for document in documents for one in document.sentences for label in one.labels or ()}
    strange = sorted({label[2:] for label in labels if label != "O"} - {*known})
    if not strange:
        return
    free = [name for name in known if f"B-{name}" not in labels]
    near = {name: _like(name, free) for name in strange}
    options = " ".join(f"--map {name}={near[name] or 'NAME'}" for name in strange)
    tell(
        f"the files have the classes {', '.join(strange)}, which the model does not know: it has "
        f"{', '.join(known)}; if some of them are the same by another name, rename them: {options}"
    )


def _like(name: str, known: list[str]) -> str | None:
    """Return a known class that abbreviates a class, is abbreviated by it, or is spelled similarly."""
    for one in known:
        short, long = sorted((name.lower(), one.lower()), key=len)
        if long.startswith(short):
            return one
    return nearest(name, known)


@command.command(
    "score",
    cls=Command,
    short_help="Compare a model with labelled text.",
    examples=("gibbsite ner score model.ner test.tsv", "gibbsite ner score english test.conll --map MISC="),
)
@click.argument("model")
@click.argument("files", nargs=-1, required=True, type=parameters.INPUT)
@method_option
@sweeps_option
@map_option
@scheme_option
@parameters.rng_option
@parameters.json_option
@parameters.quiet_option
def score(**given: Any) -> None:
    """Compare the entities that MODEL finds in labelled FILES with their labels.

    An entity is correct if its position and its class are, as in CoNLL. The 95 % intervals are bootstrapped
    over documents, or over sentences if there are fewer than 20 documents. The calibration error compares the
    probabilities of entities with the share of them that is correct.
    """
    from gibbsite.applications.entities import score_labels
    from gibbsite.applications.entities.calibration import calibration_error, compare
    from gibbsite.applications.entities.columns import read_all, read_classes
    from gibbsite.formats.parsing.plain_json import write_json

    recognizer = _load(given["model"])
    with warnings_on_stderr():
        classes = read_classes(given["renamed"])
        documents = read_all(given["files"], labelled=True, classes=classes, scheme=given["file_scheme"])
    if not given["quiet"]:
        _report_unknown_classes(recognizer.classes, documents)
    begun = time.monotonic()
    with note_on_compiling(given["quiet"]):
        tagged = recognizer.tag_documents(documents, method=given["method"], sweeps=given["sweeps"], rng=given["rng"])
    seconds = time.monotonic() - begun
    true = [[sentence.labels or [] for sentence in document.sentences] for document in documents]
    found = [one.labels for one in tagged]
    if len(true) < 20:  # too few documents to draw from
        true, found = [[row] for rows in true for row in rows], [[row] for rows in found for row in rows]
    answer = score_labels(true, found, rng=given["rng"])
    stated, right = compare(documents, tagged)
    error, bins = calibration_error(stated, right) if stated.size else (None, [])
    if given["as_json"]:
        facts = {**answer.to_dict(), "calibration_error": error, "calibration": bins, "seconds": seconds}
        echo(write_json(facts))
        return
    echo(answer.text())
    if error is not None:
        echo(f"\ncalibration error of the probabilities of entities: {error:.4f}")
