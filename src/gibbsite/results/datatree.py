"""Results as an xarray DataTree, the form ArviZ reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gibbsite._common.arrays import Array, Floats, Positions
from gibbsite._common.wording import missing
from gibbsite.errors import ArgumentError, GibbsiteError
from gibbsite.models.domain import Angle, Interval
from gibbsite.results.dimensions import plain_group, rename_dims
from gibbsite.results.joint import numeric
from gibbsite.results.save import write_kind
from gibbsite.results.teach_arviz import load_arviz, make_inference_data, takes_trees, teach_arviz

if TYPE_CHECKING:
    import xarray

    from gibbsite.models.domain import Domains, SiteKind
    from gibbsite.results.answer import Answer
    from gibbsite.results.result import Result

# Variables, coordinates and attributes of a group.
Group = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]
# The variable of all sites whose names are numbers, and what no variable may be called.
_NUMBERED = "x"
_ELEMENT = re.compile(r"([^\[\]]+)\[([0-9]+(?:,[0-9]+)*)\]")
_TAKEN = ("chain", "draw", "site", "label_set")


def make_datatree(
    result: Result,
    *,
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, Sequence[Any]] | None = None,
    **groups: Mapping[str, Any],
) -> xarray.DataTree:
    """Turn a result into a DataTree; equal results give equal trees (no time of creation).

    Groups are present if there is something to put into them:

    ``posterior``
        Recorded draws. A site with a name of its own is a variable (chain, draw) of that name. Sites whose
        names are whole numbers, such as those of a lattice, are one variable ``x`` (chain, draw, site).
        Observables whose series was kept (``series=True``) are variables, too.
    ``batch_means``
        Where draws were not recorded, ``mean`` (chain, batch, cell): means over batches of ``batch_length``
        draws of what ``cell`` names, "site=state" for the probability of a state, "site: value" and
        "site: square" for a number, "site: cosine" and "site: sine" for an angle. Their spread is not that of
        the sites, so ArviZ is not to take them for draws.
    ``sample_stats``
        ``lp`` and ``energy`` (chain, draw): log-potential of every draw, and minus that.
    ``observables``
        A variable for each observable of a run: its series (chain, draw) where that was kept, otherwise means
        over bins (chain, bin), with the attribute ``bin_length``; of several values with an axis for them.
    ``marginals``
        ``probability``, ``mcse``, ``ess``, ``rhat`` (site, state) of sites with states. The last three are
        NaN if nothing is known about errors. Sites with fewer states than the largest are padded:
        probability 0, the others NaN. The attribute ``labels`` (a JSON list of lists) and the coordinate
        ``label_set`` (site) tell which labels the states of a site have.
    ``moments``
        ``mean`` and ``sd`` (site) of sites that are numbers, with ``mcse_mean``, ``ess_mean``, ``rhat_mean``,
        ``mcse_sd``, ``ess_sd`` and ``rhat_sd``; of angles the direction as ``mean``, and ``resultant`` in
        place of ``sd``.
    ``observed_data``
        Observed sites, as variables named as in ``posterior``.

    Values are numbers, labels that are numbers (-1 and 1 in an Ising model), or the codes 0, 1, ... of labels
    that are words; the attribute ``labels`` of a variable lists them. The attribute ``site`` is the name of a
    site whose variable had to be called otherwise: "/" is not allowed, and a name may be taken. Variables of
    angles have the attributes ``circular`` (1), ``period`` and ``low``: means and intervals on the line, as
    ``arviz.summary`` gives them, have no meaning for angles. Take ``moments``, or in ArviZ before version 1 and
    for angles in radians, ``arviz.summary(tree, circ_var_names=[...])``.

    ArviZ before version 1, if it is installed, is extended to read a DataTree.

    Parameters
    ----------
    result : Result
        The result.
    dims, coords : dict, optional
        Names of the dimensions of arrays by variable, and of the entries along dimensions.
    **groups
        Further groups: arrays (chains, draws, ...) by the name of the variable.

    Returns
    -------
    xarray.DataTree
        The root has the attributes ``inference_library``, ``inference_library_version``, ``plan``,
        ``evidence`` (both JSON), ``n_draws``, ``warmup``, ``converged`` (1 or 0) and ``errors``, what standard
        errors are taken from: where that is not "draws", those that ArviZ computes from draws mean nothing.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.FactorGraph({"a": ["no", "yes"], "b": 3}, [(("a", "b"), [[4, 1, 2], [1, 2, 3]])])
    >>> record = ["marginals", "draws", "energy"]
    >>> tree = gs.sample(model, sweeps=1000, record=record, rng=1, progress=False).to_datatree()
    >>> tuple(tree.children)
    ('posterior', 'sample_stats', 'marginals')
    >>> list(tree["posterior"].data_vars), tree["posterior/a"].dims, tree["marginals/probability"].shape
    (['a', 'b'], ('chain', 'draw'), (2, 3))
    """
    import xarray

    teach_arviz()
    attrs = {
        "inference_library": "gibbsite",
        "inference_library_version": result.plan.gibbsite,
        "plan": result.plan.to_json(),
        "evidence": json.dumps(result.evidence),
        "n_draws": result.n_draws,
        "warmup": result.warmup,
        "converged": int(bool(result.diagnostics.converged)),
        "errors": result.diagnostics.errors,
    }
    further = ({} if result._model is None else result._model.arviz_groups(result)) | groups
    found: dict[str, Group] = {}
    numbers = result.domains.numbers
    series = _series(result)
    if result.draw_sites.size or series:
        found["posterior"] = _posterior(result, series)
    if not result.draw_sites.size and result._n_marginal and result._trace.shape[1]:
        found["batch_means"] = _batch_means(result)
    if result.energy.size:
        lp = {"lp": (("chain", "draw"), 0.0 - result.energy), "energy": (("chain", "draw"), result.energy)}
        found["sample_stats"] = (lp, _counted(result.energy), {})
    if result._open and result.observables:
        found["observables"] = _observables(result)
    if result._n_marginal and not numbers.all():
        wanted = ("probability", "mcse", "ess", "rhat")
        found["marginals"] = _marginals(result, result.domains, np.flatnonzero(~numbers), wanted)
    if result._n_marginal and numbers.any():
        found["moments"] = _moments(result, np.flatnonzero(numbers))
    if result.evidence:
        found["observed_data"] = _states(result.evidence, result.evidence_labels)
    for name, arrays in further.items():
        found[name] = plain_group(arrays, () if name.endswith("_data") else ("chain", "draw"))
    library = {key: attrs[key] for key in ("inference_library", "inference_library_version")}
    datasets = {
        name: xarray.Dataset(variables, known, {**library, **more}) for name, (variables, known, more) in found.items()
    }
    if dims or coords:
        datasets = {name: rename_dims(group, dims or {}, coords or {}) for name, group in datasets.items()}
    return xarray.DataTree.from_dict({"/": xarray.Dataset(attrs=attrs), **datasets})


def make_answer_tree(answer: Answer) -> xarray.DataTree:
    """Turn the answer of any method into a DataTree, with figures of the verdict as attributes of the root.

    Groups are ``marginals`` and ``observed_data``, as in :func:`make_datatree`, and ``assignment``, the best
    state as variables named as in ``observed_data``.
    """
    import xarray

    domains, evidence, labels = answer._sites()
    verdict = answer.diagnostics
    known = {name: getattr(answer, name) for name in ("log_z", "log_z_error", "log_potential")}
    attrs = {
        "inference_library": "gibbsite",
        "kind": verdict.kind,
        "converged": -1 if verdict.converged is None else int(verdict.converged),
        "reasons": json.dumps(verdict.reasons),
        "evidence": json.dumps(dict(evidence)),
        **{name: float(value) for name, value in known.items() if value is not None},
    }
    groups: dict[str, Group] = {}
    if answer.marginals is not None:
        groups["marginals"] = _marginals(answer, domains, np.arange(domains.n_sites), ("probability", "mcse"))
    if answer.assignment is not None:
        sites = {site: domains.labels(k) for k, site in enumerate(domains.names.all())} | dict(labels)
        groups["assignment"] = _states(answer.assignment, sites)
    if evidence:
        groups["observed_data"] = _states(evidence, labels)
    datasets = {name: xarray.Dataset(*group) for name, group in groups.items()}
    return xarray.DataTree.from_dict({"/": xarray.Dataset(attrs=attrs), **datasets})


def make_arviz(
    result: Result,
    *,
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, Sequence[Any]] | None = None,
    **groups: Mapping[str, Any],
) -> Any:
    """Return what the installed ArviZ works with: a DataTree, or InferenceData before ArviZ 1.

    Parameters
    ----------
    result : Result
        A run with recorded draws, or at least energies.
    dims, coords, **groups
        See :func:`make_datatree`.

    Raises
    ------
    GibbsiteError
        If ArviZ is not installed, or there is nothing it could use.

    Examples
    --------
    >>> import gibbsite as gs
    >>> result = gs.sample(gs.ising_grid((2, 2)), sweeps=500, rng=1, progress=False)
    >>> make_arviz(result)
    Traceback (most recent call last):
        ...
    gibbsite.errors.ArgumentError: ArviZ works with draws, and none were recorded; add 'draws' to record=.
    """
    if not result.draw_sites.size and not result.energy.size and not _series(result):
        raise ArgumentError("ArviZ works with draws, and none were recorded; add 'draws' to record=.")
    arviz = load_arviz()
    if arviz is None:
        raise GibbsiteError(missing("to_arviz needs", "ArviZ", "arviz"))
    tree = make_datatree(result, dims=dims, coords=coords, **groups)
    return tree if takes_trees(arviz) else make_inference_data(arviz, tree)


def _observables(result: Result) -> Group:
    variables: dict[str, Any] = {}
    for recorder in result._open:
        if recorder.key not in result.observables:
            continue
        seen = result.observables[recorder.key]
        kept = seen.found.series is not None
        values = seen.found.series if seen.found.series is not None else seen.bins
        name = recorder.key.replace("/", "_")
        # observables may differ in the number of rows: those that see all chains together have fewer
        dims: tuple[str, ...] = tuple(f"{name}_{axis}" for axis in ("chain", "draw" if kept else "bin"))
        attrs = {} if kept else {"bin_length": seen.length}
        if seen.names == ("",):
            variables[name] = (dims, values[:, :, 0], attrs)
        else:
            variables[name] = ((*dims, f"{name}_value"), values, {**attrs, "values": json.dumps(seen.names)})
    return variables, {}, {}


def _counted(values: Array) -> dict[str, Any]:
    return {"chain": np.arange(values.shape[0]), "draw": np.arange(values.shape[1])}


def _series(result: Result) -> dict[str, Floats]:
    """Return the observables of which every draw was kept, by name (chains, draws) or with an axis more."""
    found = {}
    for recorder in result._open:
        seen = result.observables.get(recorder.key)
        series = None if seen is None else seen.found.series
        if seen is not None and series is not None and series.shape[:2] == (result.chains, result.n_draws):
            found[recorder.key] = seen.series
    return found


def _posterior(result: Result, series: dict[str, Floats]) -> Group:
    domains = result.domains
    names = [domains.names[site] for site in result.draw_sites.tolist()]
    columns = [(result.draws[:, :, k], domains.kind(site)) for k, site in enumerate(result.draw_sites.tolist())]
    variables, coords = _variables(names, columns, ("chain", "draw"))
    for name, values in series.items():
        called = name.replace("/", "_") or "_"
        while called in variables or called in (*_TAKEN, *coords):
            called += "_"
        more = (f"{called}_value",) if values.ndim == 3 else ()
        variables[called] = (("chain", "draw", *more), values)
        if more:
            coords[more[0]] = np.array(result.observables[name].names, dtype=np.str_)
    counted = {"chain": np.arange(result.chains), "draw": np.arange(result.n_draws)}
    return variables, {**counted, **coords}, {}


def _states(states: Mapping[str, Any], labels: Mapping[str, tuple[Any, ...]]) -> Group:
    """Return one variable for the state, or the value, of each site."""
    columns = []
    for site, state in states.items():
        known = state in labels.get(site, ())
        value = np.array(labels[site].index(state)) if known else np.array(float(state))
        columns.append((value, tuple(labels[site]) if known else Interval()))
    variables, coords = _variables(list(states), columns, ())
    return variables, coords, {}


def _variables(
    names: list[str], columns: list[tuple[Array, SiteKind]], dims: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return one variable for each name, one for the elements of an array, and one for names that are whole numbers."""
    variables: dict[str, Any] = {}
    coords: dict[str, Any] = {}
    numbered = [k for k, name in enumerate(names) if name.isascii() and name.isdigit()]
    if numbered:
        sets = dict.fromkeys(columns[k][1] for k in numbered)
        values = np.stack([_values(*columns[k]) for k in numbered], axis=-1)
        written = [write_kind(kind) for kind in sets]
        labels = json.dumps(written[0] if len(sets) == 1 else written)
        turns = _describe_turn(next(iter(sets))) if len(sets) == 1 else {}
        variables[_NUMBERED] = ((*dims, "site"), values, {"labels": labels, **turns})
        coords["site"] = np.array([int(names[k]) for k in numbered])
        if len(sets) > 1:
            order = {kind: number for number, kind in enumerate(sets)}
            coords["label_set"] = ("site", np.array([order[columns[k][1]] for k in numbered]))
    grouped = _arrays(names, columns)
    for array, elements in grouped.items():
        called = array.replace("/", "_")
        while called in variables or called in _TAKEN or called in names:
            called += "_"
        variables[called], more = _array(called, elements, columns, dims)
        coords |= more
    inside = {k for elements in grouped.values() for k in elements.values()}
    for k in sorted(set(range(len(names))) - set(numbered) - inside):
        called = names[k].replace("/", "_") or "_"
        while called in variables or called in _TAKEN:
            called += "_"
        kind = columns[k][1]
        attrs: dict[str, Any] = {} if called == names[k] else {"site": names[k]}
        attrs |= _describe_turn(kind)
        if not isinstance(kind, Interval):
            attrs["labels"] = json.dumps(kind)
        variables[called] = (dims, _values(*columns[k]), attrs)
    return variables, coords


