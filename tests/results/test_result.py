"""The public attributes of a result are those that its page in the reference describes."""

from __future__ import annotations

from dataclasses import fields

import gibbsite as gs


def test_public_fields_are_described() -> None:
    public = [field.name for field in fields(gs.Result) if not field.name.startswith("_")]
    described = gs.Result.__doc__.partition("Attributes")[2].partition("References")[0]
    named = {name for line in described.splitlines() for name in line.strip().partition(" :")[0].split(", ")}
    assert [name for name in public if name not in named] == []
