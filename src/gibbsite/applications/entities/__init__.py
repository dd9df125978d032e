"""Named entities in text: who, where and which organisation, by conditional random fields.

``recognizer`` is what users call; ``documents`` has text and tokens, ``columns`` labelled files,
``template``, ``attributes``, ``lists`` and ``extraction`` make features, ``links`` joins sentences,
``decoding`` samples labels, ``scoring`` and ``rendering`` say what came out.
"""

from gibbsite.applications.entities.columns import read_columns
from gibbsite.applications.entities.documents import Document, Sentence, read_text
from gibbsite.applications.entities.recognizer import Entity, EntityRecognizer, Tagged
from gibbsite.applications.entities.rendering import render
from gibbsite.applications.entities.scoring import score_labels

__all__ = [
    "Document",
    "Entity",
    "EntityRecognizer",
    "Sentence",
    "Tagged",
    "read_columns",
    "read_text",
    "render",
    "score_labels",
]
