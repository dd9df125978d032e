"""Data from outside the package: what an experiment reads, and what it uses if that is not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gibbsite.errors import FormatError
from gibbsite.formats.parsing.text import PathLike

VARIABLE = "GIBBSITE_DATA"


@dataclass(frozen=True)
class DataSource:
    """Files of the data folder that an experiment reads.

    Attributes
    ----------
    name : str
        What the files contain.
    files : sequence of str
        Their paths in the folder; all of them are needed.
    instead : str
        What is used without them.
    """

    name: str
    files: tuple[str, ...]
    instead: str

    def paths(self) -> list[Path]:
        """Return the paths of the files in the folder that ``GIBBSITE_DATA`` names, or none unless all of them exist.

        Examples
        --------
        >>> DataSource("shapes", ("no/such/file.png",), "drawn shapes").paths()
        []
        """
        return [] if self.missing() else [Path(os.environ[VARIABLE]) / name for name in self.files]

    def missing(self) -> list[str]:
        """Return the files that do not exist."""
        root = os.environ.get(VARIABLE)
        return [name for name in self.files if not (root and (Path(root) / name).exists())]

    def text(self) -> str:
        """Return which data are used, and why if they are made up."""
        root, missing = os.environ.get(VARIABLE), self.missing()
        if not missing:
            return f"{self.name}, from {root}"
        reason = f"{root} has no {', '.join(missing)}" if root else f"{VARIABLE} is not set; see --data"
        return f"{self.instead}, because {reason}"


def describe_data(source: DataSource | None) -> str:
    """Return the first line of a run: which data it uses.

    Examples
    --------
    >>> describe_data(None)
    'Data: none from outside; models and random numbers are those of the program.'
    """
    text = "none from outside; models and random numbers are those of the program" if source is None else source.text()
    return f"Data: {text}."


@contextmanager
def data_folder(folder: PathLike | None) -> Iterator[None]:
    """Let ``GIBBSITE_DATA`` name a folder, if one is given."""
    if folder is None:
        yield
        return
    place = Path(folder)
    if not place.is_dir():
        raise FormatError("there is no folder of this name; give the folder with the data.", str(folder))
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(place)
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def require(source: DataSource | None) -> None:
    """Refuse to replace data from a folder that the user has given."""
    if source is not None and (missing := source.missing()):
        raise FormatError(
            f"there is no {', '.join(missing)}, which this experiment needs; docs/data.md has the layout.",
            os.environ.get(VARIABLE, ""),
        )
