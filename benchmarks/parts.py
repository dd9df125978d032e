"""The parts of the benchmark: each is a module of this package that has a function ``measure(quick=...)``.

A new part is a module and a line here; the command line, the page and the tests follow from it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.report import Section


@dataclass(frozen=True)
class Part:
    """A part: its module, and the heading and sentence above its tables."""

    name: str
    title: str
    sentence: str
    #: whether it runs only if it is named
    on_request: bool = False

    def measure(self, quick: bool, **options: list[str]) -> Iterator[Section]:
        """Yield what its module measures: one section, several, or none where its data are missing."""
        found = importlib.import_module(f"benchmarks.{self.name}").measure(quick=quick, **options)
        yield from [found] if isinstance(found, Section) else found


#: In the order in which they are measured and stand on the page.
PARTS = {
    part.name: part
    for part in (
        Part("startup", "Startup", "Seconds of fresh processes."),
        Part("calls", "Calls", "Milliseconds of a call that makes few updates, and of many small models in one call."),
        Part("memory", "Memory", "Bytes per site of compiled models of 10^6 sites."),
        Part("growth", "Growth", "Processor time and bytes held, by number of sites; one thread, one chain."),
        Part("forms", "Many sites at once", "Colors, checkerboards, replicas and threads."),
        Part("blocks", "Blocks", "Effective draws of the worst marginal per second, blocks against single sites."),
        Part("layers", "Layers", "A restricted Boltzmann machine, both layers of all chains drawn in turn."),
        Part("exact", "Files and exact answers", "Seconds, warm."),
        Part(
            "cases", "Many cases", "Cases of the alarm network per second, half of the cells empty, by processor time."
        ),
        Part("denoise", "Pictures restored", "Whole calls, against a sampler in NumPy, by processor time."),
        Part("entities", "Named entities", "Training and tagging on newswire text."),
        Part("learning", "Networks learned", "Structures by BIC and tables from 10,000 cases, by processor time."),
        Part("segmentation", "Pictures segmented", "Classes learnt from photographs, and one labelled."),
        Part("scribbles", "Pictures segmented from scribbles", "12 megapixels, and overlap with label maps."),
        Part("dogs", "Bounds and optimised scans", "Influence, certificates and DoGS on grids of the paper."),
        Part(
            "poisson",
            "Minibatches",
            "Poisson-Gibbs on Potts models whose sites are all coupled, nanoseconds per update.",
        ),
        Part("gaussian", "Normal distributions", "Gibbs sampling of a field of sparse precision."),
        Part("densities", "Log-densities", "Steps of the kernels, and of SGLD as the data grow, in nanoseconds."),
        Part("strips", "Lattices by halves", "Alternate lines or strips drawn jointly, against single sites."),
        Part("clusters", "Clusters", "Swendsen-Wang and Wolff at a critical point, against single sites by color."),
        Part("tempering", "Tempering", "Replicas that exchange their states, against plain chains, per update."),
        Part(
            "belief",
            "Belief propagation",
            "Nanoseconds of a message beside a loop in C, messages until they settle, and other libraries.",
        ),
        Part("mini_bucket", "Mini-buckets", "Table entries of a pass, and sites drawn, per second of one core."),
        Part("cluster", "Workers", "Chains and partitions on local workers of Dask against threads, by the clock."),
        Part("stored", "Models in files", "Random graphs built outside of memory, and sampled from files."),
        Part(
            "locality",
            "Sites in any order",
            "Grids whose sites are shuffled, and minibatches at random positions, by processor time.",
        ),
        Part("checks", "Checks of a verdict", "Seconds of whole calls without and with the checks, warm."),
        Part("importance", "Weighted draws", "Draws per second, and errors after five seconds."),
        Part("speed", "One site after another", "The scans that move one site at a time, and what recording costs."),
        Part("peers", "Peers", "Other samplers on the same models in the same race, on one thread.", on_request=True),
    )
}
