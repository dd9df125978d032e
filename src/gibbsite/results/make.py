"""From what a run left behind to its result; nothing is judged here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.kernels.protocols import Finite
from gibbsite.results.result import JointSets, Result
from gibbsite.sampling.disk import write_pieces
from gibbsite.sampling.driver import Recording
from gibbsite.sampling.setup import Setup
from gibbsite.sampling.tape import BATCHES, DRAWS, LENGTH, read_pulse


def _source_of_errors(setup: Setup) -> str:
    """Return what standard errors can be taken from: not from draws, if means of batches were not kept."""
    errors = setup.kernel.error_source
    return "sums" if errors == "draws" and not setup.record.batches else errors


def _on_disk(folder: Path, sums: list[Floats], draws: int) -> tuple[Floats, Floats]:
    """Write the sums of all chains, and the means of all cells, as they are computed in memory."""
    cells = sums[0].size
    totals = write_pieces(folder / "sums.npy", (len(sums), cells), lambda part: np.stack([each[part] for each in sums]))
    means = write_pieces(
        folder / "marginals.npy", (cells,), lambda part: (totals[:, part] / max(draws, 1)).mean(axis=0)
    )
    return totals, means


def make_result(recording: Recording) -> Result:
    """Turn what a run left behind into a result; whether it may have missed something is not asked here."""
    setup, tapes = recording.setup, recording.tapes
    model, record = setup.model, setup.record
    counters = tapes[0].counters
    draws = int(counters[DRAWS])
    span = setup.kernel.natural_sweeps(model.n_sites) if isinstance(setup.kernel, Finite) else None
    if record.to is None:
        totals, means = np.stack([tape.total + tape.open_batch for tape in tapes]), None
    else:
        totals, means = _on_disk(record.to, [tape.open_batch for tape in tapes], draws)
    bests = np.array([tape.best[0] for tape in tapes if record.best]) + setup.layout.log_offset
    return Result(
        plan=replace(setup.plan, warmup=recording.warmup),
        domains=model.domains,
        evidence=model.evidence,
        evidence_labels=model.evidence_labels,
        binary=setup.graph.binary,
        n_marginal=record.n_marginal,
        draws=draws,
        warmup=recording.warmup,
        totals=totals,
        means=means,
        trace=np.stack([tape.trace[: counters[BATCHES]] for tape in tapes]),
        length=int(counters[LENGTH]),
        sets=JointSets(record.set_start, record.set_member, record.set_cell, record.n_joint),
        draw_sites=record.draw_sites,
        values=np.stack([tape.values[:draws] for tape in tapes]),
        energy=np.stack([tape.energy[:draws] - setup.layout.log_offset for tape in tapes]),
        bests=bests,
        best_x=tapes[int(np.argmax(bests))].best_x if record.best else np.zeros(0, setup.graph.state_dtype),
        errors=_source_of_errors(setup),
        remarks=tuple(remark.text for remark in setup.remarks),
        period=None if span is None else span // setup.plan.thin,
        report=recording.report,
        kept=recording.kept,
        pulse=np.stack([read_pulse(tape) for tape in tapes]) + setup.layout.log_offset,
        open=(*(recorder for recorder, _ in record.open), *record.meetings),
        blocks=(*(np.stack(blocks) for blocks in zip(*map(record.blocks, tapes), strict=True)), *recording.meetings),
        interrupted=recording.interrupted,
        seconds=recording.seconds,
    )
