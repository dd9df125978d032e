"""What files of binary quadratic models hold, and how it becomes a model and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Ints32
from gibbsite.errors import IncompatibleError, ModelError
from gibbsite.formats.objects.bqm import IsingTerms, from_bqm, ising_terms, read_beta
from gibbsite.formats.parsing.text import Source
from gibbsite.models.factorgraph import FactorGraph


@dataclass(frozen=True)
class Quadratic:
    """What a file holds, in the form `from_bqm` takes."""

    vartype: str
    variables: list[Any]
    linear: Floats
    pairs: Ints
    quadratic: Floats
    offset: float

    def to_numpy_vectors(self, variable_order: object = None) -> tuple[Any, ...]:
        """Return biases, (rows, columns, biases), offset."""
        rows, columns = self.pairs.T
        return self.linear, (rows, columns, self.quadratic), self.offset

    def model(self, source: Source, beta: float) -> FactorGraph:
        """Return the model, after a check of the numbers."""
        for values in (self.linear, self.quadratic, np.array([self.offset])):
            # The sums that turn bits into spins must stay finite as well.
            with np.errstate(over="ignore"):
                if not np.isfinite(np.abs(values).sum()):
                    raise source.error("expected finite biases, found one that is not, or too large ones.")
        try:
            return from_bqm(self, beta=beta)
        except (ModelError, IncompatibleError) as error:
            raise source.error(str(error)) from None


def edges_of(model: FactorGraph) -> tuple[Ints32, Floats]:
    """Return the pairs of an Ising model without fields, and their couplings; refuse other models."""
    terms = ising_terms(model)
    # what is left of fields that cancel is rounding
    least = 1e-12 * float(np.abs(terms.couplings).max(initial=0.0))
    favoured = np.abs(terms.fields) > least
    if favoured.any():
        k = int(np.argmax(favoured))
        raise IncompatibleError(
            f"the site {model.sites[k]!r} has a field of {terms.fields[k]:g}; this format has edges only, "
            "write .coo or .bqm."
        )
    return terms.pairs, terms.couplings


def decimal(value: float) -> str:
    """Return a number without exponent, which some readers would not read."""
    return np.format_float_positional(value + 0.0, trim="-")


def energy_of(model: FactorGraph, beta: float) -> tuple[str, IsingTerms]:
    """Return the vartype and the biases of the energy in terms of its values."""
    beta = read_beta(beta)
    terms = ising_terms(model)
    h, J, offset = -terms.fields / beta, -terms.couplings / beta, -terms.offset / beta
    bits = model.n_sites > 0 and all(labels == (0, 1) for labels in model.domains.kinds)
    if not bits:
        return "SPIN", IsingTerms(h, terms.pairs, J, offset)
    # s = 2 x - 1, so J s t = J (4 x y - 2 x - 2 y + 1).
    offset += float(J.sum() - h.sum())
    ends = np.bincount(terms.pairs.reshape(-1), np.repeat(J, 2), model.n_sites)
    return "BINARY", IsingTerms(2 * h - 2 * ends, terms.pairs, 4 * J, offset)
