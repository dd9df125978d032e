"""Parts of exact inference are tested without the compiler: small inputs, no waiting."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gibbsite._numba import jit


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run compiled functions as plain Python."""
    monkeypatch.setattr(jit._Patience, "steps", 1e15)
    monkeypatch.setattr(jit.Entry, "_at_hand", lambda entry: False)
    with jit.interpreted(1.0):
        yield
