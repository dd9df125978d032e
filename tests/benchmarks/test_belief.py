"""The loop in C that messages are compared with gives the same messages."""

from __future__ import annotations

import numpy as np

from benchmarks.belief import arrays_of, random_lattice, random_tables
from benchmarks.reference import MessageReference
from gibbsite.inference.belief.messages import PlainMessages, new_messages
from gibbsite.inference.belief.schedule import ALL, move, new_residuals
from tests.benchmarks.test_benchmarks import needs_gcc


@needs_gcc
def test_messages_of_the_reference_are_the_same() -> None:
    for model in (random_lattice(5, 0.5, 0.3), random_tables(10, 3, 3, 8, 1.0)):
        graph, order = arrays_of(model)
        reference, state = MessageReference(graph, order), new_messages(graph, False)
        reference.run(3)
        for _ in range(3):
            move(PlainMessages(False), graph, state, new_residuals(0), order, ALL, 0, 0.0, 1.0)
        assert np.abs(reference.message - state.message).max() < 1e-12
