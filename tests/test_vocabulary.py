"""Documents, docstrings, comments, messages and names of tests use the terms of the field, not private ones."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: What is refused, and what to write instead.
REFUSED = {
    r"so (?:many|few)\b(?![^.;:]* that\b)": "a number of, at most n, only n",
    r"nobody": "none, no other host, unassigned",
    r"told": "reported, shown, given, distinguished",
    r"(?:is|are|was|were|be|been) said": "is reported, is stated",
    r"what there is": "partial results",
    r"of yours": "your, user-written",
    r"in no time": "cheap",
    r"as (?:often as )?one likes": "any number of times",
    r"stands? (?:a|up to)": "passes",
    r"second look": "dispersed-start check",
    r"crews?": "executor",
    r"shel(?:f|ves)": "packed tuples",
    r"desks?": "workspace",
    r"stretch(?:es)?": "slice, range",
    r"gone through": "enumerated, visited",
    r"in any company": "for any number of chains",
    r"the manners of": "in the style of",
    r"been about": "enough energy round trips were made",
    r"rooms?(?! (?:for|to|left))": "package, space",
}
_PATTERN = re.compile("|".join(rf"\b(?:{refused})\b" for refused in REFUSED))
_CODE = re.compile(r"`[^`]*`|^\s*(?:>>>|\.\.\. ).*$", re.M)
# Documents in which the tape, the record of a chain, is introduced.
_TAPES = {"docs/design.md"}
PACKAGES = sorted(path.name for path in (ROOT / "src/gibbsite").iterdir() if path.is_dir() and path.name[0] != ".")
AREAS = ["documents", "benchmarks", "examples", "tests", *(f"src/gibbsite/{name}" for name in PACKAGES)]


def files(area: str) -> list[Path]:
    if area == "documents":
        return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")])
    return sorted(path for path in (ROOT / area).rglob("*.py") if path.name != Path(__file__).name)


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a file with their lines: its text, or docstrings, comments and messages."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from enumerate(re.sub(r"^```.*?^```", _blank, text, flags=re.M | re.S).split("\n"), 1)
        return
    comment: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comment.append(token.string.lstrip("#: "))
        elif token.type not in (tokenize.NL, tokenize.NEWLINE) and comment:
            yield token.start[0] - 1, " ".join(comment)
            comment = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.lineno, node.name.replace("_", " ")


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def refused(path: Path) -> list[str]:
    """Return the places of a file with words of a private vocabulary."""
    found = []
    for number, sentence in prose(path):
        plain = " ".join(_CODE.sub("", sentence).split())
        found += [f"{path.relative_to(ROOT)}:{number}: {one[0]}" for one in _PATTERN.finditer(plain)]
    return found


@pytest.mark.parametrize("area", AREAS)
def test_prose_uses_the_terms_of_the_field(area: str) -> None:
    found = [place for path in files(area) for place in refused(path)]
    assert not found, "\n".join(found)


def test_documents_name_tapes_only_where_they_are_introduced() -> None:
    pages = {str(path.relative_to(ROOT)) for path in files("documents") if path.parent.name != "benchmarks"}
    assert {page for page in pages if re.search(r"\btapes?\b", (ROOT / page).read_text(encoding="utf-8"))} <= _TAPES


@pytest.mark.parametrize(
    "sentence", ["It stands a second look.", "Return so many bytes.", "Users are told.", "in no time"]
)
def test_private_terms_are_found(sentence: str) -> None:
    assert _PATTERN.search(sentence)


@pytest.mark.parametrize("sentence", ["so many that none fits", "room for its draws", "retold", "a list of your sites"])
def test_plain_english_is_left_alone(sentence: str) -> None:
    assert not _PATTERN.search(sentence)
