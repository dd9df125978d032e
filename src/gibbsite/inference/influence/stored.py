"""An optimised scan: a sequence of sites with its guarantee, saved and loaded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.archive import open_archive
from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Floats, Ints32
from gibbsite._common.boundary import Wanted
from gibbsite.errors import ArgumentError, FormatError
from gibbsite.formats.parsing.text import path_text, save
from gibbsite.inference.influence.certificate import Certificate, certify
from gibbsite.scans.base import Ordered
from gibbsite.scans.systematic import FixedOrder

if TYPE_CHECKING:
    from gibbsite.graphs.graph import Graph
    from gibbsite.models import FactorGraph, Model

_FORMAT = "gibbsite-scan-1"


@dataclass(frozen=True, eq=False, repr=False)
class DogsScan(FixedOrder):
    """A scan chosen by DoGS, with its guarantee.

    It is a :class:`FixedOrder` and goes wherever a scan goes. The guarantee is about a chain right after one
    pass through the sequence, from any start; further passes do not make it worse.

    Attributes
    ----------
    order : array of int
        The sites, step by step.
    variation : float
        Bound on the bias after one pass.
    input_variation : float
        The same of the scan it was made from, of equal length.
    n_sites : int
        Sites of the model.
    targets, target_weights : arrays
        What the bound is about: weights of these sites.
    model : str
        Digest of the model it was made for.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((5, 5), coupling=0.2)
    >>> scan = gs.dogs(model, target="12", accuracy=0.05)
    >>> scan.variation <= 0.05, int(scan.order[-1])
    (True, 12)
    >>> warmer = gs.ising_grid((5, 5), coupling=0.1)
    >>> scan.certify(warmer).variation < scan.variation
    True
    """

    variation: float
    input_variation: float
    n_sites: int
    targets: Ints32
    target_weights: Floats
    model: str

    def schedule(self, graph: Graph, model: Model | None = None) -> Ordered:
        """Return the visits; the model must have as many sites as the one it was made for."""
        if graph.n_sites != self.n_sites:
            raise ArgumentError(f"This scan is for {self.n_sites} sites, but the model has {graph.n_sites}.")
        return super().schedule(graph, model)

    def certify(self, model: FactorGraph, influence: Any = None) -> Certificate:
        """Return the guarantee for another model of the same structure, or from other bounds."""
        if model.n_sites != self.n_sites:
            raise ArgumentError(f"This scan is for {self.n_sites} sites, but the model has {model.n_sites}.")
        weights = self.target_weights
        return certify(model, scan=self, target=self.targets.tolist(), weights=weights, influence=influence)

    def save(self, path: str | Path) -> None:
        """Write the scan to an ``.npz`` file; :func:`load_scan` reads it."""
        file = BytesIO()
        np.savez_compressed(file, format=_FORMAT, **vars(self))
        save(path, file.getvalue())

    def __repr__(self) -> str:
        bound = f"bias at most {self.variation:.4g}" if np.isfinite(self.variation) else "no bound"
        return (
            f"DogsScan({len(self.order)} steps on {np.unique(self.order).size} of {self.n_sites} sites, "
            f"{bound} for {self.targets.size} targets)"
        )


@checked
def load_scan(path: str | Path) -> DogsScan:
    """Read a scan that was saved.

    Examples
    --------
    >>> import gibbsite as gs, os, tempfile
    >>> scan = gs.dogs(gs.ising_grid((3, 3), coupling=0.1), target=0, steps=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scan.save(os.path.join(folder, "scan.npz"))
    ...     again = gs.influence.load_scan(os.path.join(folder, "scan.npz"))
    >>> again.order.tolist() == scan.order.tolist()
    True
    """

    def fail(reason: str) -> FormatError:
        return FormatError(f"this is not a saved scan: {reason}.", str(path))

    number = Wanted(np.float64, (), finite=False)
    with open_archive(Path(path_text(path)), fail) as archive:
        if archive.text("format") != _FORMAT:
            raise fail("its format is another one")
        n = int(archive.read("n_sites", Wanted(np.int64, (), 1, 2**31 - 1)))
        sites = Wanted((np.int32, np.int64), ("steps",), 0, n - 1)
        arrays = archive.admit(
            {
                "order": sites,
                "variation": replace(number, low=0),
                "input_variation": replace(number, low=0),
                "targets": replace(sites, shape=("targets",)),
                "target_weights": Wanted(np.float64, ("targets",)),
            }
        )
        if not arrays["order"].size:
            raise fail("it has no steps")
        return DogsScan(
            order=arrays["order"].astype(np.int32),
            variation=float(arrays["variation"]),
            input_variation=float(arrays["input_variation"]),
            n_sites=n,
            targets=arrays["targets"].astype(np.int32),
            target_weights=arrays["target_weights"],
            model=archive.text("model"),
        )
