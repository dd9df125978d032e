"""Documents, sentences and tokens, and a tokenizer that keeps the position of every token."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from gibbsite._common.arguments import checked
from gibbsite.applications.entities.abbreviations import PATTERN, goes_on, join_initials

# words and numbers with inner punctuation (U.S., O'Neill, al-Qaeda, 1,000), web addresses, runs of one character
_CLITIC = "(?:s|re|ve|ll|d|m|S)"
_WORD = r"[^\W_]+(?:[-'’&][^\W_]+)*"
_TOKEN = re.compile(
    "|".join(
        (
            r"(?:https?://|www\.)\S+",
            r"[@#]\w+",
            PATTERN,
            rf"n't|['’]{_CLITIC}\b",
            r"\d+(?:[.,:/]\d+)+[^\W\d_]*",
            r"\d+(?![^\W_])",
            rf"{_WORD}?(?=n't\b|['’]{_CLITIC}\b)",
            _WORD,
            r"([^\w\s])\1*",
            r"\S",
        )
    )
)
_ENDS = frozenset([".", "!", "?", "...", "…", "。"])
_CLOSING = frozenset(['"', "'", "''", "”", "’", ")", "]"])
_QUOTES = frozenset(['"', "'", "''"])
_LONGEST = 200  # largest number of tokens of a sentence


@dataclass
class Sentence:
    """Tokens of a sentence, with their labels and positions if known.

    Attributes
    ----------
    tokens : list of str
        Words and punctuation.
    labels : list of str or None
        One for each token.
    offsets : list of (start, end) or None
        Their positions in the text.
    line : int
        Line of the file where the sentence begins; 0 if unknown.
    """

    tokens: list[str]
    labels: list[str] | None = None
    offsets: list[tuple[int, int]] | None = None
    line: int = 0


@dataclass
class Document:
    """A document: its sentences, and its text if known.

    Attributes
    ----------
    name : str
        Its name in the file.
    sentences : list of Sentence
        In their order.
    text : str or None
        The text of the document.
    """

    name: str = ""
    sentences: list[Sentence] = field(default_factory=list)
    text: str | None = None

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return sum(len(sentence.tokens) for sentence in self.sentences)


def tokenize(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each token of a text; only white space is between tokens."""
    return join_initials(text, [found.span() for found in _TOKEN.finditer(text)])


@checked
def read_text(text: str, name: str = "") -> Document:
    """Divide a text into sentences and tokens.

    Parameters
    ----------
    text : str
        Any text; sentences end at full stops before capitals and at empty lines.
    name : str
        Name of the document.

    Returns
    -------
    Document
        With offsets that refer to the text.

    Examples
    --------
    >>> document = read_text("Anna lives in Rome. Bert does not.")
    >>> [sentence.tokens for sentence in document.sentences]
    [['Anna', 'lives', 'in', 'Rome', '.'], ['Bert', 'does', 'not', '.']]
    """
    document = Document(name, [], text)
    spans = tokenize(text)
    words = [text[a:b] for a, b in spans]
    begin = 0
    for k in range(len(spans)):
        last = k + 1 == len(spans)
        if last or k + 1 - begin >= _LONGEST or _is_end(text, spans, words, k, begin):
            document.sentences.append(Sentence(words[begin : k + 1], None, spans[begin : k + 1]))
            begin = k + 1
    return document


def _is_end(text: str, spans: Sequence[tuple[int, int]], words: Sequence[str], k: int, begin: int) -> bool:
    """Tell whether a sentence ends with token k."""
    gap = text[spans[k][1] : spans[k + 1][0]]
    if gap.count("\n") > 1:
        return True
    if not gap or (words[k + 1] in _CLOSING and not _opens(text, spans, k + 1)):
        return False
    at = k
    while at > begin and words[at] in _CLOSING:
        at -= 1
    if words[at].endswith(".") and len(words[at]) > 1 and words[at][0].isalnum():
        return not goes_on(words, k if at == k else at) and not words[k + 1][0].islower()
    return words[at] in _ENDS and not words[k + 1][0].islower()


def _opens(text: str, spans: Sequence[tuple[int, int]], k: int) -> bool:
    """Tell whether token k is a quotation mark before the first word of a quotation: space before it, none after."""
    begin, end = spans[k]
    return text[begin:end] in _QUOTES and begin > spans[k - 1][1] and end < len(text) and not text[end].isspace()
