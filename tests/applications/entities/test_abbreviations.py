"""Initials, titles and abbreviations do not end sentences; other full stops do."""

from __future__ import annotations

import pytest

from gibbsite.applications.entities import read_text

NAMES = """Samuel L. Jackson; George W. Bush; George H. W. Bush; John F. Kennedy; Franklin D. Roosevelt; Harry S. Truman;
Dwight D. Eisenhower; Lyndon B. Johnson; Ulysses S. Grant; Robert E. Lee; Michael J. Fox; Philip K. Dick;
Hunter S. Thompson; Ursula K. Le Guin; J. R. R. Tolkien; J. K. Rowling; C. S. Lewis; T. S. Eliot; E. E. Cummings;
W. E. B. Du Bois; A. A. Milne; F. Scott Fitzgerald; L. Frank Baum; J. Edgar Hoover; M. Night Shyamalan; I. M. Pei;
A. P. J. Abdul Kalam; B. B. King; O. J. Simpson; Samuel I. Newhouse; Booker T. Washington; Edward R. Murrow; Homer J. Simpson;
É. Zola; J. van der Waals; Johannes D. van der Waals; H. G. Wells; P. G. Wodehouse; J.R.R. Tolkien; Mr. T. Rex;
Dr. Martin Luther King Jr.; Sammy Davis Jr.; Prof. S. Hawking; Lt. Col. James Rhodes; Gen. George S. Patton; St. Francis; Sen. J. McCain;
Mrs. Dalloway; Ms. Marvel; Rev. Jesse L. Jackson Sr.; Capt. James T. Kirk; Sgt. Pepper; Gov. A. Schwarzenegger; Mme. Curie;
Adm. Chester W. Nimitz; Maj. T. J. Kong; Dr. J. Watson, Ph.D.""".replace("\n", " ")


def sentences(text: str) -> list[str]:
    found = []
    for sentence in read_text(text).sentences:
        assert sentence.offsets is not None
        assert [text[a:b] for a, b in sentence.offsets] == sentence.tokens
        found.append(text[sentence.offsets[0][0] : sentence.offsets[-1][1]])
    return found


@pytest.mark.parametrize("name", [name.strip() for name in NAMES.split(";")])
def test_names_stay_whole(name: str) -> None:
    for text in (
        f"{name} spoke to the press.",
        f"As Jules ({name}) drives, the bars open.",
        f"They met {name} and left.",
        f"A letter by {name} was found in Boston.",
    ):
        assert sentences(f"It rained. {text} Nobody came.") == ["It rained.", text, "Nobody came."]
    assert sentences(f"It was {name.removesuffix('.')}. He left.") == [f"It was {name.removesuffix('.')}.", "He left."]


def test_there_are_at_least_fifty_names() -> None:
    assert len(NAMES.split(";")) >= 50


@pytest.mark.parametrize(
    "text",
    [
        "He works for Acme Inc. | The company is old.",
        "He works for Acme Inc. in Boston. | She does not.",
        "Acme Corp. Chairman Mary Smith resigned.",
        "They live in the U.S. | It is large.",
        "The U.S. Senate met at 5 p.m. Monday. | He was there.",
        "He left at 5 p.m. | She stayed.",
        "It happened on Jan. 5 in St. Louis. | Mr. Smith saw it.",
        "No. 5 is a perfume. | Is it? | No. | I do not know it.",
        "This is plan B. | Smith liked plan A.",
        "Take vitamin C. | Doctors say so.",
        "Nobody knew but you and I. | John left.",
        "So do I. | Mary does not.",
        "He is called Malcolm X. | He was born in 1925.",
        'He said: "I know." | "You do not," she said.',
        'She came! | "Who?" | he asked.'.replace(" | he", " he"),
        "He bought pens, paper, etc. | Then he left.",
        "He bought pens, paper, etc. and left.",
        "Apples vs. Oranges is a film. | Pears is none.",
        "See Fig. 3 and p. 17. | They show it.",
        "Dr. Watson (b. 1852) and Mr. Holmes met. | They talked.",
        "Wait ... what? | Yes.",
        "Mt. Everest is high; Ft. Worth is not. | True.",
        "She has a Ph.D. | He has none.",
        "He lives on Fifth Ave. near Wall St. | It is loud.",
    ],
)
def test_other_full_stops(text: str) -> None:
    assert sentences(text.replace(" | ", " ")) == text.split(" | ")


def test_the_paragraph_of_the_paper() -> None:
    text = (
        "Moments after they initiate the hold-up, the scene breaks off and the title credits roll. As Jules Winnfield "
        "(Samuel L. Jackson) drives, Vincent Vega (John Travolta) talks about his experiences in Europe, from where he "
        'has just returned: the French McDonald\'s and its "Royale with Cheese".'
    )
    found = read_text(text).sentences
    assert len(found) == 2
    at = found[1].tokens.index("Samuel")
    assert found[1].tokens[at : at + 3] == ["Samuel", "L.", "Jackson"]
