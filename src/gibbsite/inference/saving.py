"""``gs.save`` and ``gs.load``, which keep answers and scans on disk as archives of arrays and a JSON header."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from gibbsite._common.archive import open_archive
from gibbsite._common.arguments import checked, describe
from gibbsite.errors import ArgumentError, FormatError
from gibbsite.formats.parsing.text import path_text, shortened

# Kinds of files, the version that is read, and the module and function that read it.
_READERS = {
    "gibbsite result": (2, "gibbsite.results.save", "read_result"),
    "gibbsite result of weighted draws": (1, "gibbsite.inference.importance.result", "read_weighted"),
    "gibbsite answer": (1, "gibbsite.results.answer", "read_answer"),
    "gibbsite scan": (2, "gibbsite.inference.influence.optimise", "read_stored"),
}
# Exceptions raised when an object is built from inconsistent data.
_INCONSISTENT = (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError)


@checked
def save(answer: Any, path: str | Path) -> None:
    """Save an answer or a scan to a file, which :func:`load` reads.

    The file is an ``.npz`` of plain arrays and one JSON text. An existing file is replaced only when the new
    one is complete, and equal content gives equal bytes.

    Parameters
    ----------
    answer : Answer or DogsScan
        A result of any method, an answer of :func:`gibbsite.infer`, or an optimised scan.
    path : str or Path
        The file.

    Raises
    ------
    CheckpointError
        If the file cannot be written.

    See Also
    --------
    load : Load what was saved.
    write_model : Write a model in a standard format.

    Examples
    --------
    >>> import gibbsite as gs, tempfile
    >>> result = gs.sample(gs.ising_grid((2, 2)), sweeps=500, rng=1, progress=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gs.save(result, f"{folder}/run.npz")
    ...     again = gs.load(f"{folder}/run.npz")
    >>> again.marginals == result.marginals
    True
    """
    if isinstance(answer, type) or not hasattr(answer, "_pack"):
        raise ArgumentError(f"Only answers and optimised scans can be saved, got {describe(answer)}.")
    answer.save(path)


@checked
def load(path: str | Path) -> Any:
    """Load an answer or a scan that :func:`save` has saved.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Answer or DogsScan
        A result of ``sample`` or of weighted draws, or a scan, is equal to the saved one except for ``seconds``.
        Answers of other methods keep their marginals, log Z, assignment and diagnostics.

    Raises
    ------
    FormatError
        If there is no such file, or it is damaged or of another kind.

    See Also
    --------
    save : Save an answer or a scan.

    Examples
    --------
    >>> load("nowhere.npz")
    Traceback (most recent call last):
        ...
    gibbsite.errors.FormatError: nowhere.npz: the file does not exist; check the path.
    """
    name = path_text(path)
    file = Path(name)
    if not file.exists():
        raise FormatError("the file does not exist; check the path.", name)

    def fail(reason: str) -> FormatError:
        return FormatError(
            f"this is not a file of gs.save, or only a part of one: {reason}; save the answer again with "
            "gs.save(answer, path).",
            name,
        )

    with open_archive(file, fail) as archive:
        about = archive.header()
        kind = about.get("kind")
        if not isinstance(kind, str) or kind not in _READERS:
            raise fail("it is of another kind")
        version, module, reader = _READERS[kind]
        if about.get("format") != version:
            raise FormatError(
                f"the file has format {about.get('format')!r:.20}, and this version of gibbsite reads {version}; "
                "use the version that saved it.",
                name,
            )
        try:
            return getattr(importlib.import_module(module), reader)(about, archive)
        except FormatError:
            raise
        except _INCONSISTENT as reason:
            first = (str(reason).splitlines() or [type(reason).__name__])[0]
            raise FormatError(f"the saved data are inconsistent ({shortened(first)}); save them again.", name) from None
