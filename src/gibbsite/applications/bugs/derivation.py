"""The units of a sweep as arrays: blocks of normal unknowns, then the update chosen for every other unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite.applications.bugs.blocks import Block, Scale, Shift, block_extra, find_scales
from gibbsite.applications.bugs.chains import Chain, find_chains
from gibbsite.applications.bugs.choices import Choice, choose
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.compiled.updates import LEARNED
from gibbsite.applications.bugs.joint.batches import Batch, find_batches
from gibbsite.applications.bugs.joint.growing import Growing
from gibbsite.applications.bugs.joint.linear import find_blocks, find_predictor_blocks
from gibbsite.applications.bugs.joint.neighbours import find_neighbours
from gibbsite.applications.bugs.network import Network, Reach, distinct
from gibbsite.applications.bugs.tables import Tables
from gibbsite.applications.bugs.values import fail
from gibbsite.errors import ModelError


@dataclass
class Derived:
    """All updates of a model, for compiled code and for people.

    Attributes
    ----------
    tables : Tables
        The rules.
    unit, segment, lists, numbers : arrays
        The units, and what they refer to.
    units : int
        Number of units.
    widths, counts, work : int
        Sizes of the arrays of a chain.
    choices : list of Choice
        The update of each rule.
    unit_rule : int array
        The rule of each unit; -1 for blocks and for what is computed at the end of a sweep.
    blocks, chains : lists of Block and Chain
        Blocks of normal unknowns, and chains of discrete ones.
    """

    tables: Tables
    unit: Ints
    segment: Ints
    lists: Array
    numbers: Floats
    units: int
    widths: Floats
    counts: int
    work: int
    choices: list[Choice]
    unit_rule: Ints
    blocks: list[Block]
    chains: list[Chain]


def derive(network: Network, site: Ints, measure: Any, means: Any) -> Derived:
    """Return the units of a sweep.

    ``site`` is the position in the state of each place, or -1; ``measure(reach, places, size)`` returns coefficients,
    and ``means(nodes, places)`` the means of nodes where the unknowns at some places are 0.
    """
    choices = choose(network)
    assembly = network.assembly
    tables = assembly.tables()[0]
    blocks, singles = find_blocks(network, choices, measure, means)
    places: list[Ints] = [block.members for block in blocks]
    rules = [-1] * len(blocks)
    kinds: list[tuple[int, Choice | None]] = [(units.NORMAL_BLOCK, None) for _ in blocks]
    predicted, shifts = find_predictor_blocks(network, choices, measure)
    blocks += predicted
    places += [block.members for block in predicted]
    rules += [-1] * len(predicted)
    kinds += [(units.PREDICTOR_BLOCK, None)] * len(predicted)
    chains = find_chains(network, choices)
    places += [chain.members for chain in chains]
    rules += [-1] * len(chains)
    kinds += [(units.CHAIN, None)] * len(chains)
    members = [*(block.members for block in predicted), *(chain.members for chain in chains)]
    joint = np.concatenate([*members, np.zeros(0, np.int64)])
    batches = find_batches(network, choices, joint)
    places += [batch.members for batch in batches]
    rules += [batch.choice.rule for batch in batches]
    kinds += [(units.BATCH, None)] * len(batches)
    joint = np.concatenate([joint, *(batch.members for batch in batches)])
    for choice in choices:
        compiled = assembly.compiled[choice.rule]
        unknown = (network.unknown & ~network.forward)[compiled.targets]
        update = choice.update
        if update == units.NORMAL_BLOCK:
            update = units.CONJUGATE_NORMAL
            mine = compiled.targets[unknown]
            left = mine[np.isin(mine, singles)]
            scalar = compiled.targets.shape[1] == 1
            chosen = [left[k : k + 1] for k in range(left.size)]
            update = units.CONJUGATE_NORMAL if scalar else units.SLICE
        elif update in (units.CONJUGATE_DIRICHLET, units.CONJUGATE_WISHART, units.SIMPLEX_SLICE):
            whole = unknown.all(axis=1)
            if (unknown.any(axis=1) != whole).any():
                raise fail(
                    compiled.rule.relation.at,
                    f"some entries of a vector of {compiled.rule.name!r} are in the data, and others are not",
                )
            chosen = list(compiled.targets[whole])
        else:
            mine = compiled.targets[unknown]
            if update in (units.PREDICTOR_BLOCK, units.FINITE):
                mine = mine[~np.isin(mine, joint)]
            update = units.SLICE if update == units.PREDICTOR_BLOCK else update
            chosen = [mine[k : k + 1] for k in range(mine.size)]
        places += chosen
        rules += [choice.rule] * len(chosen)
        kinds += [(update, choice)] * len(chosen)
    scales = find_scales(network, choices)
    places += [shift.places for shift in shifts] + [scale.places for scale in scales]
    rules += [-1] * (len(shifts) + len(scales))
    kinds += [(units.SHIFT, None)] * len(shifts) + [(units.SCALE, None)] * len(scales)
    moves: list[Shift | Scale] = [*shifts, *scales]
    drawn = np.flatnonzero(network.forward)
    drawn = drawn[np.argsort(network.level[network.node(drawn)], kind="stable")]
    of = {choice.rule: choice for choice in choices}
    places += [drawn[k : k + 1] for k in range(drawn.size)]
    rules += network.owner[drawn].tolist()
    kinds += [(units.FORWARD, of[rule]) for rule in network.owner[drawn].tolist()]
    return _tabulate(network, tables, site, choices, blocks, chains, batches, moves, places, rules, kinds)


def _tabulate(
    network: Network,
    tables: Tables,
    site: Ints,
    choices: list[Choice],
    blocks: list[Block],
    chains: list[Chain],
    batches: list[Batch],
    moves: list[Shift | Scale],
    places: list[Ints],
    rules: list[int],
    kinds: list[tuple[int, Choice | None]],
) -> Derived:
    """Write the table of units."""
    n = len(places)
    sizes = np.array([each.size for each in places], np.int64)
    flat = np.concatenate([*places, np.zeros(0, np.int64)]).astype(np.int64)
    reach = network.reach(flat, np.repeat(np.arange(n), sizes), n)
    _compare(network, reach, kinds)
    own = network.first[network.owner[flat]] + network.instance[flat]
    of = np.repeat(np.arange(n), sizes)
    scaled = np.isin(of, [k for k, (kind, _) in enumerate(kinds) if kind == units.SCALE])
    total = np.int64(network.first[-1]) + 1  # moves of scales look at the prior distributions, too
    pairs = distinct(np.concatenate([reach.unit * total + reach.node, of[scaled] * total + own[scaled]]))
    reach = network.segments(*np.divmod(pairs, total), n)
    lists, numbers, segment = Growing(np.int32), Growing(np.float64), Growing(np.int64)
    begin_lists = lists.add(reach.listed)
    assert begin_lists == 0
    everything = network.everything()
    segment.add(reach.segment)
    first_all = reach.segment.shape[0]
    segment.add(everything)
    deviance = network.assembly.offset.get("deviance", -1)
    is_deviance = deviance >= 0 and network.owner[deviance] < 0 and np.isnan(network.start[deviance])
    observed = network.observed() if is_deviance else everything[:0]
    segment.add(observed)
    computed = np.flatnonzero((site >= 0) & ~network.unknown & np.isnan(network.start))
    unit = np.zeros((n + 1, units.UNIT_WIDTH), np.int64)
    widths: list[Floats] = []
    tuned, work, powers, inner = 0, 256, {}, 0
    biggest = max((each.targets.shape[1] for each in network.assembly.compiled), default=1)
    spare = 4 * biggest + 4 * int(tables.slices[:, 2].max(initial=1)) + 64  # behind what densities need
    alone: list[tuple[Ints, Reach | None, Batch | None]] = []
    unit[:n, units.COUNT] = sizes
    unit[:n, units.BEGIN], unit[:n, units.MIDDLE], unit[:n, units.END] = reach.begin, reach.middle, reach.end
    heads = flat[np.cumsum(sizes) - sizes] if n else flat
    unit[:n, units.PLACE], unit[:n, units.SITE] = heads, site[heads]
    unit[:n, units.OWN] = network.owner[heads]
    unit[:n, units.OWN_INSTANCE] = network.instance[heads]
    counts = np.array([network.assembly.compiled[rule].rule.n for rule in range(len(network.assembly.compiled))])
    del counts
    stochastic = np.zeros(n + 1, np.int64)
    many = reach.segment[:, 3] if len(reach.segment) else np.zeros(0, np.int64)
    totals = np.concatenate([[0], np.cumsum(many)])
    stochastic[:n] = totals[reach.end] - totals[reach.middle]
    for k, (kind, choice) in enumerate(kinds):
        row = unit[k]
        row[units.UPDATE] = kind
        if sizes[k] > 1:
            row[units.LISTS] = lists.add(places[k])
            lists.add(site[places[k]])
            work = max(work, 6 * int(sizes[k]) + 64)
        elif choice is None:
            row[units.LISTS] = lists.add(places[k])
        if kind == units.CHAIN:
            chain = chains[k - len(blocks)]
            row[units.EXTRA_A], row[units.EXTRA_B] = chain.low, chain.high
            row[units.EXTRA_E] = n + 1 + inner
            inner += chain.members.size
            alone.append((chain.members, chain.alone, None))
            continue
        if kind == units.BATCH:
            batch = batches[k - len(blocks) - len(chains)]
            for column in (units.EXTRA_A, units.EXTRA_B):
                row[column] = batch.choice.extra[column]
            row[units.BEGIN] = _add_segments(lists, segment, batch.alone)
            row[units.MIDDLE] = row[units.BEGIN] + batch.alone.middle[0]
            row[units.END] = row[units.BEGIN] + batch.alone.end[0]
            row[units.EXTRA_D] = lists.add(batch.owner)
            _add_segments(lists, segment, batch.own)
            row[units.EXTRA_E] = batch.own.segment.shape[0]
            _add_segments(lists, segment, batch.shared)
            row[units.OWN_INSTANCE] = batch.shared.segment.shape[0]
            if batch.shared.segment.shape[0]:
                row[units.TUNE] = n + 1 + inner
                inner += batch.members.size
                alone.append((batch.members, None, batch))
            continue
        if kind in (units.SHIFT, units.SCALE):
            move = moves[k - n + len(moves) + int(network.forward.sum())]
            if isinstance(move, Scale):
                row[units.EXTRA_A], row[units.EXTRA_B] = move.rule, lists.add(move.instances)
                row[units.EXTRA_C], row[units.EXTRA_D] = spare, numbers.add(move.exponents)
                row[units.EXTRA_E] = move.every
                work = max(work, spare + 2 * int(sizes[k]) + 8)
                continue
            row[units.EXTRA_A : units.EXTRA_E] = block_extra(move.block, lists, numbers, segment)
            weights = numbers.add([share for _, _, share in move.ties])
            row[units.TUNE] = move.block.members.size
            row[units.EXTRA_E] = lists.add([len(move.ties), weights])
            lists.add([number for other, member, _ in move.ties for number in (other, member)])
            work = max(work, move.block.work + 2 * move.block.members.size + 64)
            continue
        if choice is None:
            block = blocks[k]
            extra = block_extra(block, lists, numbers, segment)
            row[units.EXTRA_A : units.EXTRA_E] = extra
            work = max(work, block.work + 2 * block.members.size + 64)
            if kind == units.PREDICTOR_BLOCK:
                row[units.EXTRA_E] = n + 1 + inner
                inner += block.members.size
                alone.append((block.members, None, None))
            continue
        assert choice is not None
        for column, value in choice.extra.items():
            row[column] = value
        if kind in (units.SLICE, units.WHOLE_SLICE):
            row[units.TUNE] = tuned
            widths.append(np.array([1.0 if kind == units.SLICE else 3.0, 0.0, 0.0]))
            tuned += 1
        elif kind == units.SCALED_GAMMA:
            if choice.power not in powers:
                powers[choice.power] = numbers.add([choice.power])
            row[units.EXTRA_B] = powers[choice.power]
        if kind in (units.SCALED_GAMMA, units.CONJUGATE_BETA, units.CONJUGATE_NORMAL):
            work = max(work, int(stochastic[k]) + 64)
    most = max(
        (
            c.extra[units.EXTRA_B] - c.extra[units.EXTRA_A] + 1
            for _, c in kinds
            if c and units.EXTRA_B in c.extra and c.update == units.FINITE
        ),
        default=0,
    )
    last = unit[n]
    last[units.UPDATE], last[units.COUNT] = units.COMPUTE, computed.size
    if computed.size == 1:
        last[units.PLACE], last[units.SITE] = computed[0], site[computed[0]]
    last[units.LISTS] = lists.add(computed)
    lists.add(site[computed])
    last[units.BEGIN], last[units.MIDDLE] = first_all, first_all + everything.shape[0]
    last[units.END] = last[units.MIDDLE] + observed.shape[0]
    last[units.EXTRA_A] = deviance + 1 if is_deviance else 0
    singles = [np.zeros((0, units.UNIT_WIDTH), np.int64)]
    for members, reached, _ in alone:
        singles.append(_single_units(network, members, site, lists, segment, tuned, reached))
        widths.append(np.tile([1.0, 0.0, 0.0], members.size))
        tuned += members.size
    for rows, (_, _, few) in zip(singles[1:], alone, strict=True):
        if few is not None:
            rows[:, [units.EXTRA_A, units.EXTRA_B]] = [few.choice.extra[c] for c in (units.EXTRA_A, units.EXTRA_B)]
            rows[:, units.EXTRA_C] = LEARNED * tuned + few.single_work
    slices = int(tables.slices[:, 2].max(initial=1))
    for k, (kind, _) in enumerate(kinds):
        if kind in (units.FINITE, units.CHAIN, units.BATCH):  # work space for weights behind the widths
            unit[k, units.EXTRA_C] = LEARNED * tuned
    most = max([most, *(chain.work for chain in chains), *(batch.work for batch in batches)])
    end = LEARNED * tuned + most + 1
    alike = np.array([k for k, (kind, _) in enumerate(kinds) if kind == units.FINITE], np.int64)
    kept = find_neighbours(network, choices, heads[alike])
    for k in alike.tolist():
        near = kept.get(int(heads[k]))
        if near is not None:
            unit[k, units.EXTRA_D], unit[k, units.EXTRA_E] = lists.add(near.table()), end
            unit[k, units.TUNE] = not near.own
            end += near.rows * int(unit[k, units.EXTRA_B] - unit[k, units.EXTRA_A] + 1)
    return Derived(
        tables=tables,
        unit=np.concatenate([unit, *singles]).ravel(),
        segment=segment.joined(),
        lists=lists.joined(),
        numbers=numbers.joined(),
        units=n + 1,
        widths=np.concatenate([*widths, np.zeros(most + 1), np.full(end - LEARNED * tuned - most - 1, np.nan)]),
        counts=tuned + 8,
        work=max(work, 4 * biggest + 64, 4 * slices + 64),
        choices=choices,
        unit_rule=np.array([*rules, -1], np.int64),
        blocks=blocks,
        chains=chains,
    )


def _add_segments(lists: Growing, segment: Growing, reach: Reach) -> int:
    """Append segments; return the number of the first one."""
    rows = reach.segment.copy()
    rows[rows[:, 1] == 1, 2] += lists.add(reach.listed)
    segment.add(np.zeros(-segment.size % 4, np.int64))
    return segment.add(rows) // 4


def _single_units(
    network: Network, places: Ints, site: Ints, lists: Growing, segment: Growing, tuned: int, reach: Reach | None
) -> Ints:
    """Return units that move members of blocks one by one; no scan visits them."""
    n = places.size
    found = np.zeros((n, units.UNIT_WIDTH), np.int64)
    reach = network.reach(places, np.arange(n), n) if reach is None else reach
    first = _add_segments(lists, segment, reach)
    found[:, units.UPDATE], found[:, units.COUNT] = units.SLICE, 1
    found[:, units.PLACE], found[:, units.SITE] = places, site[places]
    found[:, units.OWN], found[:, units.OWN_INSTANCE] = network.owner[places], network.instance[places]
    found[:, units.BEGIN], found[:, units.MIDDLE] = first + reach.begin, first + reach.middle
    found[:, units.END], found[:, units.TUNE] = first + reach.end, tuned + np.arange(n)
    return found


def _compare(network: Network, reach: Reach, kinds: list[tuple[int, Choice | None]]) -> None:
    """Make sure that the forms on which updates rest cover all stochastic nodes that units reach."""
    for k, (_, choice) in enumerate(kinds):
        if choice is not None:
            rules = set(reach.segment[reach.middle[k] : reach.end[k], 0].tolist())
            if not rules <= set(choice.dependence.parameters):
                raise RuntimeError(f"dependents of {network.assembly.compiled[choice.rule].rule.name} were missed")


def refuse_without_unknowns(network: Network) -> None:
    """Refuse a model in which nothing is left to sample."""
    if not network.unknown.any():
        raise ModelError("The model has no unknowns: every stochastic variable has a value in the data.")
