"""Results of sampling runs as a header and arrays, for :func:`gibbsite.save` and :func:`gibbsite.load`.

The content depends on the result alone, so equal results give equal bytes. Entries:

``about``
    JSON (ASCII bytes): plan, budget, state labels, evidence, unreached states, warnings, site names.
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
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np

from gibbsite._common.archive import Archive
from gibbsite._common.arrays import Array
from gibbsite._common.boundary import Wanted, admit, between, check_growth, check_header, fits, one_of
from gibbsite.models.domain import Angle, Domains, Interval, SiteKind, SiteNames, read_labels
from gibbsite.results.measure.agreement import Findings
from gibbsite.results.measured import JointSets
from gibbsite.results.result import Result
from gibbsite.results.verdict.convergence import Check, StartCheck, Unreached
from gibbsite.sampling.plan import Plan
from gibbsite.sampling.recorders.base import OpenRecorder, all_recorders

Built = TypeVar("Built")

KIND, FORMAT = "gibbsite result", 2
# The arrays of a result that are saved as they are, and their names in the result.
_ARRAYS = {
    "totals": "totals",
    "trace": "_trace",
    "draw_sites": "draw_sites",
    "values": "draws",
    "energy": "energy",
    "bests": "_bests",
    "best_x": "_best_x",
}
# Names of what a kernel has recorded begin so.
_KEPT = "kept_"
_WHOLE = (np.int8, np.int16, np.int32, np.int64)


def pack_result(result: Result) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and arrays of a result; ``seconds``, which differs from run to run, is left out."""
    sites, site_arrays = describe_sites(result.domains, result.evidence, result.evidence_labels)
    about = {
        "kind": KIND,
        "format": FORMAT,
        "plan": result.plan.to_dict(),
        "draws": result.n_draws,
        "warmup": result.warmup,
        "length": result._length,
        "binary": result._binary,
        "n_marginal": result._n_marginal,
        "n_joint": result._sets.n_joint,
        "errors": result.errors,
        "period": result._period,
        "remarks": list(result.remarks),
        "against": list(result._doubts),
        "report": list(result.report.items()),
        "interrupted": result.interrupted,
        **sites,
        "look": result._start_check if isinstance(result._start_check, str) else asdict(result._start_check),
        **({} if result.accuracy is None else {"accuracy": result.accuracy, "task": result.task}),
        **({} if result.check is None else {"check": asdict(result.check)}),
        "unreached": [[doubt.site, doubt.state, doubt.proved, doubt.why] for doubt in result.unreached],
    }
    about["open"] = [recorder.restore() for recorder in result._open]
    arrays = {name: getattr(result, own) for name, own in _ARRAYS.items()} | site_arrays
    arrays.update({f"block_{r}": block for r, block in enumerate(result._blocks)})
    arrays.update({f"{_KEPT}{name}": found for name, found in result.kept.items()})
    arrays["pulse"] = result._pulse
    if result.visit_times.size:
        arrays["visit_times"] = result.visit_times
    if result._asked is not None:
        arrays["asked"] = result._asked
    arrays["set_start"] = result._sets.start
    arrays["set_member"] = result._sets.member
    arrays["set_cell"] = result._sets.cell
    return about, arrays


def describe_sites(
    domains: Domains, evidence: Mapping[str, Any], evidence_labels: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Array]]:
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
    arrays: dict[str, Array] = {}
    if len(domains.kinds) != 1:
        arrays["label_set"] = domains.kind_of
    if isinstance(names, np.ndarray):
        arrays["site_numbers"] = names
    return about, arrays


def read_sites(about: dict[str, Any], archive: Archive) -> tuple[Domains, dict[str, Any], dict[str, tuple[Any, ...]]]:
    """Return sites, what was observed, and the states that observed sites have."""
    check_header(about, _SITES, archive.fail)
    check_growth(4 * about["n_sites"], archive.size, archive.fail)  # of which some arrays are made
    sites, n = about["sites"], about["n_sites"]
    if sites is not None and len(sites) != n:
        raise ValueError("there is another number of names than of sites")
    kinds = tuple(_read_kind(labels) for labels in about["labels"])
    if not kinds and n:
        raise ValueError("sites have no states")
    arrays = archive.admit(
        {
            "label_set": Wanted((np.int32, np.int64), (n,), 0, len(kinds) - 1, optional=len(kinds) == 1),
            "site_numbers": Wanted(_WHOLE, (n,), optional=True),
        }
    )
    numbers = arrays.get("site_numbers")
    if numbers is not None and (np.diff(numbers) <= 0).any():
        raise ValueError("the numbers of sites do not rise")
    names = SiteNames(n, None if sites is None else tuple(sites), numbers)
    domains = Domains(names, kinds, arrays.get("label_set", np.zeros(0, np.int32)))
    labels = {site: tuple(labels) for site, labels in about["evidence_labels"]}
    return domains, dict(about["evidence"]), labels


