"""What follows from a run or from the prior: predictions, log-likelihoods of single observations, the DIC."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from gibbsite._common.arrays import Bools, Floats, Ints
from gibbsite._common.wording import argument
from gibbsite.applications.bugs import distributions as dist
from gibbsite.applications.bugs.assembly import Assembly
from gibbsite.applications.bugs.compiled.evaluator import LANES
from gibbsite.applications.bugs.elements import element_of
from gibbsite.applications.bugs.expansion import expand
from gibbsite.applications.bugs.language.parser import parse
from gibbsite.applications.bugs.network import Network
from gibbsite.applications.bugs.simulation.draws import draw_values
from gibbsite.applications.bugs.simulation.evaluation import Evaluation, Law
from gibbsite.applications.bugs.tables import CODE
from gibbsite.errors import ArgumentError, ModelError

if TYPE_CHECKING:
    from gibbsite.applications.bugs.model import BugsModel
    from gibbsite.results.result import Result

#: Arrays (chains, draws, ...) by the name of their variable.
Arrays: TypeAlias = "dict[str, Floats]"


class InformationCriterion(NamedTuple):
    """The deviance information criterion of a run.

    Attributes
    ----------
    dic : float
        ``deviance`` plus ``parameters``; smaller is better.
    deviance : float
        Posterior mean of minus twice the log-likelihood.
    parameters : float
        Effective number of parameters: half the posterior variance of the deviance.
    """

    dic: float
    deviance: float
    parameters: float


class Prior(NamedTuple):
    """Draws from the joint distribution before data: of unknowns and monitored numbers, and of what is observed."""

    parameters: Arrays
    predictive: Arrays


def log_likelihoods(model: BugsModel, result: Result) -> Arrays:
    """Return the log-likelihoods of all observations at each draw."""
    network, compiled = model.network, model.assembly.compiled
    seen = {k: rows for k, rows in _observed(network).items() if compiled[k].row[CODE] != dist.INTERVAL}
    if not seen:
        raise ModelError("The model has no observations with a distribution, so there is no likelihood.")
    _check_draws(model, result, np.concatenate([network.first[k] + np.flatnonzero(rows) for k, rows in seen.items()]))
    at = Evaluation(network, model.registers)
    found = {k: np.empty((result.chains, result.n_draws, int(rows.sum()))) for k, rows in seen.items()}
    for spot in _each_draw(model, result, at):
        for k, rows in seen.items():
            found[k][spot] = at.pointwise(k)[rows]
    parts: dict[str, list[tuple[Ints, Floats]]] = {}
    for k, rows in seen.items():
        name = compiled[k].rule.name
        parts.setdefault(name, []).append((compiled[k].targets[rows, 0] - model.assembly.offset[name], found[k]))
    return {name: _joined(mine, model.assembly.values.arrays[name].shape) for name, mine in parts.items()}


def _joined(parts: list[tuple[Ints, Floats]], shape: tuple[int, ...]) -> Floats:
    """Join numbers (chains, draws, spots) about spots of a variable; in its shape if they are about all elements."""
    spots = np.concatenate([spots for spots, _ in parts])
    values = np.concatenate([values for _, values in parts], axis=-1)[..., np.argsort(spots)]
    return _shaped(values, shape) if spots.size == int(np.prod(shape)) else values


def _shaped(values: Floats, shape: tuple[int, ...]) -> Floats:
    """Return (chains, draws, elements) with a dimension for each index; the first index is the fastest."""
    turned = values.reshape((*values.shape[:2], *shape[::-1]))
    return turned.transpose(0, 1, *range(turned.ndim - 1, 1, -1))


def predict(model: BugsModel, result: Result, rng: np.random.Generator) -> Arrays:
    """Return observations drawn again at each draw, given the unknowns of that draw."""
    network, compiled, assembly = model.network, model.assembly.compiled, model.assembly
    names = dict.fromkeys(compiled[k].rule.name for k in _observed(network))
    if not names:
        raise ModelError("The model has no observations with a distribution, so there is nothing to predict.")
    rules = [k for k in np.flatnonzero(network.stochastic).tolist() if compiled[k].rule.name in names]
    _check_draws(model, result, np.concatenate([np.arange(network.first[k], network.first[k + 1]) for k in rules]))
    at = Evaluation(network, model.registers)
    laws = [Law(at, k, np.arange(compiled[k].rule.n)) for k in rules]
    whole = {name: assembly.values.arrays[name] for name in names}
    found = {name: np.tile(array.ravel(order="F"), (result.chains, result.n_draws, 1)) for name, array in whole.items()}
    for spot in _each_draw(model, result, at):
        for k, law in zip(rules, laws, strict=True):
            name = compiled[k].rule.name
            drawn = draw_values(rng, law.distribution, *law.parameters())
            found[name][spot][law.targets - assembly.offset[name]] = drawn.reshape(law.targets.shape)
    return {name: _shaped(values, whole[name].shape) for name, values in found.items()}


def observations(model: BugsModel) -> Arrays:
    """Return the values of observed variables."""
    names = {model.assembly.compiled[k].rule.name for k in _observed(model.network)}
    return {name: model.assembly.values.arrays[name] for name in sorted(names)}


def information_criterion(model: BugsModel, result: Result) -> InformationCriterion:
    """Return the deviance information criterion."""
    found = log_likelihoods(model, result).values()
    deviance = -2.0 * sum(each.reshape(*each.shape[:2], -1).sum(axis=-1) for each in found)
    mean, parameters = float(np.mean(deviance)), float(np.var(deviance)) / 2.0
    return InformationCriterion(mean + parameters, mean, parameters)


def _observed(network: Network) -> dict[int, Bools]:
    """Return the stochastic rules with observed instances, and which of them are observed."""
    found: dict[int, Bools] = {}
    for rule in np.flatnonzero(network.stochastic).tolist():
        hidden = network.unknown[network.assembly.compiled[rule].targets].any(axis=1)
        if not hidden.all():
            found[rule] = np.logical_not(hidden)
    return found


def _check_draws(model: BugsModel, result: Result, nodes: Ints) -> None:
    """Refuse a result of another model, or one without draws on which some nodes depend."""
    if result.domains.names.all() != model.sites:
        raise ArgumentError(f"{argument('result')} is a run of another model, or one with other monitors.")
    if not result.draw_sites.size:
        raise ArgumentError("The run has recorded no draws; add 'draws' to record=.")
    network = model.network
    kept = np.zeros(network.start.size, np.bool_)
    kept[model.places[result.draw_sites]] = True
    hidden = np.flatnonzero(network.unknown & ~kept)
    if np.isin(network.reach(hidden, np.zeros(hidden.size, np.int64), 1).node, nodes).any():
        reach = network.reach(hidden, np.arange(hidden.size), hidden.size)
        lacking = hidden[reach.unit[np.isin(reach.node, nodes)]]
        names = sorted({element_of(network.assembly, int(place))[0] for place in lacking})
        raise ArgumentError(f"The draws of {', '.join(names)} are needed, and were not recorded; monitor them, too.")


def _each_draw(model: BugsModel, result: Result, at: Evaluation) -> Iterator[tuple[int, int]]:
    """Give the evaluation the values of each draw in turn."""
    everything, places = at.add_everything(), model.places[result.draw_sites]
    for chain in range(result.chains):
        for draw in range(result.n_draws):
            at.values[places] = result.draws[chain, draw]
            at.call(everything)
            yield chain, draw


def draw_prior(model: BugsModel, draws: int, rng: np.random.Generator) -> Prior:
    """Draw all stochastic variables, the observed ones included, from causes to effects."""
    seen = _observed(model.network)
    data = {name: array.copy(order="F") for name, array in model.data.items()}
    for k, rows in seen.items():
        compiled = model.assembly.compiled[k]
        if (name := compiled.rule.name) in data:
            data[name].reshape(-1, order="F")[compiled.targets[rows] - model.assembly.offset[name]] = np.nan
    assembly = Assembly(*expand(parse(model.text), data))
    network = Network(assembly, assembly.tables()[1])
    known = [k for k in np.flatnonzero(network.stochastic).tolist() if k in _observed(network)]
    if known:
        name = assembly.compiled[known[0]].rule.name
        raise ModelError(f"{name!r} is computed in the data block, so that nothing can be drawn in its place.")
    at = Evaluation(network, max(assembly.registers, 64) * LANES)
    steps = _steps(at)
    found = np.empty((1, draws, at.values.size))
    for draw in range(draws):
        for step in steps:
            if isinstance(step, Law):
                drawn = draw_values(rng, step.distribution, *step.parameters())
                at.values[step.targets] = drawn.reshape(step.targets.shape)
            else:
                at.call(step)
        found[0, draw] = at.values
    observed = {model.assembly.compiled[k].rule.name for k in seen}
    stochastic = {assembly.compiled[k].rule.name for k in np.flatnonzero(network.stochastic).tolist()}
    monitored = {name.partition("[")[0].strip() for name in model.monitored} - {"deviance"}
    arrays = {
        name: _shaped(found[..., begin : begin + assembly.values.arrays[name].size], assembly.values.arrays[name].shape)
        for name, begin in assembly.offset.items()
        if name in stochastic | monitored
    }
    parameters = {name: array for name, array in arrays.items() if name not in observed}
    return Prior(parameters, {name: array for name, array in arrays.items() if name in observed})


def _steps(at: Evaluation) -> list[Law | int]:
    """Return what draws a whole state: laws of stochastic nodes, and units that compute deterministic ones."""
    network = at.network
    nodes = np.lexsort((network.rule_of, network.level))
    rule, level = network.rule_of[nodes], network.level[nodes]
    new = (np.diff(rule) != 0) | (np.diff(level) != 0)
    steps: list[Law | int] = []
    for part in np.split(nodes, np.flatnonzero(new) + 1):
        number = int(network.rule_of[part[0]])
        instances = part - network.first[number]
        if network.stochastic[number]:
            steps.append(Law(at, number, instances))
        else:
            steps.append(at.add_computation(np.array([number, 1, at.add_list(instances), part.size])))
    return steps