def _arrays(names: list[str], columns: list[tuple[Array, SiteKind]]) -> dict[str, dict[tuple[int, ...], int]]:
    """Return the numbers whose names are elements of arrays, such as "beta[1,2]", by array and indices."""
    found: dict[str, dict[tuple[int, ...], int]] = {}
    for k, name in enumerate(names):
        if (parts := _ELEMENT.fullmatch(name)) and isinstance(columns[k][1], Interval):
            found.setdefault(parts[1], {})[tuple(map(int, parts[2].split(",")))] = k
    return {array: elements for array, elements in found.items() if len({len(index) for index in elements}) == 1}


def _array(
    name: str, elements: dict[tuple[int, ...], int], columns: list[tuple[Array, SiteKind]], dims: tuple[str, ...]
) -> tuple[Any, dict[str, Any]]:
    """Return an array as a variable, NaN where it has no such element, and the coordinates of its dimensions."""
    known = [np.unique(axis) for axis in zip(*elements, strict=True)]
    first = columns[next(iter(elements.values()))][0]
    values = np.full((*first.shape, *map(len, known)), np.nan)
    for index, k in elements.items():
        at: tuple[Any, ...] = tuple(np.searchsorted(axis, i) for axis, i in zip(known, index, strict=True))
        values[(..., *at)] = columns[k][0]
    axes = [f"{name}_dim_{k}" for k in range(len(known))]
    return ((*dims, *axes), values), dict(zip(axes, known, strict=True))


