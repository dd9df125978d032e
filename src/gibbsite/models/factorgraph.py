"""The model people write down: named sites with labelled states, and groups of factors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from gibbsite._common.arguments import checked, is_iterable
from gibbsite._common.arrays import Floats, Ints32
from gibbsite._common.cache import Cache
from gibbsite._common.wording import site_name
from gibbsite.errors import ArgumentError, ModelError
from gibbsite.models.base import Digest, Model
from gibbsite.models.domain import Domains, Label, Scope, SiteKey, make_domains
from gibbsite.models.evidence import Finding, Folding, fold_groups, merge_tables, read_evidence, soft_factors
from gibbsite.models.factor import FactorGroup, gather_tables
from gibbsite.models.networks.acyclic import check_network

History: TypeAlias = "tuple[FactorGraph, tuple[tuple[dict[int, int], dict[int, Floats]], ...]]"
"""The model before any evidence, and the evidence step by step: codes and likelihoods by position."""


@final
class FactorGraph(Model):
    """A distribution over named sites, proportional to the product of its factors; immutable.

    Parameters
    ----------
    sites : mapping, sequence of str, or int
        Name -> state labels (or a number K of states, labelled 0 .. K-1); or only the names; or
        only how many sites there are, which are then named "0", "1", ....
    factors : iterable of (scope, potentials)
        A scope is a tuple of site names (or positions), the potentials an array of shape
        (K1, ..., Kr), or a flat one with the last site varying fastest. Zeros are allowed.
    log_factors : iterable of (scope, log-potentials)
        The same with logarithms, ``-inf`` being allowed.
    groups : iterable of FactorGroup
        Many factors at once as arrays; the way to build large models.
    states : sequence of labels or int, optional
        The states all sites have, when ``sites`` is not a mapping.
    directed : bool
        The model is a Bayesian network: every entry of ``factors`` and ``log_factors`` is the
        conditional probability table of its last site given the others, each site has exactly one,
        and no site is its own ancestor. Rows sum to one, up to 0.01 for tables that are rounded.

    Raises
    ------
    ModelError
        When something does not fit; the message names the site or the factor.

    See Also
    --------
    ising : Two states and pairs.
    potts : Several states and pairs.
    read_model : Read a model from a file.
    ContinuousModel : Sites with numbers.

    Examples
    --------
    >>> model = FactorGraph(
    ...     {"rain": ["no", "yes"], "grass": ["dry", "wet"]},
    ...     [("rain", [0.8, 0.2]), (("rain", "grass"), [[0.9, 0.1], [0.2, 0.8]])],
    ... )
    >>> model
    FactorGraph(2 sites of 2 states, 2 factors in 2 groups)
    >>> wet = model.observe({"grass": "wet"})
    >>> wet.sites, round(float(np.exp(wet.log_potential({"rain": "yes"}))), 3)
    (('rain',), 0.16)
    """

    __slots__ = ("__weakref__", "_evidence", "_evidence_labels", "_groups", "_history", "_log_offset", "shared")

    @checked
    def __init__(
        self,
        sites: Mapping[str, Sequence[Label] | int] | Sequence[str] | int,
        factors: Iterable[tuple[Scope, npt.ArrayLike]] = (),
        *,
        log_factors: Iterable[tuple[Scope, npt.ArrayLike]] = (),
        groups: Iterable[FactorGroup] = (),
        states: Sequence[Label] | int | None = None,
        directed: bool = False,
    ) -> None:
        domains = make_domains(sites, states)
        if domains.numbers.any():
            raise ModelError(
                f"the site {domains.names[int(np.argmax(domains.numbers))]!r} is a number, and tables need "
                "states; use gs.ContinuousModel."
            )
        if not is_iterable(groups):
            raise ModelError(f"groups must be a list of factor groups, got {groups!r}.")
        given = tuple(groups)
        for group in given:
            if not hasattr(type(group), "fold"):
                raise ModelError(
                    f"groups must hold factor groups such as TableFactors, got "
                    f"{type(group).__name__}; single factors go into factors=."
                )
            group.check(domains)
        names = [group.name for group in given if group.name is not None]
        for name in names:
            if names.count(name) > 1:
                raise ModelError(f"two groups are named {name!r}; group names must differ.")
        tables, offset = gather_tables(domains, factors, log_factors, directed=directed)
        conditional = [group for group in (*given, *tables) if group.directed]
        if directed or conditional:
            check_network(domains, conditional, complete=directed)
        self._fill(domains, (*given, *tables), offset, {}, {})

    def _fill(
        self,
        domains: Domains,
        groups: tuple[FactorGroup, ...],
        log_offset: float,
        evidence: dict[str, Label],
        evidence_labels: dict[str, tuple[Label, ...]],
        shared: Cache | None = None,
        history: History | None = None,
    ) -> None:
        super().__init__(domains)
        self._groups, self._log_offset = groups, log_offset
        self._evidence, self._evidence_labels = evidence, evidence_labels
        self._history = history
        self.shared = Cache() if shared is None else shared  # values that depend on scopes alone

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self._domains, self._groups, self._log_offset)
        return _restore, (*parts, self._evidence, self._evidence_labels, None, self._history)

    # ---- what is in it

    @property
    def groups(self) -> tuple[FactorGroup, ...]:
        """All factors."""
        return self._groups

    @property
    def log_offset(self) -> float:
        """The constant part of the log-potential, from folded evidence and constant factors."""
        return self._log_offset

    @property
    def evidence(self) -> dict[str, Label]:
        """Hard evidence folded in so far (a copy)."""
        return dict(self._evidence)

    @property
    def evidence_labels(self) -> dict[str, tuple[Label, ...]]:
        """State labels of the folded sites (a copy)."""
        return dict(self._evidence_labels)

    @property
    def domains(self) -> Domains:
        """Names and state labels of the free sites."""
        return self._domains

    @property
    def digest(self) -> str:
        """Hash of the whole content: equal models have equal digests."""
        return str(self.cache.get(Digest) or self.cache.put(self._hash()))

    def index(self, site: SiteKey) -> int:
        """Return the position of a site given by name or position."""
        if isinstance(name := site_name(site), str) and name in self._evidence:
            raise ModelError(f"the site {name!r} is observed as {self._evidence[name]!r} and no longer free.")
        return self._domains.position(site)

    @checked
    def group(self, name: str) -> FactorGroup:
        """Return the factor group of that name."""
        for group in self._groups:
            if group.name == name:
                return group
        known = ", ".join(repr(group.name) for group in self._groups if group.name is not None)
        raise ArgumentError(f"there is no factor group {name!r}; named groups: {known or 'none'}.")

    def _content(self) -> Iterator[Any]:
        domains = self._domains
        yield from _feed((domains.n_sites, domains.names.identity(), domains.kinds))
        yield from _feed(domains.kind_of if len(domains.kinds) > 1 else None)
        for group in self._groups:
            record: Any = group
            yield from _feed((type(group).__name__, *(getattr(record, field.name) for field in fields(record))))
        yield from _feed((self._log_offset, *self._evidence.items()))
        yield from _feed(tuple(self._evidence_labels.values()))

    # ---- what can be done with it

    def observe(self, evidence: Mapping[Any, Finding]) -> FactorGraph:
        """Return the model given evidence.

        Parameters
        ----------
        evidence : mapping
            Site -> state label: the site is fixed, folded into its factors and removed. Site -> likelihoods, as a
            mapping by label or a sequence in state order: the site stays and gets one more factor.

        Returns
        -------
        FactorGraph
            The remaining sites in their old order. Constants are in `log_offset`, so that
            log-potentials of complete assignments do not change. What evidence leaves of a factor
            belongs to no named group, but `reweight` reaches it.

        Raises
        ------
        ModelError
            For an unknown site or state, a site observed before, or evidence that makes one factor zero everywhere.

        Examples
        --------
        >>> pair = FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[1, 2], [3, 4]])])
        >>> pair.observe({"a": 1}).groups[0].scopes.tolist()
        [[0]]
        >>> pair.observe({"a": [0.3, 0.7]}).n_sites
        2
        """
        hard, soft = read_evidence(self._domains, evidence, self._evidence)
        return self._given(hard, soft) if hard or soft else self

    def _given(self, hard: dict[int, int], soft: dict[int, Floats]) -> FactorGraph:
        """Return the model given states (codes) and likelihoods by position."""
        domains = self._domains
        groups = list(self._groups)
        if soft:
            groups = merge_tables([*groups, *soft_factors(domains, soft)])
        offset = self._log_offset
        seen, seen_labels = self.evidence, self.evidence_labels
        if hard:
            folding = Folding.of(domains, hard)
            groups, constant = fold_groups(groups, folding)
            offset += constant
            for at, code in hard.items():
                name, labels = domains.names[at], domains.labels(at)
                seen[name], seen_labels[name] = labels[code], labels
            domains = domains.keep(folding.codes < 0)
        history = None
        # Only factors of named groups can get other weights.
        if any(group.name is not None for group in self._groups):
            before, steps = self._history or (self, ())
            history = before, (*steps, (hard, soft))
        return _restore(domains, tuple(groups), offset, seen, seen_labels, None, history)

    def reweight(self, **weights: Any) -> FactorGraph:
        """Return the model with new weights for named groups, on the same structure.

        Parameters
        ----------
        **weights
            Group name -> what that kind of group takes: one weight per factor in the order of
            ``model.group(name).scopes`` (spins, agreements), log-tables, or whatever a lattice
            builder accepts. Weights of an observed model are those of the model before its evidence.

        Returns
        -------
        FactorGraph
            Shares the cache `shared` with this model. Of an observed model: the same as to reweight
            first, then observe.

        Examples
        --------
        >>> import gibbsite.models as gm
        >>> model = gm.ising_grid((3, 3), coupling=0.1)
        >>> model.reweight(couplings=0.3).group("couplings").weights[0].tolist()
        [0.3]
        >>> seen = model.observe({"0": 1}).reweight(couplings=0.3)
        >>> seen.digest == model.reweight(couplings=0.3).observe({"0": 1}).digest
        True
        """
        for name in weights:
            self.group(name)
        if self._history is not None:
            return self._reweight_observed(weights)
        groups: list[FactorGroup] = []
        for group in self._groups:
            if group.name is not None and group.name in weights:
                group = group.reweighted(weights[group.name])
                group.check_weights(self._domains)
            groups.append(group)
        return _restore(
            self._domains, tuple(groups), self._log_offset, self._evidence, self._evidence_labels, self.shared
        )

    def _reweight_observed(self, weights: dict[str, Any]) -> FactorGraph:
        """Reweight the model before the evidence, and fold that in again."""
        assert self._history is not None
        before, steps = self._history
        try:
            model = before.reweight(**weights)
        except ModelError as error:
            said = str(error).removesuffix(".")
            raise ArgumentError(f"{said}; weights are those of the model before its evidence.") from None
        history = model, steps
        for hard, soft in steps:
            model = model._given(hard, soft)
        # Scopes and observed sites are the same, and so is what remains of them.
        model.shared, model._history = self.shared, history
        return model

    def log_potential(self, x: Mapping[Any, Label] | npt.ArrayLike) -> float:
        """Return the unnormalised log-probability of one complete assignment.

        Parameters
        ----------
        x : mapping or int array (n,)
            Site -> label for every free site (observed sites may be repeated; another state than
            the observed one has log-potential ``-inf``), or state codes in the order of `sites`.

        Returns
        -------
        float
            Sum of all log-potentials, `log_offset` included.

        Examples
        --------
        >>> model = FactorGraph({"a": ["x", "y"]}, log_factors=[("a", [0.0, 1.5])])
        >>> model.log_potential({"a": "y"})
        1.5
        """
        if isinstance(x, Mapping):
            codes = self._read_assignment(x)
            if codes is None:
                return -np.inf
        else:
            codes = self._read_codes(x)
        return self._log_offset + sum(group.log_potential(codes) for group in self._groups)

    def _read_assignment(self, x: Mapping[Any, Label]) -> Ints32 | None:
        """Return the codes, or None when an observed site has another state."""
        codes = np.full(self.n_sites, -1, np.int32)
        possible = True
        for site, label in x.items():
            if isinstance(name := site_name(site), str) and name in self._evidence:
                possible &= str(self._evidence[name]) == str(label)
                continue
            at = self._domains.position(site, "the assignment")
            codes[at] = self._domains.code(at, label)
        if (codes < 0).any():
            missing = self._domains.names[int(np.argmax(codes < 0))]
            raise ArgumentError(f"the assignment has no state for the site {missing!r}; name them all.")
        return codes if possible else None

    def _read_codes(self, x: npt.ArrayLike) -> Ints32:
        try:
            array = np.asarray(x)
        except ValueError:
            array = np.zeros((), object)
        if array.shape != (self.n_sites,) or (array.dtype.kind not in "iu" and array.size):
            raise ArgumentError(
                f"state codes must be {self.n_sites} integers, one per site, got {array.dtype} of shape {array.shape}."
            )
        outside = (array < 0) | (array >= self.cards)
        if outside.any():
            at = int(np.argmax(outside))
            raise ArgumentError(
                f"the site {self._domains.names[at]!r} has no state code {array[at]}; codes run "
                f"from 0 to {self.cards[at] - 1}, labels go into a mapping."
            )
        codes: Ints32 = array.astype(np.int32)
        return codes

    # ---- how it looks

    def _facts(self) -> tuple[str, str]:
        """Return two phrases: the sites, the factors."""
        factors = sum(group.size for group in self._groups)
        low, high = (int(self.cards.min()), int(self.cards.max())) if self.n_sites else (0, 0)
        states = _count(high, "state") if low == high else f"{low} to {high} states"
        return (
            _count(self.n_sites, "site") + (f" of {states}" if self.n_sites else ""),
            f"{_count(factors, 'factor')} in {_count(len(self._groups), 'group')}",
        )

    def __repr__(self) -> str:
        observed = f", {len(self._evidence):,} observed" if self._evidence else ""
        return f"FactorGraph({', '.join(self._facts())}{observed})"

    def _repr_html_(self) -> str:
        from gibbsite._common.html import card, grid

        sites = ", ".join(self._domains.names[k] for k in range(min(self.n_sites, 12)))
        rows = [(group.name or "", type(group).__name__, f"{group.size:,}", group.arity) for group in self._groups]
        seen = [f"{name} = {label}" for name, label in list(self._evidence.items())[:12]]
        more = ", ..." if len(self._evidence) > 12 else ""
        lines = [", ".join(self._facts()), f"sites: {sites}{', ...' if self.n_sites > 12 else ''}"]
        lines += [f"observed: {', '.join(seen)}{more}"] if seen else []
        return card("FactorGraph", lines, table=grid(("group", "kind", "factors", "sites each"), rows))


def _restore(
    domains: Domains,
    groups: tuple[FactorGroup, ...],
    log_offset: float,
    evidence: dict[str, Label],
    evidence_labels: dict[str, tuple[Label, ...]],
    shared: Cache | None = None,
    history: History | None = None,
) -> FactorGraph:
    """Put a model together from parts known to be valid."""
    model = object.__new__(FactorGraph)
    model._fill(domains, groups, log_offset, evidence, evidence_labels, shared, history)
    return model


def _feed(value: object) -> Iterator[Any]:
    """Yield the bytes of arrays and plain values, each with its type and size so that they stay apart."""
    if isinstance(value, np.ndarray):
        little = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        yield f"{little.dtype.str}{little.shape}".encode()
        yield little.reshape(-1).data
    elif isinstance(value, (tuple, list)):
        yield f"({len(value)}".encode()
        for part in value:
            yield from _feed(part)
    elif callable(value):
        from gibbsite._numba.foreign import digest_of

        yield digest_of(value).encode()
    else:
        text = f"{type(value).__name__}:{value!r}".encode()
        yield f"{len(text)}:".encode() + text


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
