"""JAGS from the command line: data, initial values and a script are written, draws and processor time come back."""

from __future__ import annotations

import math
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class JagsError(RuntimeError):
    """JAGS refused a model or stopped."""


@dataclass(frozen=True)
class JagsRun:
    """What a run of JAGS left: draws by name of the quantity, chains in rows, and seconds of its processor."""

    draws: dict[str, NDArray[np.float64]]
    seconds: float


def installed() -> bool:
    """Tell whether the command is found."""
    return shutil.which("jags") is not None


def run(
    model: Path,
    data: Mapping[str, Any],
    monitor: Iterable[str],
    *,
    inits: Mapping[str, Any] | None = None,
    warmup: int = 1000,
    updates: int = 10_000,
    thin: int = 1,
    chains: int = 2,
    modules: Sequence[str] = ("glm", "dic"),
) -> JagsRun:
    """Run a model.

    Parameters
    ----------
    model : Path
        The file in BUGS language.
    data, inits : mapping
        Numbers and nested lists by name, ``None`` where a number is missing; all chains start from ``inits``.
    monitor : iterable of str
        Names of the variables whose draws are kept.
    warmup, updates, thin, chains : int
        As JAGS understands them.
    modules : sequence of str
        Modules loaded in addition to the usual ones.

    Returns
    -------
    JagsRun
        Draws and processor time of the whole command.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data.R").write_text(dump(data), encoding="utf-8")
        for chain in range(1, chains + 1):
            generator = f'".RNG.name" <- "base::Mersenne-Twister"\n".RNG.seed" <- {chain}\n'
            (folder / f"inits{chain}.R").write_text(dump(inits or {}) + generator, encoding="utf-8")
        script = [
            *(f"load {module}" for module in modules),
            f'model in "{model.resolve()}"',
            'data in "data.R"',
            f"compile, nchains({chains})",
            *(f'parameters in "inits{chain}.R", chain({chain})' for chain in range(1, chains + 1)),
            "initialize",
            *([f"update {warmup}"] if warmup else []),
            *(f"monitor {each}, thin({thin})" for each in monitor),
            f"update {updates}",
            "coda *",
        ]
        (folder / "script.cmd").write_text("\n".join(script) + "\n", encoding="utf-8")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = subprocess.run(["jags", "script.cmd"], cwd=folder, capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if not (folder / "CODAindex.txt").exists():
            raise JagsError(f"JAGS did not run {model.name}: {(ended.stdout + ended.stderr)[-500:]}")
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return JagsRun(_read_coda(folder, chains), seconds)


def dump(values: Mapping[str, Any]) -> str:
    """Return values as assignments of R."""
    return "".join(f'"{name}" <- {_expression(value)}\n' for name, value in values.items())


def _expression(value: Any) -> str:
    array = np.asarray(value, dtype=float)  # None becomes nan
    numbers = [_number(each) for each in array.ravel(order="F").tolist()]
    if array.ndim == 0:
        return numbers[0]
    vector = f"c({','.join(numbers)})"
    if array.ndim == 1:
        return vector
    return f"structure({vector},.Dim=c({','.join(map(str, array.shape))}))"


def _number(value: float) -> str:
    if math.isnan(value):
        return "NA"
    return str(int(value)) if value.is_integer() and abs(value) < 1e9 else repr(value)


def _read_coda(folder: Path, chains: int) -> dict[str, NDArray[np.float64]]:
    columns = [np.loadtxt(folder / f"CODAchain{chain}.txt", ndmin=2)[:, 1] for chain in range(1, chains + 1)]
    draws = {}
    for line in (folder / "CODAindex.txt").read_text(encoding="utf-8").splitlines():
        name, begin, end = line.rsplit(maxsplit=2)
        draws[name] = np.stack([column[int(begin) - 1 : int(end)] for column in columns])
    return draws
