"""Mini-buckets: table entries per second of a pass, and sites drawn per second, on one core."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import gibbsite as gs
from benchmarks.measure import Spread
from benchmarks.report import Section, Target
from gibbsite.inference.exact.plan import outline
from gibbsite.inference.importance.base import SourceSettings
from gibbsite.inference.importance.mini_buckets.buckets import plan_buckets
from gibbsite.inference.importance.mini_buckets.proposal import pass_upwards, weigh_buckets
from gibbsite.inference.importance.mini_buckets.weighted_sum import fill_pool
from gibbsite.inference.importance.tally import make_tally

ENTRIES_PER_SECOND, SITES_PER_SECOND = 1e8, 1e5


def measure(*, quick: bool = False) -> Section:
    """Measure both on a lattice, and on a model of three states."""
    repetitions, log2 = (3, 14) if quick else (7, 20)
    rng = np.random.default_rng(1)
    models = {
        "30 x 30 Ising lattice": gs.ising_grid((30, 30), coupling=rng.normal(size=(2, 30, 30))),
        "16 x 16 Potts lattice": gs.potts_grid((16, 16), states=3, coupling=0.8),
    }
    rows, data, targets = [], {}, []
    for name, model in models.items():
        found = outline(model)
        plan = plan_buckets(found, 2**log2)
        pool = fill_pool(plan, found.reduction.problem)
        upwards = partial(pass_upwards, plan, pool)
        passes = [_seconds(upwards) for _ in range(repetitions + 1)][1:]
        every = np.ones(model.n_sites, np.bool_)
        setting = SourceSettings(1, every, math.inf, None, lambda: 0.0, 1, lambda: False)
        source = weigh_buckets(model, found, plan, setting, 0)
        assert source is not None
        blocks, tally = (4, 40)[not quick], make_tally(model.cards)
        draw = partial(source.draw, tally, 0, 0, blocks, 16)
        draws = [_seconds(draw) for _ in range(repetitions + 1)][1:]
        entries = Spread.of([plan.work / taken for taken in passes])
        sites = Spread.of([256.0 * blocks * model.n_sites / taken for taken in draws])
        for what, seen, least in (("entries", entries, ENTRIES_PER_SECOND), ("sites", sites, SITES_PER_SECOND)):
            figure = f"{seen.median / 1e6:,.1f} million {what} a second"
            rows.append([f"{name}, tables of 2^{log2}", figure, f"{seen.low / 1e6:.3g} .. {seen.high / 1e6:.3g}"])
            data[f"{name}, {what}"] = seen.to_dict()
            million = Spread.of([value / 1e6 for value in (seen.low, seen.median, seen.high)])
            promise = f"mini-buckets, {name}, {what} a second"
            targets.append(Target.of(promise, million, least / 1e6, "million"))
    return Section("mini_bucket", targets, ["mini-buckets", "processor time", "range"], rows, data)


def _seconds(work: Callable[[], Any]) -> float:
    """Return the processor time of a call."""
    begun = time.process_time()
    work()
    return max(time.process_time() - begun, 1e-9)
