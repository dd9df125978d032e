"""Starts of chains of models in the BUGS language, and the coefficients of their normal variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._common.notice import warn_user
from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs.compiled.machine import MEANS, MEASURE
from gibbsite.applications.bugs.elements import element_of
from gibbsite.applications.bugs.functions import Operation
from gibbsite.applications.bugs.network import Reach
from gibbsite.applications.bugs.simulation.evaluation import Evaluation, Law
from gibbsite.applications.bugs.tables import BOUNDED, CODE, LOWER, TABLE, UNBOUNDED, UPPER
from gibbsite.errors import ModelError, SupportError

if TYPE_CHECKING:
    from gibbsite.applications.bugs.model import BugsModel


def measure(model: BugsModel, reach: Reach, members: Ints, size: int) -> Floats:
    """Return how the residuals of normal variables change with each of some unknowns."""
    whole, part = (Evaluation(model.network, model.registers) for _ in range(2))
    part.values, everything = whole.values, whole.add_everything()
    part.add_segments(reach.segment)
    part.add_list(reach.listed)
    for place, begin, middle, end in zip(members, reach.begin, reach.middle, reach.end, strict=True):
        part.add_unit(size=size, PLACE=place, BEGIN=begin, MIDDLE=middle, END=end)
    best = np.full(size, np.nan)
    for step in (1.0, 1e-3, 1e-6):  # probabilities may be rounded to 0 or 1 far away
        _fill(model, whole.values, np.random.default_rng(0), step)
        whole.values[members] = 0.0
        whole.call(everything)
        found = part.call(MEASURE, step)[:size].copy()
        if np.isfinite(found).sum() > np.isfinite(best).sum():
            best = found
        if np.isfinite(found).all():
            break
        whole.values[model.network.unknown] = np.nan
    return best


def means(model: BugsModel, nodes: Ints, members: Ints) -> Floats:
    """Return the means of nodes of normal numbers, in ascending order, where some unknowns are 0."""
    at = Evaluation(model.network, model.registers)
    everything, segments = at.add_everything(), model.network.gapless(nodes)
    begin = at.add_segments(segments)
    unit = at.add_unit(size=nodes.size, MIDDLE=begin, END=begin + segments.shape[0])
    _fill(model, at.values, np.random.default_rng(0), 1.0)
    at.values[members] = 0.0
    at.call(everything)
    return at.call(MEANS, unit)[: nodes.size].copy()


def log_density(model: BugsModel, values: Floats) -> float:
    """Return the joint log-density at the values of all places, after computing the deterministic ones in place."""
    at = Evaluation(model.network, model.registers)
    everything = at.add_everything()
    at.values[:] = values
    at.call(everything)
    values[:] = at.values
    return at.density()


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


def _enter_intervals(model: BugsModel, values: Floats, rng: np.random.Generator) -> None:
    """Move unknowns into the intervals in which they were observed to lie by ``dinterval``."""
    network = model.network
    for number, compiled in enumerate(model.assembly.compiled):
        if not network.stochastic[number] or compiled.row[CODE] != dist.INTERVAL:
            continue
        first = compiled.code[compiled.parameters[0]]
        if first.reads is None or first.reads.shape[1] != 1:
            continue
        rows = np.arange(compiled.rule.n)
        at = Evaluation(network, model.registers)
        everything, law = at.add_everything(), Law(at, number, rows)
        at.values[:] = values
        at.call(everything)
        cuts = law.parameters()[0][1]
        seen = values[compiled.targets[:, 0]]
        places = np.broadcast_to(first.reads[:, 0], rows.shape)
        edges = np.concatenate([np.full((rows.size, 1), -np.inf), cuts, np.full((rows.size, 1), np.inf)], axis=1)
        which = np.where((seen >= 0) & (seen <= cuts.shape[1]), seen, 0).astype(np.int64)
        low, high = edges[rows, which], edges[rows, which + 1]
        wrong = network.unknown[places] & (seen == which) & ~((values[places] > low) & (values[places] <= high))
        for place, least, most in zip(places[wrong], low[wrong], high[wrong], strict=True):
            size, u = np.exp(rng.normal()), rng.uniform(0.1, 0.9)
            if np.isfinite(least) and np.isfinite(most):
                values[place] = least + u * (most - least)
            elif np.isfinite(least):
                values[place] = least + size * max(0.2 * abs(least), 0.1)
            else:
                values[place] = most * u if most > 0.0 else most - size * max(0.2 * abs(most), 0.1)


def _constant(model: BugsModel, compiled: Any, parameter: int) -> float:
    one = compiled.code[compiled.parameters[parameter]]
    if one.operation != Operation.CONSTANT:
        return float("nan")
    return float(list(model.assembly.constants)[one.operands[0]])


def _held(model: BugsModel, compiled: Any, register: int) -> Floats:
    """Return the values of a register of a rule that holds data or a number; otherwise NaN."""
    one, turns = compiled.code[register], np.arange(compiled.rule.n)
    if one.operation != Operation.LOAD:
        known = list(model.assembly.constants)[one.operands[0]] if one.operation == Operation.CONSTANT else np.nan
        return np.full(compiled.rule.n, known)
    kind, first, distance, begin = model.assembly.leaf_rows[one.operands[0]]
    table = kind == TABLE
    places = np.concatenate(model.assembly.index_parts)[begin + turns] if table else first + distance * turns
    return np.asarray(model.start_values[places])


def _limits(model: BugsModel) -> tuple[Floats, Floats]:
    """Return the bounds of all places: those of distributions, and of their truncation."""
    low, high = np.full(model.start_values.size, -np.inf), np.full(model.start_values.size, np.inf)

    def add(places: Ints, least: Floats, most: Floats) -> None:
        np.fmax.at(low, places, least)
        np.fmin.at(high, places, most)

    for compiled in model.assembly.compiled:
        distribution = compiled.rule.distribution
        if distribution is None:
            continue
        places = compiled.targets[:, 0]
        if distribution.scalar:
            add(places, np.full(places.size, distribution.low), np.full(places.size, distribution.high))
        for column, sign in ((LOWER, 1.0), (UPPER, -1.0)):
            if compiled.row[BOUNDED] != UNBOUNDED and compiled.row[column] >= 0:
                bound = _held(model, compiled, compiled.row[column])
                add(places, bound if sign > 0 else np.full(bound.size, np.nan), bound if sign < 0 else bound * np.nan)
    return low, high


def _put_inside(model: BugsModel, values: Floats, limits: tuple[Floats, Floats], rng: np.random.Generator) -> None:
    """Move unknowns that are outside their bounds to a random place between them."""
    low, high = (each[model.network.unknown] for each in limits)
    x = values[model.network.unknown]
    away, share = np.abs(x - np.floor(x)) + rng.exponential(1.0, x.size), rng.uniform(0.1, 0.9, x.size)
    with np.errstate(invalid="ignore"):
        inside = np.where(np.isfinite(low), low * (1.0 + 0.2 * share * (low > 0.0)) + away * (low <= 0.0), high - away)
        inside = np.where(np.isfinite(low) & np.isfinite(high), low + share * (high - low), inside)
        moved = (x <= low) & (x != np.floor(x)) | (x < low) | (x > high)
    whole = x == np.floor(x)
    values[model.network.unknown] = np.where(moved, np.where(whole, np.ceil(inside), inside), x)


def draw_start(model: BugsModel, given: dict[str, Floats], rng: np.random.Generator, tries: int) -> Floats:
    """Return a start with positive density that has the given initial values."""
    fixed = model.start_values.copy()
    for name, array in given.items():
        _put(model, fixed, name, array)
    limits = _limits(model)
    chosen = model.network.unknown & ~np.isnan(fixed)
    limits[0][chosen], limits[1][chosen] = -np.inf, np.inf
    for attempt in range(tries):
        values = fixed.copy()
        _fill(model, values, rng, (0.5, 0.1, 1.0, 2.0)[attempt % 4])
        _put_inside(model, values, limits, rng)
        _enter_intervals(model, values, rng)
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
