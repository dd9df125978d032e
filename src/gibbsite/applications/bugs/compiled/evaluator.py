"""Run the instructions of rules in compiled code.

All arrays that do not change are in one pointer table, ``static``; those of a chain are in another one, ``chain``
(:mod:`gibbsite._numba.book`). Registers hold the values of up to ``WIDTH`` instances, so that the cost of choosing an
operation is shared by all of them.
"""

from __future__ import annotations

import math

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite._numba.book import array_in
from gibbsite._numba.jit import Integer, called, inlined
from gibbsite.applications.bugs.compiled.quantiles import distribution_value
from gibbsite.applications.bugs.compiled.special import normal_cdf, normal_quantile
from gibbsite.applications.bugs.functions import Operation
from gibbsite.applications.bugs.tables import AFFINE, CODE_BEGIN, CODE_END, SINGLE

#: Instances that a register holds.
LANES = 64

# The pointer table of arrays that do not change, and that of a chain.
S_CODE, S_CONSTANTS, S_LEAF, S_INDEX, S_SLICES, S_STEPS, S_RULE, S_LIST, S_SEGMENT, S_UNIT, S_NUMBERS = range(11)
C_VALUES, C_REGISTERS, C_X, C_WORDS, C_TUNING, C_COUNTS, C_WORK = range(7)

_O = Operation
_CONSTANT, _LOAD, _ELEMENT, _OFFSET, _FETCH = (int(k) for k in range(5))
_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _POWER = (int(k) for k in range(5, 10))
_NEGATE, _EXP, _LOG, _SQRT = int(_O.NEGATE), int(_O.EXP), int(_O.LOG), int(_O.SQRT)
_FIRST_OF_TWO, _LAST_OF_TWO = int(_O.EQUALS), int(_O.OR)
_NOT, _CHOOSE, _LOWER, _LARGER = int(_O.NOT), int(_O.CHOOSE), int(_O.LOWER), int(_O.LARGER)
_EQUALS, _GREATER, _AT_LEAST, _LESS = int(_O.EQUALS), int(_O.GREATER), int(_O.AT_LEAST), int(_O.LESS)
_AT_MOST, _DIFFER, _AND = int(_O.AT_MOST), int(_O.DIFFER), int(_O.AND)
_ILOGIT, _LOGIT, _PHI, _PROBIT = int(_O.ILOGIT), int(_O.LOGIT), int(_O.PHI), int(_O.PROBIT)
_CLOGLOG, _ICLOGLOG, _ABS = int(_O.CLOGLOG), int(_O.ICLOGLOG), int(_O.ABS)
_SIN, _COS, _TAN = int(_O.SIN), int(_O.COS), int(_O.TAN)
_ARCSIN, _ARCCOS, _ARCTAN = int(_O.ARCSIN), int(_O.ARCCOS), int(_O.ARCTAN)
_SINH, _COSH, _TANH = int(_O.SINH), int(_O.COSH), int(_O.TANH)
_ARCSINH, _ARCCOSH, _ARCTANH = int(_O.ARCSINH), int(_O.ARCCOSH), int(_O.ARCTANH)
_LOGGAM, _LOGFACT, _ROUND, _TRUNC, _STEP = (int(_O.LOGGAM), int(_O.LOGFACT), int(_O.ROUND), int(_O.TRUNC), int(_O.STEP))
_SUM, _MEAN, _PRODUCT, _INNER = int(_O.SUM), int(_O.MEAN), int(_O.PRODUCT), int(_O.INNER)
_LEAST, _MOST, _SD, _LOGDET = int(_O.LEAST), int(_O.MOST), int(_O.SD), int(_O.LOGDET)
_INTERPOLATE, _RANKED, _ORDER, _DISTRIBUTION = (
    int(_O.INTERPOLATE),
    int(_O.RANKED),
    int(_O.ORDER),
    int(_O.DISTRIBUTION),
)


@inlined
def instance_at(lists: Array, listed: bool, first: Integer, j: Integer) -> Integer:
    """Return the j-th instance of a segment that is a list or a range."""
    return np.int64(lists[first + j]) if listed else first + j


