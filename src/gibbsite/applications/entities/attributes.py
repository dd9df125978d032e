"""Attributes of words (letters, shape, affixes) and of tokens in their document.

Attributes of words depend on the word alone and are computed once for each word. Attributes of documents use all
sentences of a document, but no labels.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import islice

from gibbsite.applications.entities.documents import Document
from gibbsite.errors import ModelError

Values = tuple[str, ...]
_RUN = re.compile(r"(.)\1+")
_SEPARATORS = str.maketrans("", "", ".,-'/&")


def shape(word: str) -> str:
    """Return the shape of a word: the kind of each letter, with runs shortened to two."""
    letters = "".join("X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word[:40])
    return _RUN.sub(r"\1\1", letters)


def kind(word: str) -> str:
    """Return the kind of a word: its shape summarised in one term."""
    plain = word.translate(_SEPARATORS)
    if not plain:
        return "sign"
    if plain.isdigit():
        return "number"
    if not any(c.isalpha() for c in plain):
        return "sign"
    if plain.islower():
        return "lower"
    if plain.isupper():
        return "upper" if len(plain) > 1 else "letter"
    if plain[0].isupper() and plain[1:].islower():
        return "title"
    return "mixed"


def _affixes(word: str, low: int, high: int, end: bool) -> Values:
    small = word.lower()
    lengths = range(low, min(high, len(word)) + 1)
    return tuple((small[-k:] if end else small[:k]) for k in lengths)


#: Attributes of words by name.
WORD: dict[str, Callable[[str], Values]] = {
    "word": lambda word: (word,),
    "lower": lambda word: (word.lower(),),
    "shape": lambda word: (shape(word),),
    "kind": lambda word: (kind(word),),
    "prefix": lambda word: _affixes(word, 1, 5, False),
    "suffix": lambda word: _affixes(word, 1, 5, True),
    "length": lambda word: (str(min(len(word), 12)),),
    "hyphen": lambda word: ("yes",) if "-" in word.strip("-") else (),
    "pieces": lambda word: tuple(p for p in re.split(r"[-/.]", word.lower()) if p) if "-" in word else (),
}


@lru_cache(maxsize=1 << 17)
def is_capitalised(word: str) -> bool:
    """Tell whether a word looks like a name: it has a capital letter and more than one letter."""
    return len(word) > 1 and any(c.isupper() for c in word) and word[0].isalnum()


def _occurrences(document: Document) -> dict[str, list[tuple[int, int]]]:
    found = defaultdict(list)
    for s, sentence in enumerate(document.sentences):
        for t, word in enumerate(sentence.tokens):
            if is_capitalised(word):
                found[word].append((s, t))
    return found


def _neighbours(document: Document) -> list[list[Values]]:
    """Return the words before and after the other occurrences of a capitalised word."""
    answer: list[list[Values]] = [[()] * len(sentence.tokens) for sentence in document.sentences]
    for places in _occurrences(document).values():
        if len(places) < 2:
            continue
        around = []
        for s, t in places:
            words = document.sentences[s].tokens
            before = words[t - 1].lower() if t else "<s>"
            behind = words[t + 1].lower() if t + 1 < len(words) else "</s>"
            around.append((f"<{before}", f">{behind}"))
        every = sorted({value for pair in around for value in pair})
        for k, (s, t) in enumerate(places):
            answer[s][t] = tuple(islice((value for value in every if value not in around[k]), 20))
    return answer


def _runs(document: Document) -> list[list[Values]]:
    """Return the longer runs of capitalised words that contain a capitalised word elsewhere in the document."""
    answer: list[list[Values]] = [[()] * len(sentence.tokens) for sentence in document.sentences]
    runs: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for sentence in document.sentences:
        words, begin = [*sentence.tokens, ""], 0
        for t, word in enumerate(words):
            if is_capitalised(word):
                continue
            if 2 <= t - begin <= 5 and not all(w.isupper() for w in words[begin:t]):
                for k in range(begin, t):
                    place = "first" if k == begin else "last" if k == t - 1 else "middle"
                    runs[words[k]].add((place, " ".join(words[begin:t])))
            begin = t + 1
    for s, sentence in enumerate(document.sentences):
        for t, word in enumerate(sentence.tokens):
            if word in runs:
                values = set()
                for place, run in runs[word]:
                    parts = run.split(" ")
                    values |= {place, f"{place} of {len(parts)}", f"begins {parts[0].lower()}"}
                    values.add(f"ends {parts[-1].lower()}")
                answer[s][t] = tuple(sorted(values)[:12])
    return answer


def _cases(document: Document) -> list[list[Values]]:
    """Return whether a word also occurs in lower case, or always capitalised, in the rest of its document."""
    small: dict[str, int] = defaultdict(int)
    large: dict[str, int] = defaultdict(int)
    for sentence in document.sentences:
        for t, word in enumerate(sentence.tokens):
            if word.islower():
                small[word] += 1
            elif is_capitalised(word) and t:  # the first word of a sentence is always capitalised
                large[word.lower()] += 1
    answer = []
    for sentence in document.sentences:
        row: list[Values] = []
        for t, word in enumerate(sentence.tokens):
            if not is_capitalised(word):
                row.append(())
                continue
            low, up = small[word.lower()], large[word.lower()] - (t > 0)
            place = "begin" if t == 0 else "inside"
            others = f"{'small' if low else 'never small'}, {'capital' if up else 'never capital'}"
            row.append((f"{place} {others}",))
        answer.append(row)
    return answer


def _sentence_kind(document: Document) -> list[list[Values]]:
    """Return whether a sentence is in capitals, or has mostly capitalised words."""
    answer: list[list[Values]] = []
    for sentence in document.sentences:
        words = [word for word in sentence.tokens if any(c.isalpha() for c in word)]
        upper = sum(word.isupper() for word in words)
        title = sum(word[:1].isupper() for word in words)
        said = "title" if title > 0.7 * len(words) else "plain"
        if words and upper > 0.7 * len(words):
            said = "upper"
        answer.append([(said,)] * len(sentence.tokens))
    return answer


#: Attributes of tokens in their document, by name: document -> values by sentence and token.
DOCUMENT: dict[str, Callable[[Document], list[list[Values]]]] = {
    "neighbours": _neighbours,
    "runs": _runs,
    "cases": _cases,
    "sentence": _sentence_kind,
}


def match_phrases(tokens: Sequence[str], phrases: dict[str, set[str]], longest: int) -> list[Values]:
    """Return the lists that contain the phrases at each token; the longest phrase wins."""
    found: list[Values] = [()] * len(tokens)
    small = [token.lower() for token in tokens]
    t = 0
    while t < len(tokens):
        for n in range(min(longest, len(tokens) - t), 0, -1):
            names = phrases.get(" ".join(small[t : t + n]))
            if names and any(token[:1].isupper() for token in tokens[t : t + n]):
                alone = n == 1
                for k in range(t, t + n):
                    place = "alone" if alone else "first" if k == t else "later"
                    found[k] = tuple(sorted(f"{name} {place}" for name in names))
                t += n - 1
                break
        t += 1
    return found


def read_values(given: object, where: str) -> Values:
    """Return the values of a user-defined attribute as texts; None and False give no value."""
    if given is None or given is False:
        return ()
    if isinstance(given, str):
        return (given,)
    if given is True:
        return ("yes",)
    if isinstance(given, Iterable):
        return tuple(str(each) for each in given)
    raise ModelError(f"{where} returned {given!r:.80}; expected a text, a list of texts, a flag or None.")
