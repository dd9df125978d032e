"""Saved results: one ``.npz`` file of plain arrays and one JSON text, readable without gibbsite.

The file depends on the content of the result alone, so equal results give equal bytes. Entries:

``about``
    JSON (ASCII bytes): plan, budget, state labels, evidence, unreached, remarks; names that are no numbers.
``totals``, ``trace``
    Sums over all draws (chains, cells) and means of batches (chains, batches, cells).
``values``, ``draw_sites``, ``energy``, ``bests``, ``best_x``
    Recorded draws (chains, draws, sites), energies (minus log-potentials), largest log-potential of each
    chain and the state that has it; of size zero if not recorded.
``set_start``, ``set_member``, ``set_cell``
    Recorded sets of sites, in compressed rows.
``block_0``, ``block_1``, ...
    What open recorders (observables) have kept, one row for each chain.
``kept_...``
    What the kernel has recorded besides, by name.
``visit_times``
    Integrated autocorrelation times of marginals, in sweeps, measured from rare states; only if known.
``label_set``, ``site_numbers``
    Which entry of ``labels`` each site has, and the numbers that name the sites; both only if needed.

Files of format 1 (gibbsite 0.1) hold log-potentials under the name ``energy``; they are read as well.
"""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import FormatError
from gibbsite.model.domain import Angle, Domains, Interval, SiteKind, SiteNames
from gibbsite.result.measure.agreement import Findings
from gibbsite.result.result import JointSets, Result
from gibbsite.result.verdict.convergence import Look, Unreached
from gibbsite.run.checkpoint import write_atomically
from gibbsite.run.plan import Plan
from gibbsite.run.recorders.base import OpenRecorder, all_recorders

FORMAT = 2
_READABLE = (1, FORMAT)
_KIND = "gibbsite result"
WEIGHTED_KIND = "gibbsite result of weighted draws"
#: Kinds of saved results, and what reads them.
LOADERS = {_KIND: "gs.load_result", WEIGHTED_KIND: "gs.WeightedResult.load"}
# The arrays of a result that are saved as they are: name, numbers of dimensions, kind of numbers.
_ARRAYS = {
    "totals": (2, "f"),
    "trace": (3, "f"),
    "draw_sites": (1, "i"),
    "values": (3, "i"),
    "energy": (2, "f"),
    "bests": (1, "f"),
    "best_x": (1, "i"),
}
# Names of what a kernel has recorded begin so.
_KEPT = "kept_"
# Those that hold states: floats, where sites are numbers.
_STATES = ("values", "best_x")
# What reading a file that is none of ours may raise.
UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


def save_result(result: Result, path: Path) -> None:
    """Save a result; ``seconds``, which differs from run to run, is left out.

    Parameters
    ----------
    result : Result
        What to save.
    path : Path
        The file, by custom ``.npz``; an existing one is replaced in one go.

    Raises
    ------
    CheckpointError
        If the file cannot be written.

    Examples
    --------
    >>> import gibbsite as gs, tempfile
    >>> result = gs.sample(gs.ising_grid((2, 2)), sweeps=500, rng=1, progress=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_result(result, Path(folder) / "run.npz")
    ...     again = load_result(Path(folder) / "run.npz")
    >>> again.marginals == result.marginals
    True
    """
    sites, site_arrays = describe_sites(result.domains, result.evidence, result.evidence_labels)
    about = {
        "kind": _KIND,
        "format": FORMAT,
        "plan": result.plan.to_dict(),
        "draws": result.draws,
        "warmup": result.warmup,
        "length": result.length,
        "binary": result.binary,
        "n_marginal": result.n_marginal,
        "n_joint": result.sets.n_joint,
        "errors": result.errors,
        "period": result.period,
        "remarks": list(result.remarks),
        "against": list(result.doubts),
        "report": list(result.report.items()),
        "interrupted": result.interrupted,
        **({} if result.coupling_bound is None else {"coupling_bound": result.coupling_bound}),
        **sites,
        "look": result.look if isinstance(result.look, str) else asdict(result.look),
        "unreached": [[doubt.site, doubt.state, doubt.proved, doubt.why] for doubt in result.unreached],
    }
    about["open"] = [recorder.restore() for recorder in result.open]
    arrays = {name: getattr(result, name) for name in _ARRAYS} | site_arrays
    arrays.update({f"block_{r}": block for r, block in enumerate(result.blocks)})
    arrays.update({f"{_KEPT}{name}": found for name, found in result.kept.items()})
    arrays["pulse"] = result.pulse
    if result.visit_times.size:
        arrays["visit_times"] = result.visit_times
    arrays["set_start"] = result.sets.start
    arrays["set_member"] = result.sets.member
    arrays["set_cell"] = result.sets.cell
    write_entries(path, about, arrays)