@inlined
def leaf_place(leaf: Array, index: Array, number: Integer, k: Integer) -> Integer:
    """Return the place that a leaf reads for instance k."""
    kind = leaf[4 * number]
    if kind == SINGLE:
        return leaf[4 * number + 1]
    if kind == AFFINE:
        return leaf[4 * number + 1] + leaf[4 * number + 2] * k
    return np.int64(index[leaf[4 * number + 3] + k])


@called
def run_rule(static: Ints, chain: Ints, rule: Integer, listed: bool, first: Integer, m: Integer) -> None:
    """Compute the registers of a rule for ``m`` instances."""
    code = array_in(static, S_CODE, np.int32)
    rules = array_in(static, S_RULE, np.int64)
    leaf = array_in(static, S_LEAF, np.int64)
    index = array_in(static, S_INDEX, np.int32)
    lists = array_in(static, S_LIST, np.int32)
    constants = array_in(static, S_CONSTANTS, np.float64)
    v = array_in(chain, C_VALUES, np.float64)
    r = array_in(chain, C_REGISTERS, np.float64)
    for number in range(rules[16 * rule + CODE_BEGIN], rules[16 * rule + CODE_END]):
        at = 5 * number
        what = code[at]
        out, a, b = code[at + 1] * LANES, np.int64(code[at + 2]), np.int64(code[at + 3])
        if what == _LOAD:
            kind, base = leaf[4 * a], leaf[4 * a + 1]
            if kind == SINGLE:
                for j in range(m):
                    r[out + j] = v[base]
            elif kind == AFFINE:
                step = leaf[4 * a + 2]
                if listed:
                    for j in range(m):
                        r[out + j] = v[base + step * lists[first + j]]
                else:
                    for j in range(m):
                        r[out + j] = v[base + step * (first + j)]
            else:
                begin = leaf[4 * a + 3]
                if listed:
                    for j in range(m):
                        r[out + j] = v[index[begin + lists[first + j]]]
                else:
                    for j in range(m):
                        r[out + j] = v[index[begin + first + j]]
            continue
        if what == _CONSTANT:
            for j in range(m):
                r[out + j] = constants[a]
            continue
        if what == _ELEMENT:
            for j in range(m):
                r[out + j] = leaf_place(leaf, index, a, instance_at(lists, listed, first, j))
            continue
        if what >= _SUM:
            _reduce(static, chain, what, number, listed, first, m)
            continue
        a *= LANES
        b *= LANES
        if what <= _POWER:
            if what == _ADD:
                for j in range(m):
                    r[out + j] = r[a + j] + r[b + j]
            elif what == _SUBTRACT:
                for j in range(m):
                    r[out + j] = r[a + j] - r[b + j]
            elif what == _MULTIPLY:
                for j in range(m):
                    r[out + j] = r[a + j] * r[b + j]
            elif what == _DIVIDE:
                for j in range(m):
                    r[out + j] = r[a + j] / r[b + j]
            elif what == _POWER:
                for j in range(m):
                    r[out + j] = r[a + j] * r[a + j] if r[b + j] == 2.0 else r[a + j] ** r[b + j]
            elif what == _OFFSET:
                steps = array_in(static, S_STEPS, np.int64)
                size, distance = steps[2 * np.int64(code[at + 4])], steps[2 * np.int64(code[at + 4]) + 1]
                for j in range(m):
                    chosen = r[b + j]
                    inside = 0.5 < chosen < size + 0.5
                    r[out + j] = r[a + j] + distance * (np.floor(chosen + 0.5) - 1.0) if inside else math.nan
            else:  # fetch
                for j in range(m):
                    r[out + j] = v[np.int64(r[a + j])] if r[a + j] >= 0.0 else math.nan
        elif what == _CHOOSE:
            c = np.int64(code[at + 4]) * LANES
            for j in range(m):
                r[out + j] = r[b + j] if r[a + j] != 0.0 else r[c + j]
        elif what == _EXP:
            for j in range(m):
                r[out + j] = math.exp(r[a + j])
        elif what == _LOG:
            for j in range(m):
                r[out + j] = math.log(r[a + j])
        elif what == _ILOGIT:
            for j in range(m):
                r[out + j] = 1.0 / (1.0 + math.exp(-r[a + j]))
        elif what == _NEGATE:
            for j in range(m):
                r[out + j] = -r[a + j]
        elif what in (_LOWER, _LARGER) or _FIRST_OF_TWO <= what <= _LAST_OF_TWO:
            for j in range(m):
                r[out + j] = _of_two(what, r[a + j], r[b + j])
        else:
            for j in range(m):
                r[out + j] = _of_one(what, r[a + j])


