"""An optimised scan: a sequence of sites with its guarantee, saved and loaded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.archive import Archive, write_archive
from gibbsite._common.arrays import Array, Floats, Ints32
from gibbsite._common.boundary import Wanted, between, check_header
from gibbsite.errors import ArgumentError
from gibbsite.inference.influence.certificate import Certificate, certify
from gibbsite.scans.base import Ordered
from gibbsite.scans.systematic import FixedOrder

if TYPE_CHECKING:
    from gibbsite.graphs.graph import Graph
    from gibbsite.models import FactorGraph, Model


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
        """Save the scan to an ``.npz`` file, which :func:`gibbsite.load` reads.

        Examples
        --------
        >>> import gibbsite as gs, tempfile
        >>> scan = gs.dogs(gs.ising_grid((3, 3), coupling=0.1), target=0, steps=5)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     scan.save(f"{folder}/scan.npz")
        ...     again = gs.load(f"{folder}/scan.npz")
        >>> again.order.tolist() == scan.order.tolist()
        True
        """
        write_archive(Path(path), *self._pack())

    def _pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        about = {"kind": "gibbsite scan", "format": 2, "n_sites": int(self.n_sites), "model": self.model}
        names = ("order", "targets", "target_weights", "variation", "input_variation")
        return about, {name: np.asarray(getattr(self, name)) for name in names}

    def __repr__(self) -> str:
        bound = f"bias at most {self.variation:.4g}" if np.isfinite(self.variation) else "no bound"
        return (
            f"DogsScan({len(self.order)} steps on {np.unique(self.order).size} of {self.n_sites} sites, "
            f"{bound} for {self.targets.size} targets)"
        )


def read_scan(about: dict[str, Any], archive: Archive) -> DogsScan:
    """Return the scan that a header and its arrays describe."""
    check_header(about, {"n_sites": between(1, 2**31 - 1), "model": str}, archive.fail)
    n, number = about["n_sites"], Wanted(np.float64, (), 0, finite=False)
    sites = Wanted((np.int32, np.int64), ("steps",), 0, n - 1)
    arrays = archive.admit(
        {
            "order": sites,
            "variation": number,
            "input_variation": number,
            "targets": replace(sites, shape=("targets",)),
            "target_weights": Wanted(np.float64, ("targets",)),
        }
    )
    if not arrays["order"].size:
        raise archive.fail("it has no steps")
    return DogsScan(
        order=arrays["order"].astype(np.int32),
        variation=float(arrays["variation"]),
        input_variation=float(arrays["input_variation"]),
        n_sites=n,
        targets=arrays["targets"].astype(np.int32),
        target_weights=arrays["target_weights"],
        model=about["model"],
    )
