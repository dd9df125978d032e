"""Values of variables, from Python or from files: data and initial values."""

from __future__ import annotations

import json
import math
import numbers
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from gibbsite._common.arrays import Array, Floats
from gibbsite._common.notice import warn_user
from gibbsite._common.wording import escaped
from gibbsite.applications.bugs.language.rdump import MOST, parse_dump
from gibbsite.applications.bugs.language.tokens import KEYWORDS
from gibbsite.errors import FormatError, ModelError
from gibbsite.formats.parsing.text import PathLike, Source, load

Values: TypeAlias = "dict[str, Floats]"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._]*")
_GENERATOR = (".RNG.name", ".RNG.seed", ".RNG.state")
_NUMERIC = "biuf"  # kinds of types of NumPy that are real numbers
_PLAIN = (int, float, bool, type(None))
_DEEPEST = 32  # most dimensions of an array


def read_values(source: Any) -> Values:
    """Read the values of variables.

    Parameters
    ----------
    source : mapping, DataFrame, str or path
        Numbers, nested sequences, NumPy arrays, or columns of pandas by name; or a file: JSON, a dump of R, or data for
        WinBUGS. None, ``null``, NA, NaN and masked elements are missing.

    Returns
    -------
    dict of str to array of float64
        Element ``[i - 1, j - 1]`` of an array is ``x[i, j]`` of the model; NaN is missing. Single numbers have no
        dimension.

    Raises
    ------
    ModelError
        For names and values that cannot be used.
    FormatError
        For files that cannot be read, with line and column.

    Examples
    --------
    >>> read_values({"N": 2, "y": [[1, 2, None], [3, 4, 5]]})["y"].tolist()
    [[1.0, 2.0, nan], [3.0, 4.0, 5.0]]
    """
    values, ignored = _read(source)
    if ignored:
        raise ModelError(f"{', '.join(ignored)} belong to initial values, not to the data.")
    return values


def read_inits(source: Any, chains: int) -> list[Values]:
    """Read the initial values of each chain.

    Parameters
    ----------
    source : None, mapping, str, path, or sequence of these
        Values as :func:`read_values` takes them, for all chains, or a sequence with those of each chain. The random
        numbers of JAGS (``.RNG.name``, ``.RNG.seed``) are ignored with a warning.
    chains : int
        The number of chains.

    Returns
    -------
    list of dict
        The values of each chain.

    Examples
    --------
    >>> [values["mu"].item() for values in read_inits([{"mu": 0}, {"mu": 10}], chains=2)]
    [0.0, 10.0]
    """
    if source is None:
        return [{} for _ in range(chains)]
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        if len(source) != chains:
            given = f"{len(source)} set{'s' if len(source) != 1 else ''}"
            raise ModelError(f"there are {given} of initial values for {chains} chains; give one set, or one a chain.")
        found = [({}, []) if one is None else _read(one) for one in source]
    else:
        values, ignored = _read(source)
        found = [({name: value.copy() for name, value in values.items()}, ignored) for _ in range(chains)]
    ignored = sorted({name for _, names in found for name in names})
    if ignored:
        warn_user(f"{', '.join(ignored)} are ignored: the seed of the run sets the random numbers.")
    return [values for values, _ in found]


def _read(source: Any) -> tuple[Values, list[str]]:
    """Return values, and the names of those that set the random numbers of JAGS."""
    values: Values
    if isinstance(source, str | os.PathLike):
        values, texts = _read_file(source)
    elif _is_pandas(source, "DataFrame"):
        columns = list(source.columns)
        for column in columns:
            _check_name(column)
        if len(set(columns)) < len(columns):
            twice = next(column for column in columns if columns.count(column) > 1)
            raise ModelError(f"the table has two columns {twice!r}; rename one.")
        values, texts = {column: _numbers(column, source[column]) for column in columns}, set()
    elif isinstance(source, Mapping):
        texts = {
            name
            for name, value in source.items()
            if isinstance(name, str) and name in _GENERATOR and isinstance(value, str)
        }
        values = {}
        for name, value in source.items():
            if name not in texts:
                values[_check_name(name)] = _numbers(name, value)
    else:
        raise ModelError(
            f"values are a dictionary of numbers and arrays by name, a table, or the name of a file, got "
            f"{_described(source)}."
        )
    ignored = sorted(set(_GENERATOR) & ({*values} | texts))
    return {name: value for name, value in values.items() if _check_name(name) not in _GENERATOR}, ignored


def _check_name(name: Any) -> str:
    """Refuse what cannot be the name of a variable."""
    if not isinstance(name, str):
        raise ModelError(f"names of variables are texts, got {_described(name)}.")
    if name in KEYWORDS:
        raise ModelError(f"{name} is a word of the language and cannot name a variable; rename it.")
    if not _NAME.fullmatch(name) and name not in _GENERATOR:
        raise ModelError(
            f"{escaped(name[:80])!r} cannot name a variable; a name begins with a letter and has letters, digits, dots "
            f"and underscores."
        )
    return name


# files


def _read_file(path: PathLike) -> tuple[Values, set[str]]:
    source = load(path)
    text = source.decoded().replace("\r\n", "\n").replace("\r", "\n")
    if text.lstrip()[:1] == "{" or source.name.lower().removesuffix(".gz").endswith(".json"):
        return _read_json(source, text)
    values, texts = parse_dump(text, source.name)
    try:
        for name in (*values, *texts):
            _check_name(name)
    except ModelError as error:
        raise source.error(str(error)) from None
    if source_texts := sorted(texts - set(_GENERATOR)):
        raise source.error(f"{source_texts[0]} is a text; expected numbers.")
    return values, texts