@called
def _of_two(what: Integer, x: float, y: float) -> float:
    """Return a comparison, or the smaller or larger number."""
    if what == _LOWER:
        return min(x, y)
    if what == _LARGER:
        return max(x, y)
    if math.isnan(x) or math.isnan(y):
        return math.nan
    if what == _EQUALS:
        found = abs(x - y) <= 1e-14 * max(abs(x), abs(y))
    elif what == _GREATER:
        found = x > y
    elif what == _AT_LEAST:
        found = x >= y
    elif what == _LESS:
        found = x < y
    elif what == _AT_MOST:
        found = x <= y
    elif what == _DIFFER:
        found = x != y
    elif what == _AND:
        found = x != 0.0 and y != 0.0
    else:
        found = x != 0.0 or y != 0.0
    return 1.0 if found else 0.0


@called
def _of_one(what: Integer, x: float) -> float:
    """Return a function of one number."""
    if what == _SQRT:
        return math.sqrt(x)
    if what == _PHI:
        return normal_cdf(x)
    if what == _ICLOGLOG:
        return -math.expm1(-math.exp(x))
    if what == _LOGIT:
        return math.log(x) - math.log1p(-x)
    if what == _CLOGLOG:
        return math.log(-math.log1p(-x))
    if what == _PROBIT:
        return normal_quantile(x)
    if what == _STEP:
        return math.nan if math.isnan(x) else 1.0 if x >= 0.0 else 0.0
    if what == _NOT:
        return 1.0 if x == 0.0 else 0.0
    if what == _ABS:
        return abs(x)
    if what == _LOGGAM:
        return math.lgamma(x)
    if what == _LOGFACT:
        return math.lgamma(x + 1.0)
    if what == _ROUND:
        return math.floor(x + 0.5) if x >= 0.0 else -math.floor(0.5 - x)
    if what == _TRUNC:
        return math.floor(x) if x >= 0.0 else -math.floor(-x)
    if what == _SIN:
        return math.sin(x)
    if what == _COS:
        return math.cos(x)
    if what == _TAN:
        return math.tan(x)
    if what == _ARCSIN:
        return math.asin(x)
    if what == _ARCCOS:
        return math.acos(x)
    if what == _ARCTAN:
        return math.atan(x)
    if what == _SINH:
        return math.sinh(x)
    if what == _COSH:
        return math.cosh(x)
    if what == _TANH:
        return math.tanh(x)
    if what == _ARCSINH:
        return math.asinh(x)
    if what == _ARCCOSH:
        return math.acosh(x)
    if what == _ARCTANH:
        return math.atanh(x)
    return math.nan


@inlined
def slice_size(slices: Array, leaf: Array, index: Array, number: Integer, k: Integer) -> Integer:
    """Return the number of entries of a slice for instance k."""
    many = slices[4 * number + 3]
    return slices[4 * number + 2] if many < 0 else leaf_place(leaf, index, many, k)


