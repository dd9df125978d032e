"""The entry to compiled code: one function, called by its address, for all models."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Words64
from gibbsite._numba.book import address_of, array_in
from gibbsite._numba.jit import Integer, called, compiled
from gibbsite._numba.pointer import call_pointer, point_at, pointed
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.compiled.array_densities import array_density
from gibbsite.applications.bugs.compiled.batch import update_batch
from gibbsite.applications.bugs.compiled.chain_block import update_chain
from gibbsite.applications.bugs.compiled.conjugate import update_beta, update_gamma, update_normal
from gibbsite.applications.bugs.compiled.conjugate_arrays import update_dirichlet, update_wishart
from gibbsite.applications.bugs.compiled.evaluator import (
    C_REGISTERS,
    C_VALUES,
    C_WORK,
    LANES,
    S_INDEX,
    S_LIST,
    S_RULE,
    S_SEGMENT,
    S_SLICES,
    S_UNIT,
    run_rule,
)
from gibbsite.applications.bugs.compiled.glm_block import RATES, mean_column, predictor_of, update_predictors
from gibbsite.applications.bugs.compiled.moves import update_scale, update_shift
from gibbsite.applications.bugs.compiled.normal_block import update_block
from gibbsite.applications.bugs.compiled.segments import scalar_density, segment_density
from gibbsite.applications.bugs.compiled.updates import (
    accept,
    log_likelihood,
    recompute,
    update_finite,
    update_forward,
    update_simplex,
    update_slice,
)
from gibbsite.applications.bugs.distributions import BERNOULLI
from gibbsite.applications.bugs.tables import CODE, FOURTH, INSTANCES, KIND, LOGICAL, MATRIX, STOCHASTIC, WIDTH, Tables
from gibbsite.sampling.sweep import entries

# What can be asked besides an update of a unit.
ADD_UP, MEASURE, POINTWISE, PARAMETERS, LIKELIHOOD, MEANS = -1, -2, -3, -4, -5, -6


class Chain(NamedTuple):
    """The arrays of a chain: values of all places, registers, generator, widths, counts, work space, pointers."""

    values: Floats
    registers: Floats
    words: Words64
    widths: Floats
    counts: Ints
    work: Floats
    book: Ints

    @property
    def missing(self) -> tuple[str, ...]:
        """Arrays that may contain NaN."""
        return ("values", "registers", "widths", "work")


@pointed
def run(static: Ints, chain: Ints, number: float, what: int) -> None:
    """Make the update of a unit, or evaluate the model."""
    if what == ADD_UP:
        array_in(chain, C_WORK, np.float64)[0] = _total(static, chain)
        return
    if what == MEASURE:
        _measure(static, chain, number)
        return
    if what == LIKELIHOOD:
        array_in(chain, C_WORK, np.float64)[0] = log_likelihood(static, chain, np.int64(number))
        return
    if what == MEANS:
        _means(static, chain, np.int64(number), 0, 0.0)
        return
    if what == POINTWISE:
        _pointwise(static, chain, np.int64(number))
        return
    if what == PARAMETERS:
        _parameters(static, chain, np.int64(number))
        return
    row = array_in(static, S_UNIT, np.int64)
    kind = row[units.UNIT_WIDTH * what + units.UPDATE]
    if kind == units.NORMAL_BLOCK:
        update_block(static, chain, what)
    elif kind == units.SCALED_GAMMA:
        update_gamma(static, chain, what)
    elif kind == units.SLICE or kind == units.WHOLE_SLICE:
        update_slice(static, chain, what)
    elif kind == units.FINITE:
        update_finite(static, chain, what)
    elif kind == units.CONJUGATE_BETA:
        update_beta(static, chain, what)
    elif kind == units.CHAIN:
        update_chain(static, chain, what)
    elif kind == units.PREDICTOR_BLOCK:
        update_predictors(static, chain, what)
    elif kind == units.CONJUGATE_NORMAL:
        update_normal(static, chain, what)
    elif kind == units.FORWARD:
        update_forward(static, chain, what)
    elif kind == units.CONJUGATE_DIRICHLET:
        update_dirichlet(static, chain, what)
    elif kind == units.SIMPLEX_SLICE:
        update_simplex(static, chain, what)
    elif kind == units.CONJUGATE_WISHART:
        update_wishart(static, chain, what)
    elif kind == units.SCALE:
        update_scale(static, chain, what)
    elif kind == units.SHIFT:
        update_shift(static, chain, what)
    elif kind == units.BATCH:
        update_batch(static, chain, what)
    else:
        if number == 0.0:  # within a sweep, every update has computed what depends on it
            recompute(static, chain, what)
        deviance = row[units.UNIT_WIDTH * what + units.EXTRA_A]
        if deviance > 0:
            array_in(chain, C_VALUES, np.float64)[deviance - 1] = -2.0 * log_likelihood(static, chain, what)
        accept(static, chain, what)


@called
def _total(static: Ints, chain: Ints) -> float:
    """Return the joint log-density."""
    rules = array_in(static, S_RULE, np.int64)
    total = 0.0
    for rule in range(rules.size // 16):
        kind = rules[16 * rule + KIND]
        if kind != LOGICAL and kind != MATRIX:
            total += segment_density(static, chain, rule, False, 0, rules[16 * rule + INSTANCES])
            if not total > -math.inf:
                return -math.inf
    return total


@called
def _pointwise(static: Ints, chain: Ints, rule: Integer) -> None:
    """Write the log-density of each instance of a stochastic rule to the end of the work array."""
    rules = array_in(static, S_RULE, np.int64)
    many, scalar = rules[16 * rule + INSTANCES], rules[16 * rule + KIND] == STOCHASTIC
    work = array_in(chain, C_WORK, np.float64)
    out = work.size - many
    for begin in range(0, many, LANES):
        m = min(LANES, many - begin)
        run_rule(static, chain, rule, False, begin, m)
        for j in range(m):
            if scalar:
                work[out + begin + j] = scalar_density(static, chain, rule, j)
            else:
                work[out + begin + j] = array_density(static, chain, rule, False, begin, j)


@called
def _parameters(static: Ints, chain: Ints, unit: Integer) -> None:
    """Write registers of listed instances of a rule to the end of the work array, one register after another."""
    row = array_in(static, S_UNIT, np.int64)
    lists = array_in(static, S_LIST, np.int32)
    r = array_in(chain, C_REGISTERS, np.float64)
    work = array_in(chain, C_WORK, np.float64)
    at = units.UNIT_WIDTH * unit
    count, many, registers = row[at + units.COUNT], row[at + units.EXTRA_A], row[at + units.EXTRA_B]
    out = work.size - many * count
    for begin in range(0, count, LANES):
        m = min(LANES, count - begin)
        run_rule(static, chain, row[at + units.OWN], True, row[at + units.EXTRA_C] + begin, m)
        for q in range(many):
            for j in range(m):
                work[out + q * count + begin + j] = r[lists[registers + q] * LANES + j]


@called
def _measure(static: Ints, chain: Ints, step: float) -> None:
    """Write to the work array how the residuals of normal variables change with each of some unknowns."""
    row = array_in(static, S_UNIT, np.int64)
    v = array_in(chain, C_VALUES, np.float64)
    kept = 0
    for unit in range(row.size // units.UNIT_WIDTH):
        place = row[units.UNIT_WIDTH * unit + units.PLACE]
        before, begin = v[place], kept
        for turn in range(2):
            v[place] = step * turn
            recompute(static, chain, unit)
            kept = _means(static, chain, unit, begin, 0.0 if turn == 0 else step)
        v[place] = before
        recompute(static, chain, unit)


@called
def _means(static: Ints, chain: Ints, unit: Integer, kept: Integer, step: float) -> Integer:
    """Write means of the stochastic dependents of a unit, or how they have decreased; return where they end."""
    row = array_in(static, S_UNIT, np.int64)
    rules = array_in(static, S_RULE, np.int64)
    segment = array_in(static, S_SEGMENT, np.int64)
    slices = array_in(static, S_SLICES, np.int64)
    index = array_in(static, S_INDEX, np.int32)
    v = array_in(chain, C_VALUES, np.float64)
    r = array_in(chain, C_REGISTERS, np.float64)
    work = array_in(chain, C_WORK, np.float64)
    at = units.UNIT_WIDTH * unit
    for s in range(row[at + units.MIDDLE], row[at + units.END]):
        rule, listed = segment[4 * s], bool(segment[4 * s + 1])
        first, count = segment[4 * s + 2], segment[4 * s + 3]
        scalar, width = rules[16 * rule + KIND] == STOCHASTIC, rules[16 * rule + WIDTH]
        mean = rules[16 * rule + mean_column(rules[16 * rule + CODE])]
        for begin in range(first, first + count, LANES):
            m = min(LANES, first + count - begin)
            run_rule(static, chain, rule, listed, begin, m)
            for j in range(m):
                for e in range(width):
                    if scalar:
                        found = r[mean * LANES + j]
                        if rules[16 * rule + CODE] >= BERNOULLI or rules[16 * rule + CODE] in RATES:
                            found = predictor_of(rules[16 * rule + FOURTH], found)
                    else:
                        place = np.int64(r[slices[4 * mean] * LANES + j])
                        found = v[place + index[slices[4 * mean + 1] + e]]
                    work[kept] = found if step == 0.0 else (work[kept] - found) / step
                    kept += 1
    return kept


@compiled
def call_at(address: int, static: Ints, chain: Ints, number: float, what: int) -> None:
    """Call the function at an address, with pointer tables that are filled."""
    call_pointer(address, static, chain, number, what)


def address() -> int:
    """Return the address of :func:`run`, compiled or loaded from disk."""
    return point_at(run, np.zeros(1, np.int64), np.zeros(1, np.int64), 0.0, 0)


def static_book(tables: Tables, lists: Any, segment: Ints, unit: Ints, numbers: Floats) -> Ints:
    """Return the pointer table of the arrays that do not change; the caller keeps them alive."""
    whole, double, half = np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.int32)
    kinds = (half, double, whole, half, whole, whole, whole, half, whole, whole, double)
    arrays: list[Any] = [*(each.ravel() for each in tables), lists, segment, unit, numbers]
    pairs: Any = zip(arrays, kinds, strict=True)
    return np.array(entries(*pairs), np.int64)


def flat_tables(tables: Tables) -> Tables:
    """Return the tables as compiled code reads them: one-dimensional."""
    flat: list[Any] = [np.ascontiguousarray(each.ravel()) for each in tables]
    return Tables(*flat)


def fill_book(chain: Any, x: Floats) -> None:
    """Write the addresses of the arrays of a chain, and of its state, to its pointer table."""
    for k, array in enumerate((chain.values, chain.registers, x, chain.words, chain.widths, chain.counts, chain.work)):
        chain.book[2 * k] = address_of(array)
        chain.book[2 * k + 1] = array.size


def call(static: Ints, chain: Chain, x: Floats, what: int, number: float = 0.0) -> None:
    """Call the function for a unit, or for one of the other tasks, from Python."""
    fill_book(chain, x)
    call_at(address(), static, chain.book, number, what)
