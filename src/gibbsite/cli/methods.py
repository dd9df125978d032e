"""``gibbsite methods``: the methods of ``gibbsite infer``, and when to use which."""

from __future__ import annotations

import click

from gibbsite.cli.help import Command
from gibbsite.cli.outputs import echo
from gibbsite.inference import METHODS

#: When to use each method; a test compares the names with the methods there are.
WHEN = {
    "auto": "the default: exact where that fits; otherwise several methods until one converges",
    "exact": "small models, and large ones that are nearly trees; no error at all",
    "gibbs": "weak or moderate dependence between sites; one site at a time",
    "blocks": "strong local dependence, zeros in tables; many sites jointly",
    "cutset": "models that few sites make a tree; the others are summed out",
    "tempered": "several modes, frustration; also estimates log Z",
    "swendsen-wang": "sites that want to agree, near or below a critical temperature",
    "wolff": "the same, one cluster at a time",
    "herded": "deterministic draws, errors fall like 1/T where that is proved; no standard errors",
    "herded-shared": "herding for sites with many neighbours",
    "quasi": "low-discrepancy numbers instead of random ones; few sites",
    "perfect": "independent draws without bias; weak couplings",
    "poisson": "sites with thousands of factors; looks at minibatches of them",
    "forward": "Bayesian networks, with evidence that is not too improbable",
    "mini-bucket": "many zeros or strong factors; weighted draws with a bound of log Z",
    "mean-field": "quick approximate marginals of unknown error; a lower bound of log Z",
    "bp": "quick approximate marginals of unknown error; exact on trees",
    "annealed": "most probable states of large models, with a count of the chains that agree",
    "proved": "most probable states with a proof, by toulbar2 (the extra proved)",
}


@click.command("methods", cls=Command, examples=("gibbsite methods", "gibbsite infer model.uai --method tempered"))
def command() -> None:
    """List the methods of gibbsite infer with the tasks that they answer, and when to use which."""
    width = max(map(len, METHODS))
    tasks = max(len(_tasks(name)) for name in METHODS)
    for name in METHODS:
        echo(f"{name:<{width}}  {_tasks(name):<{tasks}}  {WHEN.get(name, '')}".rstrip())
    echo("\nMAR: marginals, MAP: most probable state, PR: log Z, MMAP: most probable states of some sites.")


def _tasks(name: str) -> str:
    return " ".join(METHODS[name])
