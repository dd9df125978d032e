"""Functions of ``gibbsite.applications.entities.extraction`` on small inputs whose results are known."""

from __future__ import annotations

from gibbsite.applications.entities.documents import read_text
from gibbsite.applications.entities.extraction import Extractor
from gibbsite.applications.entities.lists import WordLists


def test_extractor_turns_documents_into_sequences_of_features() -> None:
    extractor = Extractor("lower[-1..0]", WordLists())
    extractor.read([read_text("Rome is Rome")], grow=True)
    assert sorted(name for name in extractor.names if name.endswith("=rome")) == ["lower[-1]=rome", "lower[0]=rome"]
