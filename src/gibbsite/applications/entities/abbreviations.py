"""Full stops that do not end a sentence: those of initials, titles and other abbreviations.

An *initial* is a capital letter with a full stop that belongs to a name: "Samuel L. Jackson". A letter that ends a
sentence ("plan B.", "you and I.") is not one. A *title* stands before a name ("Dr. Watson") and never ends a sentence.
Other abbreviations ("Inc.", "U.S.", "p.m.") end a sentence if a word follows that often begins one and is not a name:
"He works for Acme Inc. The company ...".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

Span = tuple[int, int]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TITLES = _words(
    "Mr Mrs Ms Mx Dr Prof St Ste Mt Ft Sen Rep Gov Pres Gen Lt Maj Col Capt Cpl Cmdr Adm Sgt Pvt Rev Fr Hon Msgr Supt "
    "Amb Atty Messrs Mme Mlle Sr Sra Srta Dra Hr Herr Ing Pte Insp Det"
)
OTHERS = _words(
    "St Jr Sr Inc Corp Co Cos Ltd Bros LLC PLC Assn Dept Univ Dist Ave Blvd Rd Hwy Pkwy Jan Feb Apr Jun Jul Aug Sep "
    "Sept Oct Nov Dec Ala Ariz Ark Calif Colo Conn Del Fla Ga Ill Ind Kan Ky Md Mich Minn Neb Nev Okla Penn Tenn Tex "
    "Va Vt Wis Wyo Ont Que vs etc approx dept est esp incl ca cf al ed eds vol viz"
)
_BEFORE_NUMBERS = "Nos?|Mar|pp?|[bcd]|Art|Fig|Figs|Sec|Ch|Vol|Eq"
_DEGREES = r"Ph\.D\.|Ed\.D\.|D\.Phil\.|M\.Sc\.|B\.Sc\."

#: A pattern of abbreviations with their full stop, each of which is one token.
PATTERN = (
    rf"(?:{_DEGREES})|(?:[^\W\d_]\.){{2,}}|(?<!\w)(?:{'|'.join(sorted(TITLES | OTHERS))})\.(?!\w)"
    rf"|(?<!\w)(?:{_BEFORE_NUMBERS})\.(?=\s?\d)"
)

# words that begin sentences and are hardly ever names, with a capital letter
_STARTERS = _words(
    "A About After All Also Although An And Another Any Are As At Because Before Besides Both But By Can Could Did Do "
    "Does During Each Even Every Everyone Few Finally First For From Had Has Have He Her Here His How However I If In "
    "Indeed Instead Is It Its Just Last Later Many Meanwhile Moreover Most Much My Nearly Neither Never Nevertheless "
    "Next No Nobody None Nor Not Nothing Now Of On Once One Only Or Other Others Our Over Perhaps Several She Should "
    "Since So Some Soon Still Such Than That The Their Then There Therefore These They This Those Though Through Thus "
    "Today To Two Under Unlike Until Was We Were What When Where Whether Which While Who Why With Without Would Yet "
    "You Your"
)
# words before a letter that is a name of its own: "vitamin C."
_LETTERED = _words(
    "appendix block category chapter class column compartment dimension drive exhibit factor figure gate grade grades "
    "group hall hepatitis influenza item level line lot model note option page part phase plan platform point program "
    "programme question row schedule section series side site sites stage step table team terminal theorem title "
    "type types unit variant version vitamin vitamins wing zone letter"
)
_INITIAL = re.compile(r"[^\W\d_]\Z")
_OPENING = frozenset(['"', "'", "''", "``", "“", "‘", "(", "["])


def join_initials(text: str, spans: Sequence[Span]) -> list[Span]:
    """Join capital letters and the full stops behind them to one token where they are initials of a name."""
    found: list[Span] = []
    for span in spans:
        if text[span[0] : span[1]] == "." and found and found[-1][1] == span[0] and _is_initial(text, found, span[1]):
            found[-1] = found[-1][0], span[1]
        else:
            found.append(span)
    return found


def _is_initial(text: str, before: Sequence[Span], at: int) -> bool:
    """Tell whether the last of the tokens is an initial, given that a full stop follows that ends at ``at``."""
    a, b = before[-1]
    letter = text[a:b]
    if not (_INITIAL.match(letter) and letter.isupper()):
        return False
    follows = re.match(r"[ \t]*\n?[ \t]*((?:[^\W\d_]\.)+|[^\W\d_][\w'’-]*)?", text[at:])
    behind = (follows[1] if follows else None) or ""
    previous = text[slice(*before[-2])] if len(before) > 1 else ""
    another = behind.endswith(".")  # one more initial
    if not behind or (behind[0].islower() and not _is_particle(text[at:])) or previous.lower() in _LETTERED:
        return False
    if behind in _STARTERS and not another:
        return False
    if letter == "I" and not another:  # "So do I. John left.", but "Samuel I. Newhouse"
        return previous[:1].isupper() and previous not in _STARTERS
    return True


def _is_particle(rest: str) -> bool:
    """Tell whether a particle of a name follows, and then a name: "J. van der Waals"."""
    particles = "van|von|de|der|den|du|da|di|del|della|la|le|ter|ten|bin|al|el"
    return re.match(rf"[ \t]+(?:(?:{particles})[ \t-]+)+[^\W\d_a-z]", rest) is not None


def goes_on(words: Sequence[str], k: int) -> bool:
    """Tell whether a sentence goes on behind token k because its full stop is that of an abbreviation.

    Only tokens that keep their full stop can be abbreviations.
    """
    word = words[k]
    if len(word) < 2 or not word.endswith(".") or not word[0].isalnum():
        return False
    stem = word[:-1]
    if len(stem) == 1 or (stem in TITLES and stem not in OTHERS):
        return True
    at = k + 1
    while at + 1 < len(words) and words[at] in _OPENING:
        at += 1
    if stem == "etc":
        return not words[at][0].isupper()
    return words[at] not in _STARTERS
