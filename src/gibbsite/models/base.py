"""The interface of all models: named sites, and a digest of the content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats, Ints32
from gibbsite._common.cache import Cache
from gibbsite.errors import IncompatibleError
from gibbsite.models.domain import Domains, Label, SiteKey


class Digest(str):
    """The digest of a model, as its cache keeps it."""


class Model:
    """A distribution over named sites.

    This class has what every run needs. What a model is made of (tables, functions, a matrix) is known to its
    subclass and to the file of :mod:`gibbsite.graphs` that turns it into arrays.

    Attributes
    ----------
    cache : Cache
        Values computed from the model, such as its compiled graph.
    """

    __slots__ = ("_domains", "cache")

    def __init__(self, domains: Domains) -> None:
        self._domains = domains
        self.cache = Cache()

    @property
    def domains(self) -> Domains:
        """Names and states of the free sites."""
        return self._domains

    @property
    def digest(self) -> str:
        """Hash of the whole content: equal models have equal digests."""
        return str(self.cache.get(Digest) or self.cache.put(self._hash()))

    def _hash(self) -> Digest:
        digest = hashlib.blake2b(digest_size=16)
        for part in self._content():
            digest.update(part)
        return Digest(digest.hexdigest())

    def _content(self) -> Iterator[Any]:
        """Yield the bytes that distinguish the model from others of its class."""
        raise NotImplementedError

    @property
    def n_sites(self) -> int:
        """Number of free sites."""
        return self.domains.n_sites

    @property
    def sites(self) -> tuple[str, ...]:
        """Names of the free sites; their positions are the site numbers in all arrays."""
        return self.domains.names.all()

    @property
    def cards(self) -> Ints32:
        """Number of states per site, read-only; a stride-zero view when all are equal."""
        return self.domains.cards

    @property
    def evidence(self) -> dict[str, Label]:
        """Hard evidence folded in so far (a copy)."""
        return {}

    @property
    def evidence_labels(self) -> dict[str, tuple[Label, ...]]:
        """State labels of the folded sites (a copy)."""
        return {}

    def observe(self, evidence: Mapping[Any, Any]) -> Model:
        """Return the model given evidence, for models that can fold it in."""
        raise IncompatibleError(
            f"A {type(self).__name__} cannot fold evidence in: give it functions of the other sites, with "
            "the observed values put in; gs.FactorGraph, gs.ContinuousModel and gs.Gaussian have observe."
        )

    def labels(self, site: SiteKey) -> tuple[Label, ...]:
        """Return the state labels of a site."""
        return self.domains.labels(self.index(site))

    def code(self, site: SiteKey, label: Label) -> int:
        """Return the code of a state label; ``"1"`` also means the label 1."""
        return self.domains.code(self.index(site), label)

    def index(self, site: SiteKey) -> int:
        """Return the position of a site given by name or position."""
        return self.domains.position(site)

    def place_text(self, x: Floats, most: int = 6) -> str:
        """Return a place for a message: ``a=0.5, b='yes'``."""
        domains, numbers = self.domains, self.domains.numbers
        parts = [
            f"{domains.names[i]}={x[i]:.6g}" if numbers[i] else domains.entry_text([i], [x[i]])
            for i in range(min(self.n_sites, most))
        ]
        return ", ".join(parts) + (", ..." if self.n_sites > most else "")

    def arviz_groups(self, result: Any) -> dict[str, dict[str, Floats]]:
        """Return further groups for ArviZ that follow from a run of the model: arrays by group and variable."""
        return {}

    def draw_start(self, rng: np.random.Generator) -> Floats:
        """Return a random start of a chain, for models some sites of which are numbers.

        Uniform where a site has bounds or states, otherwise normal.
        """
        low, high = self.domains.bounds
        whole = np.isfinite(low) & np.isfinite(high)
        uniform = np.where(whole, low, 0.0) + rng.random(low.size) * np.where(whole, high - low, 0.0)
        normal = np.clip(rng.standard_normal(low.size), low, high)
        codes = np.floor(rng.random(low.size) * (np.where(whole, high, 0.0) + 1.0))
        return np.where(self.domains.numbers, np.where(whole, uniform, normal), codes)