def _describe_turn(kind: SiteKind) -> dict[str, Any]:
    """Return the attributes that mark an angle; none for others."""
    return {"circular": 1, "period": kind.period, "low": kind.low} if isinstance(kind, Angle) else {}


def _values(codes: Array, kind: SiteKind) -> Array:
    """Return numbers as they are, states by labels that are numbers, or else by codes."""
    if isinstance(kind, Interval) or not numeric(kind):
        return codes if isinstance(kind, Interval) else codes.astype(np.int16)
    labels = np.array(kind, np.int64)
    small = np.abs(labels).max() < np.iinfo(np.int16).max
    return labels.astype(np.int16 if small else np.int64)[codes.astype(np.intp)]


def _batch_means(result: Result) -> Group:
    cells = result._trace[:, :, : result._n_marginal]
    coords = {"chain": np.arange(cells.shape[0]), "batch": np.arange(cells.shape[1]), "cell": _cell_names(result)}
    what = f"means over batches of {result._length} draws; their spread is not that of the sites"
    return (
        {"mean": (("chain", "batch", "cell"), cells)},
        coords,
        {"batch_length": result._length, "description": what},
    )


def _cell_names(result: Result) -> NDArray[np.str_]:
    """Return the names of the marginal cells; two-state models keep one cell per site."""
    domains = result.domains
    real = domains.numbers
    skip = 1 if result._binary else 0
    names = [
        f"{name}: {moment}" if real[site] else f"{name}={moment}"
        for site, name in enumerate(domains.names.all())
        for moment in (_recorded(domains.kind(site)) if real[site] else domains.labels(site)[skip:])
    ]
    return np.array(names, dtype=np.str_)


