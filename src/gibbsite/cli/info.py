"""``gibbsite info``: describe a model and what inference on it would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gibbsite.cli import inputs
from gibbsite.cli.help import Command
from gibbsite.cli.outputs import echo
from gibbsite.cli.parameters import json_option

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph
    from gibbsite.models.stored import StoredPairs

# Time limit for kernels that tune themselves in short runs.
_PILOT_SECONDS = 0.5
# Facts that count things by size: what is counted, and the unit of the size.
_COUNTED = {"states_per_site": ("sites", "state"), "factors_by_arity": ("factors", "site")}
_SITES = 1 << 20  # of a stored model, read at a time


@click.command("info", cls=Command, examples=("gibbsite info alarm", "gibbsite info model.uai --json"))
@inputs.takes_model
@json_option
def command(model: str, from_format: str | None, evidence: str | None, observe: tuple[str, ...], as_json: bool) -> None:
    """Show the sites, factors, zeros and colors of MODEL, and the cost of exact inference and of each kernel.

    For a stored model (.pairs): its sites, pairs, degrees, couplings and files.
    """
    from gibbsite.formats.parsing.plain_json import write_json

    found = inputs.observe(inputs.load_any(model, from_format), evidence, observe)
    facts = describe(found) if hasattr(found, "groups") else describe_stored(found)
    if as_json:
        echo(write_json(facts))
        return
    for key, value in facts.items():
        if key in _COUNTED:
            things, of = _COUNTED[key]
            value = ", ".join(
                f"{_shown(many)} {things} of {size} {of}{'s' * (size != '1')}" for size, many in value.items()
            )
        elif isinstance(value, dict):
            value = ", ".join(f"{name.replace('_', ' ')} {_shown(each)}" for name, each in value.items())
        echo(f"{key.replace('_', ' '):<24} {_shown(value)}")


def _shown(value: object) -> str:
    """Return a fact as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if value > 1e308:
            return "more than 1e308"
        return f"{value:.0f}" if value == round(value) and value < 1e9 else f"{value:.4g}"
    return str(value)


def describe(model: FactorGraph) -> dict[str, Any]:
    """Collect the facts about a model."""
    import numpy as np

    from gibbsite.graphs import color_sites, compile_graph
    from gibbsite.graphs.color import markov_graph
    from gibbsite.graphs.support.possible import has_zeros
    from gibbsite.inference.exact import predict_exact
    from gibbsite.kernels.base import is_quick
    from gibbsite.kernels.protocols import Summarised
    from gibbsite.kernels.registry import registered_kernels
    from gibbsite.models.networks.expansion import fits_tables
    from gibbsite.sampling.pilot import tune_in

    graph = compile_graph(model)
    start, _ = markov_graph(graph)
    degree = np.diff(start.astype(np.int64))
    states, often = np.unique(model.cards, return_counts=True)
    arity: dict[str, int] = {}
    for group in model.groups:
        if group.size:
            arity[str(group.arity)] = arity.get(str(group.arity), 0) + group.size
    cost = predict_exact(model)
    examples = (one.example() for one in registered_kernels() if not isinstance(one.proof, str))
    tables = fits_tables(model)  # kernels of blocks need the tables of noisy nodes
    kernels = [
        kernel
        for kernel in examples
        if kernel is not None
        and kernel.accepts(graph)
        and (tables or not isinstance(kernel, Summarised))
        and is_quick(kernel, graph)
    ]
    return {
        "sites": model.n_sites,
        "observed": len(model.evidence),
        "states_per_site": {str(k): int(n) for k, n in zip(states, often, strict=True)},
        "factors_by_arity": dict(sorted(arity.items(), key=lambda each: int(each[0]))),
        "degree": {
            "mean": round(float(degree.mean()), 3) if degree.size else 0.0,
            "largest": int(degree.max(initial=0)),
        },
        **_energies(model),
        "zeros": bool(has_zeros(graph)),
        "colors": int(color_sites(graph).max(initial=-1)) + 1,
        "graph_kind": graph.kind,
        "graph_bytes": graph.nbytes,
        "exact": {
            "largest_clique": cost.largest,
            "entries": cost.entries,
            "bytes": cost.bytes,
            "seconds": round(cost.seconds, 4),
        },
        "messages": _messages(model),
        **{
            type(kernel).__name__: said
            for kernel in kernels
            if isinstance(kernel, Summarised) and (said := tune_in(_PILOT_SECONDS, model, graph, kernel).summary(graph))  # type: ignore[attr-defined]
        },
        "kernel_bytes_per_chain": {
            type(kernel).__name__: kernel.memory_bytes(graph) + graph.n_cells * 8 + model.n_sites for kernel in kernels
        },
    }


def describe_stored(model: StoredPairs) -> dict[str, Any]:
    """Collect the facts about a stored model, of which only the row pointers are read, in chunks."""
    import numpy as np

    from gibbsite.graphs.graph import compile_graph

    start, largest, graph = model.array("start"), 0, compile_graph(model)
    for begin in range(0, model.n_sites, _SITES):
        largest = max(largest, int(np.diff(start[begin : begin + _SITES + 1].astype(np.int64)).max()))
    return {
        "sites": model.n_sites,
        "states_per_site": {str(model.n_states): model.n_sites},
        "pairs": model.n_edges,
        "degree": {"mean": round(2 * model.n_edges / model.n_sites, 3), "largest": largest},
        "couplings": model.couplings,
        "graph_kind": graph.kind,
        "stored_version": model.manifest["version"],
        "files": {name: about["bytes"] for name, about in model.manifest["files"].items()},
        "bytes_on_disk": sum(about["bytes"] for about in model.manifest["files"].values()),
        "memory_bytes_per_chain": {
            "states": model.n_sites * np.dtype(graph.state_dtype).itemsize,
            "sums_of_marginals": 8 * graph.n_cells,
        },
    }


def _messages(model: FactorGraph) -> dict[str, Any]:
    """Return the cost of belief propagation, and whether it is exact."""
    from gibbsite.inference.belief.propagation import describe_messages

    edges, entries, forest = describe_messages(model)
    return {"number": edges, "entries_of_a_sweep": entries, "exact": forest}


def _energies(model: FactorGraph) -> dict[str, Any]:
    """Return the energies that decide the sizes of minibatches, if factors can be sampled."""
    from gibbsite.errors import IncompatibleError, TooLargeError
    from gibbsite.kernels.minibatch.factors import local_energies

    try:
        seen = local_energies(model)
    except (IncompatibleError, TooLargeError):
        return {}
    return {"energies": {"L": round(seen.largest, 6), "Psi": round(seen.total, 4), "Delta": seen.degree}}
