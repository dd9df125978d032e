"""Results as an xarray DataTree, the form ArviZ reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.result.save import write_kind

if TYPE_CHECKING:
    import xarray

    from gibbsite.model.domain import Domains
    from gibbsite.result.result import Result


def make_datatree(result: Result) -> xarray.DataTree:
    """Turn a result into a DataTree; equal results give equal trees (no time of creation).

    Groups are present if there is something to put into them:

    ``posterior``
        ``x`` (chain, draw, site): recorded draws as state codes, or numbers. Without recorded draws ``p``
        (chain, draw, cell) instead: means of the marginal probabilities over batches, one "draw" per batch
        of ``batch_length`` draws, one cell per state of each site, named "site=state".
    ``sample_stats``
        ``lp`` (chain, draw): log-potential of every draw.
    ``marginals``
        ``probability``, ``mcse``, ``ess``, ``rhat`` (site, state); of sites that are numbers, mean and
        standard deviation in place of probabilities. The last three are NaN if nothing is known
        about errors. Sites with fewer states than the largest are padded: probability 0, the others NaN.
    ``observed_data``
        ``x`` (site): codes of the observed sites.

    State codes are explained by the attribute ``labels`` (a JSON list of lists of labels) and the
    coordinate ``label_set`` (site), which tells which of these lists a site has.

    Parameters
    ----------
    result : Result
        The result.

    Returns
    -------
    xarray.DataTree
        The root has the attributes ``inference_library``, ``inference_library_version``, ``plan``,
        ``evidence`` (both JSON), ``draws``, ``warmup``, ``converged`` (1 or 0) and ``errors``, what standard
        errors are taken from: where that is not "draws", those that ArviZ computes from draws mean nothing.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.FactorGraph({"a": ["no", "yes"], "b": 3}, [(("a", "b"), [[4, 1, 2], [1, 2, 3]])])
    >>> record = ["marginals", "draws", "energy"]
    >>> tree = gs.sample(model, sweeps=1000, record=record, rng=1, progress=False).to_datatree()
    >>> tuple(tree.children)
    ('posterior', 'sample_stats', 'marginals')
    >>> tree["posterior/x"].dims, tree["marginals/probability"].shape
    (('chain', 'draw', 'site'), (2, 3))
    """
    import xarray

    attrs = {
        "inference_library": "gibbsite",
        "inference_library_version": result.plan.gibbsite,
        "plan": result.plan.to_json(),
        "evidence": json.dumps(result.evidence),
        "draws": result.draws,
        "warmup": result.warmup,
        "converged": int(result.diagnostics.converged),
        "errors": result.diagnostics.errors,
    }
    groups: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {}
    if result.draw_sites.size:
        names = _site_names(result.domains, result.draw_sites)
        groups["posterior"] = (
            {"x": (("chain", "draw", "site"), result.values)},
            {
                **_counted(result.values),
                "site": names,
                "label_set": ("site", np.array(result.domains.kind_of[result.draw_sites])),
            },
            _label_attrs(result.domains),
        )
    elif result.n_marginal:
        cells = result.trace[:, :, : result.n_marginal]
        groups["posterior"] = (
            {"p": (("chain", "draw", "cell"), cells)},
            {**_counted(cells), "cell": _cell_names(result)},
            {"batch_length": result.length},
        )
    if result.energy.size:
        lp = {"lp": (("chain", "draw"), result.energy)}
        groups["sample_stats"] = (lp, _counted(result.energy), {})
    if result.n_marginal:
        groups["marginals"] = _marginals(result)
    if result.evidence:
        groups["observed_data"] = _observed(result)
    library = {key: attrs[key] for key in ("inference_library", "inference_library_version")}
    datasets = {
        name: xarray.Dataset(variables, coords, {**library, **more})
        for name, (variables, coords, more) in groups.items()
    }
    return xarray.DataTree.from_dict({"/": xarray.Dataset(attrs=attrs), **datasets})


def _counted(values: NDArray[Any]) -> dict[str, Any]:
    return {"chain": np.arange(values.shape[0]), "draw": np.arange(values.shape[1])}


def _label_attrs(domains: Domains) -> dict[str, str]:
    return {"labels": json.dumps([write_kind(kind) for kind in domains.kinds])}


def _site_names(domains: Domains, sites: NDArray[np.int32] | None = None) -> NDArray[np.str_]:
    names = domains.names
    if sites is None:
        return np.array(names.all(), dtype=np.str_)
    return np.array([names[site] for site in sites.tolist()], dtype=np.str_)


def _cell_names(result: Result) -> NDArray[np.str_]:
    """Return the names of the marginal cells; two-state models keep one cell per site."""
    domains = result.domains
    skip = 1 if result.binary else 0
    return np.array(
        [
            f"{name}={label}"
            for site, name in enumerate(domains.names.all())
            for label in domains.labels(site)[skip:]
        ],
        dtype=np.str_,
    )


def _marginals(result: Result) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    dims = ("site", "state")
    probability = result.marginals.to_array()
    width = probability.shape[1]
    padding = np.arange(width) >= np.asarray(result.domains.cards)[:, None]
    variables: dict[str, Any] = {"probability": (dims, probability)}
    for name in ("mcse", "ess", "rhat"):
        numbers = getattr(result, name).to_array()
        numbers[padding] = np.nan
        variables[name] = (dims, numbers)
    coords: dict[str, Any] = {
        "site": _site_names(result.domains),
        "state": np.arange(width),
        "label_set": ("site", np.array(result.domains.kind_of)),
    }
    return variables, coords, _label_attrs(result.domains)


def _observed(result: Result) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    labels = result.evidence_labels
    codes = [
        labels[site].index(state) if state in labels[site] else state  # or a number
        for site, state in result.evidence.items()
    ]
    coords: dict[str, Any] = {"site": np.array(list(result.evidence), dtype=np.str_)}
    coords["label_set"] = ("site", np.arange(len(codes)))
    kind = np.float64 if any(isinstance(code, float) for code in codes) else np.int16
    named = {"labels": json.dumps([labels[site] for site in result.evidence])}
    return {"x": ("site", np.array(codes, kind))}, coords, named
