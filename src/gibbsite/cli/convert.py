"""``gibbsite convert``: from one file format to another."""

from __future__ import annotations

import click

from gibbsite.cli.inputs import format_given_by, format_option, load
from gibbsite.cli.outputs import echo
from gibbsite.cli.parameters import FORMAT, MODEL, Output


@click.command("convert")
@click.argument("source", type=MODEL)
@click.argument("target", type=Output(folders=(".pairs",)))
@format_option
@click.option("--to", "to_format", type=FORMAT, help="Format of the target, if its name does not tell.")
@click.option("--states", type=click.IntRange(2), help="Of a TARGET in .pairs: a Potts model of so many states.")
def command(source: str, target: str, from_format: str | None, to_format: str | None, states: int | None) -> None:
    """Read SOURCE and write it as TARGET.

    Formats go by suffix: .uai .bif .xmlbif .bqm .coo, .rudy (max-cut) and .edges, each also with .gz. The
    last four hold two-state sites and pairs, the last two no fields; in .rudy couplings are minus weights.

    A TARGET that ends in .pairs is a folder for gs.open_model. It is made of a list of edges between sites
    that are numbers (.edges, or .parquet), which is read piece by piece and may be larger than memory, and
    is an Ising model, or with --states a Potts model.
    """
    if target.endswith(".pairs"):
        from gibbsite.formats.stored import store_edges

        _check_edges(source)
        made = store_edges(source, target, states=states)
        echo(f"gibbsite: {made.n_sites:,} sites and {made.n_edges:,} pairs in {target}", err=True)
        return
    if states is not None:
        raise click.UsageError("--states is for a TARGET that ends in .pairs; other formats name the states.")
    from gibbsite.formats import write_model
    from gibbsite.formats.files import find_lost_names

    model = load(source, from_format)
    with format_given_by("--to FORMAT"):
        lost = find_lost_names(model, target, to_format)
        write_model(model, target, to_format)
    if lost:
        echo(f"gibbsite: {lost}", err=True)


def _check_edges(source: str) -> None:
    """Refuse files of which it is known that they hold no list of edges."""
    from gibbsite.formats.files import is_stored
    from gibbsite.formats.registry import known_suffixes

    name = source.removesuffix(".gz")
    others = (suffixes for format, suffixes in known_suffixes().items() if format != "edges")
    if is_stored(source) or any(name.endswith(suffixes) for suffixes in others):
        raise click.UsageError(
            f"a TARGET in .pairs is made of a list of edges (.edges, other texts, .parquet), not of {source}."
        )