def _read_json(source: Source, text: str) -> tuple[Values, set[str]]:

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise source.error(f"{escaped(twice)} is given twice.")
        return dict(pairs)

    try:
        found = json.loads(text, object_pairs_hook=unique, parse_int=float)
    except json.JSONDecodeError as error:
        raise FormatError(f"this is not JSON: {error.msg.lower()}.", source.name, error.lineno, error.colno) from None
    except RecursionError:
        raise source.error("brackets are nested too deeply.") from None
    texts = {name for name in found if name in _GENERATOR and isinstance(found[name], str)}
    if not isinstance(found, dict):
        raise source.error("expected an object with the values by name, { ... }.")
    try:
        return {_check_name(name): _numbers(name, value) for name, value in found.items() if name not in texts}, texts
    except ModelError as error:
        raise source.error(str(error)) from None


# values of Python


def _is_pandas(value: Any, *kinds: str) -> bool:
    return type(value).__module__.split(".")[0] == "pandas" and type(value).__name__ in kinds


def _described(value: Any) -> str:
    """Return what a value is, for messages."""
    if value is None:
        return "None"
    if isinstance(value, str):
        return f"the text {escaped(value[:40])!r}"
    kind = type(value).__name__
    return f"{'an' if kind[:1] in 'aeiouAEIOU' else 'a'} {kind}"


def _refused(name: str, why: str) -> ModelError:
    return ModelError(f"{name} {why}; expected a number or an array of numbers.")


def _numbers(name: str, value: Any) -> Floats:
    """Return a value as a new array of floats, in which NaN is missing."""
    if _is_pandas(value, "DataFrame"):
        columns = [_series(name, value.iloc[:, k]) for k in range(value.shape[1])]
        return np.stack(columns, axis=1) if columns else np.zeros(value.shape)
    if _is_pandas(value, "Series", "Index", "RangeIndex", "MultiIndex"):
        return _series(name, value)
    if isinstance(value, np.ma.MaskedArray):
        filled = _array(name, value.data)
        filled[np.ma.getmaskarray(value)] = np.nan
        return filled
    if isinstance(value, np.ndarray | np.generic):
        return _array(name, np.asarray(value))
    if value is None or isinstance(value, numbers.Real):
        return np.array(_number(name, value))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return _nested(name, value)
    if hasattr(value, "__array__"):
        return _array(name, np.asarray(value))
    raise _refused(name, f"is {_described(value)}")


def _series(name: str, column: Any) -> Floats:
    kind = getattr(column.dtype, "kind", "O")
    if kind in _NUMERIC:
        return np.array(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind == "O" and str(column.dtype) == "object":
        return _nested(name, column.tolist())
    raise _refused(name, f"is a column of type {column.dtype}")


def _array(name: str, array: Array) -> Floats:
    if array.dtype.kind == "O":
        if not array.ndim:
            return np.array(_number(name, array.item()))
        return _nested(name, array.tolist()) if array.size else np.zeros(array.shape)
    if array.dtype.kind not in _NUMERIC:
        raise _refused(name, f"is an array of type {array.dtype}")
    if array.ndim > _DEEPEST:
        raise _refused(name, f"has {array.ndim} dimensions")
    return np.array(array, dtype=np.float64, order="C")


def _number(name: str, value: Any) -> float:
    if value is None or value is np.ma.masked or _is_pandas(value, "NAType", "NaTType"):
        return math.nan
    if not isinstance(value, numbers.Real) and not isinstance(value, np.bool_):
        raise _refused(name, f"holds {_described(value)}")
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError):
        raise _refused(name, "holds a number that is too large") from None


def _nested(name: str, value: Sequence[Any]) -> Floats:
    """Return nested sequences of equal lengths as an array."""
    if isinstance(value, range):
        if len(value) > MOST:
            raise _refused(name, f"is a range of more than {MOST:,} numbers")
        return np.array(value, dtype=np.float64)
    flat: list[Any] = list(value)
    shape = [len(flat)]
    while any(_is_row(item) for item in flat if type(item) not in _PLAIN):
        if len(shape) == _DEEPEST:
            raise _refused(name, f"is nested more than {_DEEPEST} levels deep")
        single = next((item for item in flat if not _is_row(item)), flat)
        if single is not flat:
            raise _refused(name, f"has {_described(single)} where the others are rows")
        rows = [item if isinstance(item, Sequence) else _numbers(name, item).tolist() for item in flat]
        lengths = {len(row) for row in rows}
        if len(lengths) > 1:
            raise _refused(name, f"has rows of different lengths, {min(lengths)} and {max(lengths)}")
        shape.append(lengths.pop())
        if math.prod(shape) > MOST:
            raise _refused(name, f"has more than {MOST:,} numbers in lists")
        flat = [item for row in rows for item in row]
    numerals = [float(one) if type(one) in (int, float) and abs(one) < 1e300 else _number(name, one) for one in flat]
    return np.array(numerals, dtype=np.float64).reshape(shape)


def _is_row(item: Any) -> bool:
    if isinstance(item, Sequence):
        return not isinstance(item, str | bytes | bytearray)
    return (isinstance(item, np.ndarray) and item.ndim > 0) or _is_pandas(item, "Series")