_COUNT = between(0, 1 << 62)
_PAIRS = [lambda pair: isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)]
# What the JSON parts of files must be; see gibbsite._common.boundary.fits.
_SITES = {
    "n_sites": between(0, 2**31 - 1),
    "sites": (None, lambda names: fits(names, [str]) and len(set(names)) == len(names)),
    "labels": [(list, dict)],
    "evidence": _PAIRS,
    "evidence_labels": _PAIRS,
}
_ABOUT = {
    "plan": {"chains": int, "entropy": int, "kernel": dict, "scan": dict, "record": [dict]},
    "draws": _COUNT,
    "warmup": _COUNT,
    "length": _COUNT,
    "binary": bool,
    "n_marginal": _COUNT,
    "n_joint": _COUNT,
    "errors": one_of("draws", "chains", "sums", "none"),
    "period": (None, _COUNT),
    "remarks": [str],
    "report": _PAIRS,
    "interrupted": bool,
}
_LATER = {  # what files of the first versions do not have
    "coupling_bound": (None, float),
    "against": [str],
    "look": (str, {"chains": _COUNT, "sweeps": _COUNT, "complete": bool, "findings": dict}),
    "open": [{"class": str}],
    "accuracy": (None, float),
    "task": str,
    "check": {"method": str, "by": str, "apart": (float, None)},
}


# What tempered kernels have recorded, by rung; see Kernel.kept.
_LADDER = {
    "betas": Wanted(np.float64, ("rungs",), 0, 1),
    "cut": Wanted(np.float64, ("pairs",)),
    "trips": Wanted(np.int64, ("chains",), 0),
    "sweeps": Wanted(np.int64, ("chains",), 0),
    "accepted": Wanted(np.float64, ("chains", "pairs")),
    "averages": Wanted(np.float64, ("chains", "batches", "sides")),
    "gains": Wanted(np.float64, ("chains", "samples", "rungs"), finite=False),
    "sums": Wanted(np.float64, ("chains", "of rungs", "cells")),
    "level": Wanted(np.float64, (1,), missing=True),
}


def read_result(about: dict[str, Any], archive: Archive) -> Result:
    """Return the result that a header and its arrays describe."""
    fail = archive.fail
    check_header(about, _ABOUT | {name: one for name, one in _LATER.items() if name in about}, fail)
    domains, evidence, evidence_labels = read_sites(about, archive)
    n, draws = about["n_sites"], about["draws"]
    numbers = bool(domains.numbers.any())
    states: dict[str, Any] = {"dtype": np.float64} if numbers else {"dtype": _WHOLE, "low": 0}
    if not numbers and n:
        states["high"] = int(domains.cards.max()) - 1
    loose: dict[str, Any] = {"finite": False, "missing": numbers}
    arrays = archive.admit(
        {
            "totals": Wanted(np.float64, ("chains", "cells"), **loose),
            "trace": Wanted((np.float32, np.float64), ("chains", "batches", "cells"), **loose),
            "draw_sites": Wanted((np.int32, np.int64), ("drawn",), 0, n - 1),
            "values": Wanted(shape=("rows", "recorded", "drawn"), **states),
            "energy": Wanted(np.float64, ("energies", "of draws"), finite=False),
            "bests": Wanted(np.float64, ("bests",), finite=False),
            "best_x": Wanted(shape=("best sites",), **states),
            "set_start": Wanted(np.int64, ("starts",), 0),
            "set_member": Wanted((np.int32, np.int64), ("members",), 0, n - 1),
            "set_cell": Wanted(np.int64, ("sets",), 0),
            "pulse": Wanted(np.float64, ("pulses", "of batches"), finite=False, optional=True),
            "visit_times": Wanted(np.float64, ("visited",), 1.0, optional=True),
            "asked": Wanted(np.int64, ("asked",), 0, n - 1, optional=True),
            **{
                f"block_{r}": Wanted(np.float64, (f"rows {r}", f"block {r}"), finite=False, missing=True)
                for r in range(len(about.get("open", ())))
            },
        }
    )
    kept = {name.removeprefix(_KEPT): archive.read_numbers(name) for name in archive.names if name.startswith(_KEPT)}
    if "betas" in kept:
        kept |= admit(kept, _LADDER, fail)
    chains, cells = arrays["totals"].shape
    for name in ("values", "energy", "bests", "pulse"):
        if name in arrays and len(arrays[name]) not in (0, chains):
            raise ValueError(f"{name} has another number of chains")
    if arrays["best_x"].size not in (0, n):
        raise ValueError("the best state has other sites")
    marginal = n if about["binary"] else int(domains.cards.sum(dtype=np.int64))
    if about["binary"] and (domains.cards != 2).any():
        raise ValueError("sites of a two-state model have other numbers of states")
    if domains.cards.size != n:
        raise ValueError("sites and cells do not match")
    if about["n_marginal"] not in (0, marginal) or about["n_marginal"] > cells:
        raise ValueError("marginals and sites do not match")
    slack = 1e-3 * (1 + draws)
    if not numbers and ((arrays["totals"] < -slack) | (arrays["totals"] > draws + slack)).any():
        raise ValueError("sums of probabilities and numbers of draws do not match")
    _check_sets(arrays, domains.cards, cells, about["n_joint"])
    recorders = tuple(_read_recorder(each) for each in about.get("open", ()))
    blocks = tuple(arrays[f"block_{r}"] for r in range(len(recorders)))
    for recorder, rows in zip(recorders, blocks, strict=True):
        if not len(rows) or not all(recorder.concludes(row, draws) for row in rows):
            raise ValueError(f"what was recorded as {recorder.key!r} is damaged")
    return Result(
        plan=Plan.from_dict(about["plan"]),
        domains=domains,
        evidence=evidence,
        evidence_labels=evidence_labels,
        _binary=about["binary"],
        _n_marginal=about["n_marginal"],
        n_draws=draws,
        warmup=about["warmup"],
        _length=about["length"],
        _sets=JointSets(arrays["set_start"], arrays["set_member"], arrays["set_cell"], about["n_joint"]),
        _bests=arrays["bests"],
        unreached=tuple(_read_unreached(doubt) for doubt in about.get("unreached", ())),
        errors=about["errors"],
        _period=about["period"],
        remarks=tuple(about["remarks"]),
        report=dict(about["report"]),
        kept=kept,
        interrupted=about["interrupted"],
        totals=arrays["totals"],
        _trace=arrays["trace"],
        draw_sites=arrays["draw_sites"],
        draws=arrays["values"],
        energy=arrays["energy"],
        _best_x=arrays["best_x"],
        _pulse=arrays["pulse"] if "pulse" in arrays else np.zeros((0, 0)),
        visit_times=arrays.get("visit_times", np.zeros(0)),
        _asked=arrays.get("asked"),
        _start_check=_read_start_check(about.get("look", "not needed")),
        _doubts=tuple(about.get("against", ())),
        task=about.get("task", "MAR"),
        accuracy=about.get("accuracy"),
        check=Check(**about["check"]) if "check" in about else None,
        _open=recorders,
        _blocks=blocks,
    )