@called
def _reduce(
    static: Ints, chain: Ints, what: Integer, number: Integer, listed: bool, first: Integer, m: Integer
) -> None:
    """Compute a function of arrays for ``m`` instances."""
    code = array_in(static, S_CODE, np.int32)
    leaf = array_in(static, S_LEAF, np.int64)
    index = array_in(static, S_INDEX, np.int32)
    lists = array_in(static, S_LIST, np.int32)
    slices = array_in(static, S_SLICES, np.int64)
    v = array_in(chain, C_VALUES, np.float64)
    r = array_in(chain, C_REGISTERS, np.float64)
    at = 5 * number
    out, a, b, c = (
        np.int64(code[at + 1]) * LANES,
        np.int64(code[at + 2]),
        np.int64(code[at + 3]),
        np.int64(code[at + 4]),
    )
    for j in range(m):
        k = instance_at(lists, listed, first, j)
        if what == _DISTRIBUTION:
            first_of = b * LANES + j
            r[out + j] = distribution_value(
                c, r[a * LANES + j], r[first_of], r[first_of + LANES], r[first_of + 2 * LANES], r[first_of + 3 * LANES]
            )
            continue
        one = b if _INTERPOLATE <= what <= _ORDER else a
        size = slice_size(slices, leaf, index, one, k)
        begin = r[slices[4 * one] * LANES + j]
        if not begin >= 0.0:
            r[out + j] = math.nan
            continue
        place, relative = np.int64(begin), slices[4 * one + 1]
        total = 0.0
        if what in (_SUM, _MEAN, _SD):
            for e in range(size):
                total += v[place + index[relative + e]]
            if what == _MEAN:
                total /= size
            elif what == _SD:
                mean, square = total / size, 0.0
                for e in range(size):
                    square += (v[place + index[relative + e]] - mean) ** 2
                total = math.sqrt(square / (size - 1.0))
        elif what == _INNER:
            start = r[slices[4 * b] * LANES + j]
            other = slices[4 * b + 1]
            if start >= 0.0:
                for e in range(size):
                    total += v[place + index[relative + e]] * v[np.int64(start) + index[other + e]]
            else:
                total = math.nan
        elif what == _PRODUCT:
            total = 1.0
            for e in range(size):
                total *= v[place + index[relative + e]]
        elif what == _LEAST:
            total = math.inf
            for e in range(size):
                total = min(total, v[place + index[relative + e]])
        elif what == _MOST:
            total = -math.inf
            for e in range(size):
                total = max(total, v[place + index[relative + e]])
        elif what == _INTERPOLATE:
            x, start = r[a * LANES + j], np.int64(r[slices[4 * c] * LANES + j])
            other = slices[4 * c + 1]
            e = 1
            while e < size - 1 and v[place + index[relative + e]] < x:
                e += 1
            low, high = v[place + index[relative + e - 1]], v[place + index[relative + e]]
            below, above = v[start + index[other + e - 1]], v[start + index[other + e]]
            share = min(1.0, max(0.0, (x - low) / (high - low)))
            total = below + share * (above - below)
        elif _RANKED <= what <= _ORDER:
            total = _ranked(v, index, place, relative, size, r[a * LANES + j], what)
        else:
            work = array_in(chain, C_WORK, np.float64)
            side = np.int64(math.sqrt(size) + 0.5)
            for e in range(size):
                work[e] = v[place + index[relative + e]]
            total = 2.0 * log_root_determinant(work, 0, side)
        r[out + j] = total


@called
def _ranked(
    v: Floats, index: Array, place: Integer, relative: Integer, size: Integer, number: float, what: Integer
) -> float:
    """Return the entry of a rank, counted from the smallest; the rank of an entry; or which entry has a rank.

    Equal entries are ranked in their order.
    """
    for e in range(size):
        if what != _RANKED and what != _ORDER and e + 1 != number:
            continue
        mine, rank = v[place + index[relative + e]], 1
        for other in range(size):
            value = v[place + index[relative + other]]
            rank += value < mine or (value == mine and other < e)
        if what == _RANKED and rank == number:
            return float(mine)
        if what == _ORDER and rank == number:
            return e + 1.0
        if what != _RANKED and what != _ORDER:
            return float(rank)
    return math.nan


@called
def log_root_determinant(work: Floats, at: Integer, side: Integer) -> float:
    """Replace a symmetric matrix by its Cholesky factor; return half the log-determinant, NaN if not definite."""
    total = 0.0
    for i in range(side):
        for j in range(i + 1):
            value = work[at + i * side + j]
            for k in range(j):
                value -= work[at + i * side + k] * work[at + j * side + k]
            if i == j:
                if not value > 0.0:
                    return math.nan
                work[at + i * side + i] = math.sqrt(value)
                total += 0.5 * math.log(value)
            else:
                work[at + i * side + j] = value / work[at + j * side + j]
    return total