def describe_sites(
    domains: Domains, evidence: Mapping[str, Any], evidence_labels: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the sites of a result, and what was observed, as data and arrays; see :func:`read_sites`."""
    names = domains.names.identity()
    about = {
        "n_sites": domains.n_sites,
        "sites": list(names) if isinstance(names, tuple) else None,
        "labels": [write_kind(kind) for kind in domains.kinds],
        # Lists, because the order of observed sites is part of the content.
        "evidence": list(evidence.items()),
        "evidence_labels": list(evidence_labels.items()),
    }
    arrays: dict[str, NDArray[Any]] = {}
    if len(domains.kinds) != 1:
        arrays["label_set"] = domains.kind_of
    if isinstance(names, np.ndarray):
        arrays["site_numbers"] = names
    return about, arrays


def read_sites(
    about: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> tuple[Domains, dict[str, Any], dict[str, tuple[Any, ...]]]:
    """Return sites, what was observed, and the states that observed sites have."""
    sites = about["sites"]
    names = SiteNames(about["n_sites"], None if sites is None else tuple(sites), arrays.get("site_numbers"))
    kinds = tuple(_read_kind(labels) for labels in about["labels"])
    domains = Domains(names, kinds, arrays.get("label_set", np.zeros(0, np.int32)))
    labels = {site: tuple(labels) for site, labels in about["evidence_labels"]}
    return domains, dict(about["evidence"]), labels


def write_entries(path: Path, about: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write data and arrays; equal content gives equal bytes."""
    text = np.array(json.dumps(about, sort_keys=True).encode("ascii"))
    # Row-major order, because NumPy stores column-major arrays under another header.
    ordered = {name: np.ascontiguousarray(arrays[name]) for name in sorted(arrays)}
    write_atomically(path, {"about": text, **ordered})


def load_result(path: str | Path) -> Result:
    """Load a result saved by ``result.save(path)``.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Result
        Equal in everything but ``seconds``.

    Raises
    ------
    FormatError
        If there is no such file, or it is not a complete saved result.

    Examples
    --------
    >>> load_result("nowhere.npz")
    Traceback (most recent call last):
        ...
    gibbsite.errors.FormatError: nowhere.npz: the file does not exist; check the path.
    """
    path = Path(path)
    about, arrays = read_entries(path, _KIND)
    version = about.get("format")
    if version not in _READABLE:
        raise FormatError(
            f"the result was saved in format {version}, this version of gibbsite reads up to {FORMAT}; "
            "use the version that saved it.",
            str(path),
        )
    if version == 1 and "energy" in arrays:
        arrays["energy"] = 0.0 - arrays["energy"]
    try:
        return _build_result(about, arrays)
    except UNREADABLE as reason:
        raise FormatError(
            f"the saved result is inconsistent ({_first_line(reason)}); save it again.", str(path)
        ) from None


def read_entries(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read JSON and arrays of a file of one kind, after a check of its sums."""
    if not path.exists():
        raise FormatError("the file does not exist; check the path.", str(path))
    try:
        with zipfile.ZipFile(path) as archive:
            torn = archive.testzip()
        if torn is not None:
            raise FormatError(f"the entry {torn} is damaged; copy or save the file again.", str(path))
        with np.load(path, allow_pickle=False) as file:
            arrays: dict[str, NDArray[Any]] = {name: file[name] for name in file.files}
        about = json.loads(arrays.pop("about").item())
        found = about["kind"]
        if found in LOADERS and found != kind:
            raise FormatError(f"this is a {found}; load it with {LOADERS[found]}(path).", str(path))
        if found != kind:
            raise ValueError
    except FormatError:
        raise
    except OSError as reason:
        raise FormatError(f"cannot be read ({reason.strerror or reason}).", str(path)) from None
    except UNREADABLE:
        raise FormatError(
            "this is not a saved gibbsite result, or only a part of one; results are saved by "
            "result.save(path).",
            str(path),
        ) from None
    return about, arrays


def _build_result(about: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Result:
    n = about["n_sites"]
    domains, evidence, evidence_labels = read_sites(about, arrays)
    for name, (ndim, kind) in _ARRAYS.items():
        if name in _STATES and domains.numbers.any():
            kind = "f"
        if arrays[name].ndim != ndim or arrays[name].dtype.kind != kind:
            raise ValueError(f"{name} has the wrong shape or type")
    cells = arrays["totals"].shape[1]
    marginal = n if about["binary"] else int(domains.cards.sum(dtype=np.int64))
    if about["binary"] and (domains.cards != 2).any():
        raise ValueError("sites of a two-state model have other numbers of states")
    if domains.cards.size != n or arrays["trace"].shape[2] != cells:
        raise ValueError("sites and cells do not match")
    if about["n_marginal"] not in (0, marginal) or about["n_marginal"] > cells:
        raise ValueError("marginals and sites do not match")
    return Result(
        plan=Plan.from_dict(about["plan"]),
        domains=domains,
        evidence=evidence,
        evidence_labels=evidence_labels,
        binary=about["binary"],
        n_marginal=about["n_marginal"],
        draws=about["draws"],
        warmup=about["warmup"],
        length=about["length"],
        sets=JointSets(arrays["set_start"], arrays["set_member"], arrays["set_cell"], about["n_joint"]),
        bests=arrays["bests"],
        unreached=tuple(Unreached(*doubt) for doubt in about.get("unreached", about.get("doubts", ()))),
        errors=about["errors"],
        period=about["period"],
        remarks=tuple(about["remarks"]),
        report=dict(about["report"]),
        kept={name.removeprefix(_KEPT): one for name, one in arrays.items() if name.startswith(_KEPT)},
        interrupted=about["interrupted"],
        coupling_bound=about.get("coupling_bound"),
        totals=arrays["totals"],
        trace=arrays["trace"],
        draw_sites=arrays["draw_sites"],
        values=arrays["values"],
        energy=arrays["energy"],
        best_x=arrays["best_x"],
        pulse=arrays["pulse"] if "pulse" in arrays else np.zeros((0, 0)),
        visit_times=arrays.get("visit_times", np.zeros(0)),
        look=_read_look(about.get("look", "not needed")),
        doubts=tuple(about.get("against", ())),
        open=tuple(_read_recorder(each) for each in about.get("open", ())),
        blocks=tuple(arrays[f"block_{r}"] for r in range(len(about.get("open", ())))),
    )


def _read_recorder(about: dict[str, Any]) -> OpenRecorder:
    """Return a recorder that can conclude what is in a saved result."""
    import gibbsite.run.recorders  # noqa: F401 (all of them)

    known = all_recorders().get(about["class"])
    if known is None or not issubclass(known, OpenRecorder):
        raise ValueError(
            f"the recorder {about['class']} is not known here; import the module that defines it"
        )
    return known.revive(about)


def _read_look(written: Any) -> Look | str:
    """Return the second look of a saved result, or why there is none."""
    if isinstance(written, str):
        return written
    found = written["findings"]
    listed = {name: tuple(found[name]) for name in ("cells", "here", "there")}
    return Look(written["chains"], written["sweeps"], Findings(**{**found, **listed}), written["complete"])


def write_kind(kind: SiteKind) -> Any:
    """Return the states of a site as data: labels, or {"low": ..., "high": ...} with words for infinity.

    Examples
    --------
    >>> write_kind(Interval(0.0)), write_kind(("no", "yes"))
    ({'low': 0.0, 'high': 'inf'}, ('no', 'yes'))
    """
    if not isinstance(kind, Interval):
        return kind
    if isinstance(kind, Angle):
        return {"low": kind.low, "period": kind.period}
    bounds = {"low": kind.low, "high": kind.high}
    return {name: bound if math.isfinite(bound) else str(bound) for name, bound in bounds.items()}


def _read_kind(written: Any) -> SiteKind:
    if isinstance(written, dict) and "period" in written:
        return Angle(float(written["period"]), float(written["low"]))
    if isinstance(written, dict):
        return Interval(float(written["low"]), float(written["high"]))
    return tuple(written)


def _first_line(reason: BaseException) -> str:
    return (str(reason).splitlines() or [type(reason).__name__])[0]
