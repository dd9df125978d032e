"""Named entities in text: persons, places and organisations, by conditional random fields.

The interface is ``recognizer``. ``documents`` splits text into tokens, ``columns`` reads labelled files, ``template``,
``attributes``, ``lists`` and ``extraction`` compute features, ``links`` couples sentences, ``decoding`` samples labels,
``calibration`` corrects probabilities, ``scoring`` measures accuracy, and ``tagged`` has the output and its formats.
"""

from gibbsite.applications.entities.columns import read_columns
from gibbsite.applications.entities.documents import Document, Sentence, read_text
from gibbsite.applications.entities.recognizer import EntityRecognizer
from gibbsite.applications.entities.scoring import score_labels
from gibbsite.applications.entities.tagged import Entity, Tagged, render

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
