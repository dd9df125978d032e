"""How the parameters of stochastic relations depend on the unknowns of another one: affine, as a power, or otherwise.

This is found from the instructions of rules, for all elements of a relation at once. Where elements differ, the answer
is the weaker one, so that an update that is derived from it is always right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from gibbsite.applications.bugs.functions import Operation
from gibbsite.applications.bugs.network import Network, distinct
from gibbsite.applications.bugs.nodes import Compiled, Instruction
from gibbsite.applications.bugs.tables import KIND, LOGICAL, MATRIX, VALUE

COPY, COMPLEMENT = 1, 2

_O = Operation
_LINKS = (_O.EXP, _O.ILOGIT, _O.PHI, _O.ICLOGLOG)
_TESTS = {_O.STEP, _O.EQUALS, _O.GREATER, _O.AT_LEAST, _O.LESS, _O.AT_MOST, _O.DIFFER, _O.AND, _O.OR, _O.NOT}


@dataclass(frozen=True)
class Form:
    """How a value depends on an unknown u.

    Attributes
    ----------
    level : int
        0: not at all; 1: a + b u, where a and b do not depend on u; 2: otherwise.
    static : bool
        b is the same in all draws.
    power : float, optional
        The value is c u^power, where c does not depend on u, or does not depend on u at all if ``selects``.
    selects : bool
        Whether the value depends on u is decided by other unknowns, such as an index.
    copies : int
        ``COPY`` if the value is u, ``COMPLEMENT`` if it is 1 - u, otherwise 0.
    link : int
        The operation of which the value is a result, for a linear predictor a + b u with a constant b, otherwise 0.
    """

    level: int = 0
    static: bool = True
    power: float | None = None
    selects: bool = False
    copies: int = 0
    link: int = 0


NONE = Form()
ITSELF = Form(1, True, 1.0, False, COPY)
OTHER = Form(2, False)


def _joined(forms: list[Form]) -> Form:
    """Return the form of a value that has one of several forms."""
    if not forms:
        return NONE
    first = forms[0]
    for form in forms[1:]:
        same = form.power == first.power
        first = Form(
            max(first.level, form.level),
            first.static and form.static,
            first.power if same else None,
            first.selects or form.selects,
            first.copies if first.copies == form.copies else 0,
            first.link if first.link == form.link else 0,
        )
    return first


class Dependence:
    """How everything depends on the unknowns of one rule.

    Attributes
    ----------
    parameters : dict
        For each stochastic rule that depends on the unknowns, the form of each parameter.
    bounds : dict
        For the same rules, whether bounds depend on the unknowns.
    """

    def __init__(self, network: Network, rule: int) -> None:
        self.network, self.compiled = network, network.assembly.compiled
        self.outputs: dict[int, Form] = {rule: ITSELF}
        self.parameters: dict[int, list[Form]] = {}
        self.bounds: dict[int, bool] = {}
        self._spread(network.dependents(rule))

    def _spread(self, dependents: list[int]) -> None:
        """Follow deterministic rules until nothing changes."""
        changed = True
        while changed:
            changed = False
            for number in dependents:
                each = self.compiled[number]
                if each.row[KIND] == LOGICAL:
                    form = self._registers(each)[each.row[VALUE]]
                elif each.row[KIND] == MATRIX:
                    form = OTHER if self._of_slices(each).level else NONE
                else:
                    continue
                old = self.outputs.get(number, NONE)
                if form.level and form != old:
                    joined = form if not old.level else _joined([old, form])
                    if joined != old:
                        self.outputs[number] = joined
                        changed = True
        for number in dependents:
            each = self.compiled[number]
            needed = self.network.needed[self.network.first[number] : self.network.first[number + 1]]
            if each.row[KIND] in (LOGICAL, MATRIX) or not needed.any():
                continue
            registers = self._registers(each)
            distribution = each.rule.distribution
            assert distribution is not None
            forms = [
                registers[given] if shape == "s" else self._slice(each, given, registers)
                for shape, given in zip(distribution.shapes, each.parameters, strict=True)
            ]
            bounds = [registers[k] for k in each.row[11:13] if k >= 0]
            if any(form.level for form in (*forms, *bounds)):
                self.parameters[number] = forms
                self.bounds[number] = any(form.level for form in bounds)

    def _read(self, places: np.ndarray | None) -> Form:
        """Return the form of a value read from one of some places."""
        if places is None:
            return NONE
        owners = self._owners(places)
        return _joined([self.outputs[owner] for owner in owners if owner in self.outputs])

    def _owners(self, places: np.ndarray) -> list[int]:
        inside = places[places >= 0]
        moving = inside[np.isnan(self.network.start[inside])]
        found: list[int] = distinct(self.network.owner[moving]).tolist()
        return found

    def _varies(self, places: np.ndarray | None) -> bool:
        return places is not None and bool(np.isnan(self.network.start[places[places >= 0]]).any())

    def _slice(self, each: Compiled, number: int, registers: list[Form]) -> Form:
        register = self.network.assembly.slice_rows[number][0]
        if registers[register].level:
            return OTHER
        form = self._read(each.slice_reads.get(number))
        if not form.level:
            return NONE
        moving = each.code[register].operation == _O.OFFSET
        return replace(form, selects=form.selects or moving, static=form.static and not moving, link=0)

    def _of_slices(self, each: Compiled) -> Form:
        return _joined([self._read(reads) for reads in each.slice_reads.values()])

    def _registers(self, each: Compiled) -> list[Form]:
        """Return the form of every register of a rule."""
        forms: list[Form] = []
        varies: list[bool] = []
        for one in each.code:
            form, moving = self._form(each, one, forms, varies)
            forms.append(form)
            varies.append(moving)
        return forms or [NONE]

    def _form(self, each: Compiled, one: Instruction, forms: list[Form], varies: list[bool]) -> tuple[Form, bool]:
        """Return the form of the result of an instruction, and whether it differs between draws."""
        what, (a, b, c) = one.operation, one.operands
        if what == _O.LOAD:
            return self._read(one.reads), self._varies(one.reads)
        if what == _O.CONSTANT or what == _O.ELEMENT:
            return NONE, False
        if what == _O.OFFSET:
            return (OTHER if forms[a].level or forms[b].level else NONE), True
        if what == _O.FETCH:
            if forms[a].level:
                return OTHER, True
            form = self._read(one.reads)
            return (replace(form, static=False, selects=True, link=0) if form.level else NONE), True
        if what >= _O.SUM:
            return self._reduced(each, one, forms)
        if what == _O.NEGATE:
            return replace(forms[a], copies=0, link=0), varies[a]
        if what in (_O.ADD, _O.SUBTRACT):
            return self._added(each, one, forms), varies[a] or varies[b]
        if what == _O.MULTIPLY:
            return _times(forms, varies, a, b), varies[a] or varies[b]
        if what == _O.DIVIDE:
            return _over(forms, varies, a, b), varies[a] or varies[b]
        if what == _O.POWER:
            return self._raised(each, forms, a, b), varies[a] or varies[b]
        if what == _O.SQRT:
            form = forms[a]
            power = None if form.power is None else form.power / 2.0
            return (Form(2, False, power, form.selects) if form.level else NONE), varies[a]
        if what == _O.CHOOSE:
            moving = varies[a] or varies[b] or varies[c]
            if forms[a].level:
                return OTHER, moving
            parts = [form for form in (forms[b], forms[c]) if form.level]
            form = _joined(parts)
            form = replace(form, static=form.static and not varies[a], selects=True, link=0)
            return (form if parts else NONE), moving
        if what in _LINKS and forms[a].level == 1 and forms[a].static and not forms[a].selects:
            return Form(2, False, link=int(what)), varies[a]
        used = [a, b] if what in (_O.LOWER, _O.LARGER) or (what in _TESTS and what not in (_O.STEP, _O.NOT)) else [a]
        return (OTHER if any(forms[k].level for k in used) else NONE), any(varies[k] for k in used)

    def _added(self, each: Compiled, one: Instruction, forms: list[Form]) -> Form:
        a, b = one.operands[:2]
        x, y = forms[a], forms[b]
        if not x.level and not y.level:
            return NONE
        if x.level and y.level:
            return Form(max(x.level, y.level), x.static and y.static, None, x.selects or y.selects)
        if one.operation == _O.SUBTRACT and y.copies == COPY and self._constant(each, a) == 1.0:
            return replace(y, power=None, copies=COMPLEMENT, link=0)
        return replace(x if x.level else y, power=None, copies=0, link=0)

    def _raised(self, each: Compiled, forms: list[Form], a: int, b: int) -> Form:
        base, exponent = forms[a], self._constant(each, b)
        if forms[b].level:
            return OTHER
        if not base.level:
            return NONE
        if exponent == 1.0:
            return base
        known = base.power is not None and not math.isnan(exponent)
        return Form(2, False, base.power * exponent if known and base.power is not None else None, base.selects)

    def _constant(self, each: Compiled, register: int) -> float:
        """Return the value of a register that holds a constant, otherwise NaN."""
        one = each.code[register]
        if one.operation == _O.NEGATE:
            return -self._constant(each, one.operands[0])
        if one.operation != _O.CONSTANT:
            return math.nan
        return list(self.network.assembly.constants)[one.operands[0]]

    def _reduced(self, each: Compiled, one: Instruction, forms: list[Form]) -> tuple[Form, bool]:
        what, (a, b, c) = one.operation, one.operands
        if what == _O.INNER:
            first, second = self._slice(each, a, forms), self._slice(each, b, forms)
            moving = [self._varies(each.slice_reads.get(k)) for k in (a, b)]
            if first.level and second.level:
                return OTHER, True
            form, constant = (first, not moving[1]) if first.level else (second, not moving[0])
            if form.level:
                return Form(form.level, form.static and constant, None, form.selects), True
            return NONE, any(moving)
        if what in (_O.SUM, _O.MEAN):
            form = self._slice(each, a, forms)
            moving_one = self._varies(each.slice_reads.get(a))
            return (replace(form, power=None, copies=0, link=0) if form.level else NONE), moving_one
        if what == _O.DISTRIBUTION:
            return (OTHER if any(forms[k].level for k in (a, b, b + 1, b + 2, b + 3)) else NONE), True
        lead = what in (_O.INTERPOLATE, _O.RANKED, _O.RANK, _O.ORDER)
        arrays = [b, c] if what == _O.INTERPOLATE else [b] if lead else [a]
        level = any(self._slice(each, k, forms).level for k in arrays) or (lead and forms[a].level > 0)
        return (OTHER if level else NONE), True


def _times(forms: list[Form], varies: list[bool], a: int, b: int) -> Form:
    x, y = forms[a], forms[b]
    if x.level and y.level:
        return Form(2, False, None if a != b or x.power is None else 2.0 * x.power, x.selects)
    if not x.level and not y.level:
        return NONE
    form, other = (x, b) if x.level else (y, a)
    return replace(form, static=form.static and not varies[other], copies=0, link=_scaled(form.link))


def _over(forms: list[Form], varies: list[bool], a: int, b: int) -> Form:
    x, y = forms[a], forms[b]
    if not x.level and not y.level:
        return NONE
    if not y.level:
        return replace(x, static=x.static and not varies[b], copies=0, link=_scaled(x.link))
    if x.level:
        return OTHER
    return Form(2, False, None if y.power is None else -y.power, y.selects)


def _scaled(link: int) -> int:
    """Return the link of a value that is multiplied by a factor: only the logarithm stays one."""
    return link if link == int(_O.EXP) else 0
