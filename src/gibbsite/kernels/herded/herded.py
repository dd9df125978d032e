"""Herded Gibbs sampling: the kernel follows every conditional by counting instead of random numbers.

Gibbs sampling draws a site from its conditional given its neighbours. Herded Gibbs [1]_ keeps a weight for every site
and configuration of its neighbours (its key), and the weight determines the new value
(:mod:`gibbsite.kernels.herded.herding`). Among the visits with the same key, the count of each value then differs from
its conditional probability times the number of visits by a bounded number. On complete graphs, the error of the average
over T sweeps is at most a constant times 1 / T.

On sparse graphs, keys do not contain all other sites, and the choices for two keys can be correlated: errors
fall like 1 / T to a floor, which is not zero. With ``keys="full"`` there is no floor. Sites without neighbours can
move in step, and the error of their joint distribution is then computed (:mod:`gibbsite.kernels.herded.relations`).

References
----------
.. [1] Bornn, L., Chen, Y., de Freitas, N., Eskelin, M., Fang, J. and Welling, M. (2013). Herded Gibbs
   sampling. ICLR.
.. [2] Yamashita et al. (2019). Statistics and Computing: weights shared by probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gibbsite._common.arguments import describe, is_number
from gibbsite._common.arrays import Words32, Words64
from gibbsite._common.wording import argument, unknown
from gibbsite._numba.random.generators import chain_key
from gibbsite.errors import ArgumentError, TooLargeError
from gibbsite.graphs.graph import Graph
from gibbsite.kernels.base import Kernel, KernelWarning
from gibbsite.kernels.herded.herding import RULES, HerdedMemory, HerdedParameters
from gibbsite.kernels.herded.keys import CODED, KEYS, STORAGE, Hashed, Keys, Table, make_hashed, make_table, named
from gibbsite.kernels.herded.relations import in_step_warning
from gibbsite.kernels.herded.theory import floor_warning, holds_all, theorem_warning
from gibbsite.kernels.registry import register

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph, Model
    from gibbsite.scans.base import Scan

STARTS = ("random", "centred")
_SCALE = 2.0**32
_GIGABYTE = 2**30


@register(
    methods={"herded": ("MAR", "MAP"), "herded-shared": ("MAR",)},
    arguments={"herded": {"keys": "blanket"}, "herded-shared": {"keys": "shared"}},
    proof=[{}],
)
@dataclass(frozen=True)
class HerdedGibbs(Kernel):
    """Deterministic Gibbs sampling with counting weights.

    Convergence to the joint distribution is proved for ``keys="full"`` and for complete graphs (`herding_bound`).
    In other cases it is not guaranteed; ``Result.remarks`` names the case. Results have no standard errors and no
    verdict: draws are spread more evenly than random ones, and the spread of chains does not show their common
    error, which can be many times as large.

    Parameters
    ----------
    keys : {"blanket", "full", "shared", "binned", "randomised-binned", "site"}
        What distinguishes the weights of a site. "blanket": the configuration of its neighbours. "full": the
        configuration of all other sites (for small models; the case with a theorem). "shared": the conditional, so that
        configurations with equal conditionals share a weight. "binned": the bin that contains the conditional.
        "randomised-binned": one of the two nearest bins at random, which removes the bias of binning. "site": the site
        alone.
    rule : {"argmax", "threshold", "tijdeman", "bounded"}
        How weights determine a value. For two states, the first three are equivalent; ``threshold`` accepts no more
        than two. ``bounded`` draws at random unless counts leave a band around their expectation.
    start : {"random", "centred"} or float
        The first weights: random, or such that the first visit takes the most probable state, or (for two states) a
        number in [0, 1).
    storage : {"auto", "dense", "hash"}
        "dense" stores the weights of all keys in a table, "hash" those of visited keys in a hash table; "auto" chooses
        the table if it fits into ``memory_limit``.
    bins : int
        Number of bins.
    band : float
        Half-width of the band of ``rule="bounded"``.
    memory_limit : int
        Largest number of bytes for the weights of a chain.

    See Also
    --------
    Gibbs : Random updates.
    kernels.herding_bound : What is proved about the errors.
    kernels.QuasiGibbs : Random numbers that are evenly distributed.

    References
    ----------
    Bornn et al. (2013), Herded Gibbs sampling.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((3, 3), coupling=0.2, field=0.1)
    >>> exact = gs.solve_exact(model).marginals["4"][1]
    >>> result = gs.sample(model, gs.HerdedGibbs(), sweeps=2000, rng=1, progress=False)
    >>> abs(result.marginals["4"][1] - exact) < 0.005
    True
    """

    keys: str = "blanket"
    rule: str = "argmax"
    start: str | float = "random"
    storage: str = "auto"
    bins: int = 32
    band: float = 1.0
    memory_limit: int = _GIGABYTE

    exact: ClassVar[bool] = False
    reversible: ClassVar[bool] = False  # a deterministic update has no transition probabilities
    error_source: ClassVar[str] = "none"  # chains share an error, even if they converge
    fallible: ClassVar[bool] = False

    def warnings(self, model: FactorGraph, graph: Graph, scan: Scan) -> tuple[KernelWarning, ...]:
        """Return which guarantees a run has, and which sites move in step."""
        complete = self.keys == "full" or (self.keys == "blanket" and holds_all(*self.keys_of(graph).others()))
        found: tuple[KernelWarning, ...] = ()
        if graph.n_sites > 1 and not complete:
            logs = float(np.log2(graph.cards).sum())  # of the number of states
            full = np.exp2(min(logs, 1000.0)) * float((1.0 / graph.cards).sum())
            fits = 8.0 * self.keys_of(graph).width * full <= self.memory_limit
            found += (floor_warning(self.keys, fits),)
        if complete and self.rule != "bounded":
            found += theorem_warning(model, scan)
        if scan.once and self.keys != "full" and self.rule != "bounded":
            bins = self.bins if self.keys == "randomised-binned" else None
            found += in_step_warning(model, graph, self.rule, bins)
        return found

    def shareable(self, graph: Graph) -> bool:
        """Return True if weights are in a table, where sites are separate, and sites need no buffer and no chance."""
        chance = self.rule == "bounded" or "randomised" in self.keys
        return graph.binary and not chance and self.keys_of(graph).take_table(self.storage, self.memory_limit)

    def first_weights(self, stream: Words64, *shape: int) -> Words32:
        """Return the first weights of a chain of two-state sites, all at once, in units of 2^-32."""
        if self.start == "random":
            words = np.random.Philox(key=stream[:2]).random_raw(-(-math.prod(shape) // 2))
            return words.view(np.uint32)[: math.prod(shape)].reshape(shape)
        start = 0.5 if self.start == "centred" else float(self.start)
        return np.full(shape, np.uint32(start * _SCALE))

    def inspect(self, model: Model, graph: Graph, memory: Any) -> None:
        """Raise an error if a hash table is full."""
        ledger = getattr(memory, "ledger", None)
        if isinstance(ledger, Hashed) and ledger.fill[2]:
            sizes = self.keys_of(graph).sizes()
            raise TooLargeError(
                f"Herding weights for {ledger.fill[1]} keys have used up the limit of "
                f"{self.memory_limit:.1e} bytes; site {int(np.argmax(sizes))} alone can have "
                f"{sizes.max():.1e}. Raise memory_limit, or use {named(keys='binned')} or "
                f"{named(keys='site')}."
            )

    def parameters(self, graph: Graph) -> HerdedParameters:
        """Check all arguments; return them as numbers for compiled code."""
        for name, value, known in (
            ("keys", self.keys, KEYS),
            ("rule", self.rule, RULES),
            ("storage", self.storage, STORAGE),
        ):
            if value not in known:
                raise ArgumentError(unknown(f"HerdedGibbs {name}", value, known))
        if self.rule == "threshold" and (graph.cards > 2).any():
            site = int(np.argmax(graph.cards > 2))
            raise ArgumentError(
                f"The rule 'threshold' chooses between two states, but site {site} has {graph.cards[site]}; "
                "use rule='argmax' or rule='tijdeman'."
            )
        if isinstance(self.start, str):
            if self.start not in STARTS:
                raise ArgumentError(unknown("HerdedGibbs start", self.start, STARTS))
            start = -1.0 if self.start == "random" else 0.5
        else:
            start = float(self.start)
            if not 0.0 <= start < 1.0:
                raise ArgumentError(f"Herding weights start in [0, 1), got {self.start!r}.")
            if (graph.cards > 2).any():
                raise ArgumentError("A start weight can be given for two states only; use 'random' or 'centred'.")
        if not (isinstance(self.bins, int) and 1 <= self.bins < 2**31):
            raise ArgumentError(
                f"{argument('bins')} must be a positive whole number below 2^31, got {describe(self.bins)}."
            )
        if not is_number(self.memory_limit):
            raise ArgumentError(
                f"{argument('memory_limit')} must be a number of bytes, got {describe(self.memory_limit)}."
            )
        if not self.band >= 0.0 or math.isinf(self.band):
            raise ArgumentError(f"{argument('band')} must be a number of at least 0, got {self.band!r}.")
        keys = self.keys_of(graph)
        keys.take_table(self.storage, self.memory_limit)
        return HerdedParameters(
            rule=RULES.index(self.rule),
            keys=keys.found_by,
            remember=int(keys.found_by == CODED and self.keys != "site"),
            bins=self.bins,
            band=float(self.band),
            start=start,
            span=2.0 * (self.band + 2.0) if self.rule == "bounded" else 1.0,
        )

    def memory(self, graph: Graph, stream: Words64) -> HerdedMemory:
        """Allocate the weights of a chain."""
        keys = self.keys_of(graph)
        (start, member), (place, stride) = keys.others(), keys.numbers()
        kind = np.uint64 if graph.binary else np.float64
        ledger: Table | Hashed
        if keys.take_table(self.storage, self.memory_limit):
            ledger = make_table(keys.width, int(keys.sizes().sum()), kind)
        else:
            ledger = make_hashed(keys.width, self.memory_limit, kind)
        return HerdedMemory(
            work=np.zeros(int(graph.cards.max(initial=2))),
            start=start,
            member=member,
            stride=stride,
            place=place,
            ledger=ledger,
            seed=chain_key(stream),
        )

    def keys_of(self, graph: Graph) -> Keys:
        """Return the keys of the weights on a graph."""
        return Keys(self.keys, self.bins, graph)
