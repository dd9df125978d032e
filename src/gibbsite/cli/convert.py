"""``gibbsite convert``: convert a model to another file format."""

from __future__ import annotations

import click

from gibbsite.cli.help import Command
from gibbsite.cli.inputs import format_given_by, format_option, load
from gibbsite.cli.outputs import tell
from gibbsite.cli.parameters import FORMAT, MODEL, Integer, Output


@click.command(
    "convert",
    cls=Command,
    examples=(
        "gibbsite convert model.bif model.uai",
        "gibbsite convert model.uai - --to xmlbif",
        "gibbsite convert edges.parquet graph.pairs --states 3",
    ),
)
@click.argument("source", type=MODEL)
@click.argument("target", type=Output(folders=(".pairs",)))
@format_option
@click.option("--to", "to_format", type=FORMAT, help="Format of TARGET. [default: by its name]")
@click.option("--states", type=Integer(2), help="Make a .pairs TARGET a Potts model with this many states.")
def command(source: str, target: str, from_format: str | None, to_format: str | None, states: int | None) -> None:
    """Read the model SOURCE and write it to TARGET.

    The format follows from the suffix: .uai, .bif .xmlbif .xdsl .net .dsc (Bayesian networks), .bqm .coo,
    .rudy (max-cut) and .edges, each also with .gz; .wcsp and .wcnf (weighted MaxSAT) are only read. Of these, .bqm
    .coo .rudy .edges hold two-state sites and pairwise factors, the last two no fields; the couplings of a
    .rudy file are minus the weights of its edges.

    A TARGET that ends in .pairs is a folder for gs.open_model. SOURCE is then a list of edges between
    numbered sites (.edges or .parquet), read in chunks, so it may be larger than memory. The model is an
    Ising model, or with --states a Potts model.
    """
    if target.endswith(".pairs"):
        from gibbsite.formats.stored import store_edges

        _check_edges(source)
        made = store_edges(source, target, states=states)
        tell(f"{made.n_sites:,} sites and {made.n_edges:,} pairs in {target}")
        return
    if states is not None:
        raise click.UsageError("--states needs a TARGET that ends in .pairs; other formats store the states.")
    from gibbsite.formats import write_model
    from gibbsite.formats.files import find_lost_names

    model = load(source, from_format)
    with format_given_by("--to FORMAT"):
        lost = find_lost_names(model, target, to_format)
        write_model(model, target, to_format)
    if lost:
        tell(lost)


def _check_edges(source: str) -> None:
    """Refuse files that are known to hold no list of edges."""
    from gibbsite.formats.files import is_stored
    from gibbsite.formats.registry import known_suffixes

    name = source.removesuffix(".gz")
    others = (suffixes for format, suffixes in known_suffixes().items() if format != "edges")
    if is_stored(source) or any(name.endswith(suffixes) for suffixes in others):
        raise click.UsageError(
            f"a .pairs TARGET is made from a list of edges (.edges, another text file, or .parquet), not from {source}."
        )