def _recorded(kind: SiteKind) -> tuple[str, str]:
    """Return what the two cells of a number are means of."""
    return ("cosine", "sine") if isinstance(kind, Angle) else ("value", "square")


def _site_names(domains: Domains, sites: Positions) -> NDArray[np.str_]:
    names = domains.names.all()
    return np.array([names[site] for site in sites.tolist()], dtype=np.str_)


def _marginals(answer: Answer, domains: Domains, sites: Positions, wanted: tuple[str, ...]) -> Group:
    dims = ("site", "state")
    cards = np.asarray(domains.cards)[sites]
    width = int(cards.max(initial=0))
    padding = np.arange(width) >= cards[:, None]
    variables: dict[str, Any] = {}
    for name in wanted:
        table = getattr(answer, "marginals" if name == "probability" else name)
        numbers = table.to_array()[sites, :width]
        numbers[padding] = 0.0 if name == "probability" else np.nan
        variables[name] = (dims, numbers)
    coords: dict[str, Any] = {
        "site": _site_names(domains, sites),
        "state": np.arange(width),
        "label_set": ("site", np.array(domains.kind_of)[sites]),
    }
    labels = json.dumps([write_kind(kind) for kind in domains.kinds])
    return variables, coords, {"labels": labels}


def _moments(result: Result, sites: Positions) -> Group:
    variables: dict[str, Any] = {}
    said = [result.domains.labels(site) for site in sites.tolist()]
    for code, moment in dict.fromkeys((code, moment) for pair in said for code, moment in enumerate(pair)):
        # angles have a resultant length where other numbers have a standard deviation
        has = np.array([pair[code] == moment for pair in said])
        for name in ("", "mcse", "ess", "rhat"):
            table = getattr(result, name or "marginals").to_array()[sites, code]
            variables[f"{name}_{moment}".lstrip("_")] = ("site", np.where(has, table, np.nan))
    return variables, {"site": _site_names(result.domains, sites)}, {}