def _check_sets(arrays: dict[str, Array], cards: Array, cells: int, joint: int) -> None:
    """Refuse recorded sets of sites whose rows or cells do not exist."""
    start, member, cell = (arrays[name] for name in ("set_start", "set_member", "set_cell"))
    if start.size != cell.size + 1 or start[0] != 0 or start[-1] != member.size or (np.diff(start) < 0).any():
        raise ValueError("the rows of recorded sets do not match")
    if joint > cell.size:
        raise ValueError("there are fewer recorded sets than the header says")
    for first, low, high in zip(cell.tolist(), start[:-1].tolist(), start[1:].tolist(), strict=True):
        if first + math.prod(cards[member[low:high]].tolist()) > cells:
            raise ValueError("the cells of recorded sets do not exist")


def _read_unreached(doubt: Any) -> Unreached:
    if not fits(doubt, list) or not fits(doubt[0], str) or not fits(doubt[2:], [(bool, str)]):
        raise ValueError("a state that was not reached is damaged")
    return Unreached(*doubt)


def _read_recorder(about: dict[str, Any]) -> OpenRecorder:
    """Return a recorder that can conclude what is in a saved result."""
    known = all_recorders().get(about["class"])
    if known is None or not issubclass(known, OpenRecorder):
        raise ValueError(f"the recorder {about['class']} is not known here; import the module that defines it")
    return known.revive(about)


_FINDINGS = {"cells": [int], "here": [float], "there": [float], "strangers": int, "energy": str}


def _read_start_check(written: Any) -> StartCheck | str:
    """Return what the dispersed-start check of a saved result has found, or why there was none."""
    if isinstance(written, str):
        return written
    found = written["findings"]
    check_header(found, _FINDINGS, ValueError)
    listed = {name: tuple(found[name]) for name in ("cells", "here", "there")}
    return StartCheck(written["chains"], written["sweeps"], Findings(**{**found, **listed}), written["complete"])


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
    return read_labels(written, "a site")


def write_numbers(value: Any) -> Any:
    """Return plain data in which numbers that JSON cannot express are written as ``{"number": "inf"}``."""
    if isinstance(value, dict):
        return {key: write_numbers(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [write_numbers(one) for one in value]
    return {"number": str(value)} if isinstance(value, float) and not math.isfinite(value) else value


def read_numbers(value: Any) -> Any:
    """Undo :func:`write_numbers`."""
    if isinstance(value, dict):
        return (
            float(value["number"]) if set(value) == {"number"} else {k: read_numbers(one) for k, one in value.items()}
        )
    return [read_numbers(one) for one in value] if isinstance(value, list) else value
