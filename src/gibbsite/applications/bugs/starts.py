"""Starts of chains of models in the BUGS language, and the coefficients of their normal variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._common.notice import warn_user
from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.compiled.machine import ADD_UP, MEASURE, Chain, call, flat_tables, static_book
from gibbsite.applications.bugs.elements import element_of
from gibbsite.applications.bugs.network import Reach
from gibbsite.applications.bugs.tables import Tables
from gibbsite.errors import ModelError, SupportError

if TYPE_CHECKING:
    from gibbsite.applications.bugs.model import BugsModel


def _chain(model: BugsModel, work: int) -> Chain:
    return Chain(
        values=model.start_values.copy(),
        registers=np.zeros(model.registers),
        words=np.ones(4, np.uint64),
        widths=np.zeros(1),
        counts=np.zeros(8, np.int64),
        work=np.zeros(max(work, 4096)),
        book=np.zeros(14, np.int64),
    )


def measure(model: BugsModel, reach: Reach, members: Ints, size: int) -> Floats:
    """Return how the residuals of normal variables change with each of some unknowns."""
    tables = flat_tables(model.assembly.tables()[0])
    unit = np.zeros((members.size, units.UNIT_WIDTH), np.int64)
    unit[:, units.PLACE] = members
    unit[:, units.BEGIN], unit[:, units.MIDDLE], unit[:, units.END] = reach.begin, reach.middle, reach.end
    lists = np.append(reach.listed, np.int32(0)).astype(np.int32)
    segment = np.append(reach.segment.ravel(), 0).astype(np.int64)
    flat = unit.ravel()
    numbers = np.zeros(1)
    static = static_book(tables, lists, segment, flat, numbers)
    chain = _chain(model, size + 8)
    found = np.zeros(0)
    for step in (1.0, 1e-3, 1e-6):  # probabilities may be rounded to 0 or 1 far away
        _fill(model, chain.values, np.random.default_rng(0), step)
        chain.values[members] = 0.0
        _compute_all(model, chain, tables)
        call(static, chain, np.zeros(1), MEASURE, step)
        found = chain.work[:size].copy()
        if np.isfinite(found).all():
            break
        chain.values[model.network.unknown] = np.nan
    return found


def _compute_all(model: BugsModel, chain: Chain, tables: Tables) -> None:
    """Compute all deterministic variables."""
    segment = np.append(model.network.everything().ravel(), 0).astype(np.int64)
    row = np.zeros(units.UNIT_WIDTH, np.int64)
    row[units.UPDATE], row[units.MIDDLE] = units.COMPUTE, segment.size // 4
    lists, numbers = np.zeros(1, np.int32), np.zeros(1)
    static = static_book(tables, lists, segment, row, numbers)
    call(static, chain, np.zeros(1), 0)


def log_density(model: BugsModel, values: Floats) -> float:
    """Return the joint log-density at the values of all places, after computing the deterministic ones in place."""
    tables = flat_tables(model.assembly.tables()[0])
    biggest = max(each.targets.shape[1] for each in model.assembly.compiled)
    chain = _chain(model, 8 * biggest + 4 * int(model.assembly.tables()[0].slices[:, 2].max(initial=1)))
    chain.values[:] = values
    _compute_all(model, chain, tables)
    values[:] = chain.values
    nothing = np.zeros(1, np.int64)
    static = static_book(tables, np.zeros(1, np.int32), nothing, nothing, np.zeros(1))
    call(static, chain, np.zeros(1), ADD_UP)
    return float(chain.work[0])


def _fill(model: BugsModel, values: Floats, rng: np.random.Generator, scale: float) -> None:
    """Give unknowns simple random values in the range of their distributions."""
    network = model.network
    for number, compiled in enumerate(model.assembly.compiled):
        if not network.stochastic[number]:
            continue
        targets = compiled.targets
        rows = np.flatnonzero(network.unknown[targets].any(axis=1))
        if not rows.size:
            continue
        some = targets[rows]
        distribution = compiled.rule.distribution
        assert distribution is not None
        found = _simple(model, number, distribution, some.shape, rng, scale)
        hidden = network.unknown[some] & np.isnan(values[some])
        values[some[hidden]] = found[hidden]


def _simple(
    model: BugsModel, number: int, distribution: dist.Distribution, shape: tuple[int, ...], rng: Any, scale: float
) -> Floats:
    code, compiled = distribution.code, model.assembly.compiled[number]
    if code == dist.WISHART:
        side = round(shape[1] ** 0.5)
        found: Floats = np.tile(np.eye(side).ravel(), (shape[0], 1)) * np.exp(scale * rng.normal())
        return found
    if code == dist.DIRICHLET:
        return np.asarray(rng.dirichlet(np.full(shape[1], 5.0), shape[0]))
    if code == dist.CATEGORICAL:
        size = model.assembly.slice_rows[compiled.parameters[0]][2]
        return np.asarray(rng.integers(1, size + 1, shape), float)
    if code == dist.UNIFORM:
        ends = [_constant(model, compiled, k) for k in (0, 1)]
        if np.isfinite(ends).all():
            middle, half = (ends[0] + ends[1]) / 2.0, (ends[1] - ends[0]) / 2.0
            return np.asarray(middle + half * 0.5 * min(scale, 1.9) * rng.uniform(-1.0, 1.0, shape))
    if code == dist.PARETO:
        least = _constant(model, compiled, 1)
        return np.asarray((least if np.isfinite(least) else 1.0) * (1.0 + np.exp(scale * rng.normal(size=shape))))
    if code == dist.BERNOULLI and scale == 1.0:  # animals that were seen are alive, and inhabit their sites
        return np.ones(shape)
    if code in (dist.BERNOULLI, dist.INTERVAL):
        return np.asarray(rng.integers(0, 2, shape), float)
    if code == dist.GEOMETRIC:
        return np.asarray(rng.integers(1, 4, shape), float)
    if distribution.discrete:  # small, or all of them about some larger number
        least = int(10.0 ** rng.uniform(0.0, 3.0)) if scale >= 1.0 else 0
        return np.asarray(least + rng.integers(0, 3, shape), float)
    if distribution.high == 1.0:
        return np.asarray(0.5 + 0.5 * np.tanh(scale * rng.normal(size=shape)) * 0.9)
    if distribution.low == 0.0:
        return np.asarray(np.exp(scale * rng.normal(size=shape)))
    return np.asarray(scale * rng.normal(size=shape))


def _constant(model: BugsModel, compiled: Any, parameter: int) -> float:
    from gibbsite.applications.bugs.functions import Operation

    one = compiled.code[compiled.parameters[parameter]]
    if one.operation != Operation.CONSTANT:
        return float("nan")
    return float(list(model.assembly.constants)[one.operands[0]])


def draw_start(model: BugsModel, given: dict[str, Floats], rng: np.random.Generator, tries: int) -> Floats:
    """Return a start with positive density that has the given initial values."""
    fixed = model.start_values.copy()
    for name, array in given.items():
        _put(model, fixed, name, array)
    for attempt in range(tries):
        values = fixed.copy()
        _fill(model, values, rng, (0.5, 0.1, 1.0, 2.0)[attempt % 4])
        if log_density(model, values) > -np.inf:
            x: Floats = values[model.places]
            x[model.network.owner[model.places] < 0] = 0.0  # the deviance, computed at the end of a sweep
            if np.isfinite(x).all():
                return x
    if given:
        raise SupportError(
            "The initial values are impossible: the model gives them, together with the data, probability zero."
        )
    raise SupportError("No initial values of positive probability were found; give some with inits=.")


def _put(model: BugsModel, values: Floats, name: str, array: Floats) -> None:
    """Write initial values to their places."""
    if name not in model.assembly.offset:
        warn_user(f"the initial value of {name!r} is not used: the model has no such variable")
        return
    shape = model.assembly.values.arrays[name].shape
    if array.shape != shape and not (array.size == 1 and int(np.prod(shape)) == 1):
        raise ModelError(
            f"The initial value of {name!r} has the shape {list(array.shape)}, and the variable has {list(shape)}."
        )
    begin = model.assembly.offset[name]
    flat = array.ravel(order="F")
    places = begin + np.arange(flat.size)
    known = ~np.isnan(flat)
    data = known & ~np.isnan(model.start_values[places]) & (model.network.owner[places] >= 0)
    if data.any():
        element = element_of(model.assembly, int(places[data][0]))[1]
        raise ModelError(f"There is an initial value for {element}, which is in the data.")
    chosen = known & model.network.unknown[places]
    values[places[chosen]] = flat[chosen]
