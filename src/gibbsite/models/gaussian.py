"""Normal distributions in many dimensions: by covariance or precision, dense or sparse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gibbsite._common.arguments import describe, is_iterable
from gibbsite._common.arrays import Floats
from gibbsite._common.reals import read_reals
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError, ModelError
from gibbsite.models.base import Model
from gibbsite.models.domain import Domains, Interval, Label, SiteKey, make_domains

_SYMMETRY = 1e-10  # relative to the largest entry
_MOST_DENSE = 4000  # sites up to which a sparse precision may be made dense to learn its eigenvalues


class Gaussian(Model):
    """A normal distribution; immutable.

    Parameters
    ----------
    mean : array (n,) or float, optional
        Zero by default.
    covariance : array (n, n), optional
        Symmetric and positive definite.
    precision : array or SciPy sparse matrix (n, n), optional
        Its inverse; give one of the two. A sparse one (a Gaussian Markov random field) is never made dense.
    names : sequence of str, optional
        Names of the sites; "0", "1", ... by default.

    Raises
    ------
    ModelError
        If the matrix is not symmetric or not positive definite; the message names entry or eigenvalue.

    See Also
    --------
    kernels.GaussianGibbs : One site after another.
    kernels.ExactGaussian : Independent draws.

    Examples
    --------
    >>> target = Gaussian(mean=[1.0, 0.0], covariance=[[1.0, 0.8], [0.8, 2.0]])
    >>> target.condition({"1": 1.0}).mean.tolist()
    [1.4]
    >>> round(float(target.condition({"1": 1.0}).covariance[0, 0]), 12)
    0.68
    """

    def __init__(
        self,
        mean: npt.ArrayLike | None = None,
        covariance: npt.ArrayLike | None = None,
        *,
        precision: Any = None,
        names: Sequence[str] | None = None,
    ) -> None:
        if (covariance is None) == (precision is None):
            raise ModelError("give a covariance or a precision, one of the two.")
        what = "covariance" if precision is None else "precision"
        given: Any = covariance if precision is None else precision
        sparse = hasattr(given, "tocsr")
        matrix = _read_sparse(given) if sparse else _read_dense(given, what)
        n = matrix.shape[0]
        super().__init__(make_domains(n if names is None else names, Interval()))
        if self._domains.n_sites != n:
            raise ModelError(f"{n} names are needed, one for each site, got {self._domains.n_sites}.")
        self.mean = _read_mean(mean, n)
        _check_symmetric(matrix, what, self._domains)
        if sparse:
            _check_definite_sparse(matrix)
        else:
            _check_definite(matrix, what)
        self._covariance: Floats | None = matrix if what == "covariance" else None
        self._precision: Any = matrix if what == "precision" else None
        self._evidence: dict[str, float] = {}

    @property
    def evidence(self) -> dict[str, Any]:
        """What was observed, by site (a copy)."""
        return dict(self._evidence)

    @property
    def evidence_labels(self) -> dict[str, tuple[Label, ...]]:
        """The moments reported of the observed sites, which are numbers."""
        return dict.fromkeys(self._evidence, Interval.moments)

    @property
    def sparse(self) -> bool:
        """Whether the precision is a sparse matrix."""
        return hasattr(self._precision, "tocsr")

    @cached_property
    def covariance(self) -> Floats:
        """The covariance, as a dense matrix."""
        if self._covariance is not None:
            return self._covariance
        dense = self.precision.toarray() if self.sparse else self.precision
        found: Floats = np.linalg.inv(dense)
        return 0.5 * (found + found.T)

    @cached_property
    def precision(self) -> Any:
        """The precision, dense or sparse."""
        if self._precision is not None:
            return self._precision
        found = np.linalg.inv(self._covariance)  # type: ignore[arg-type]
        return 0.5 * (found + found.T)

    def _content(self) -> Iterator[Any]:
        yield repr(self._domains.names.identity()).encode()
        yield self.mean.tobytes()
        if self._evidence:
            yield repr(sorted(self._evidence.items())).encode()
        matrix: Any = self._covariance if self._covariance is not None else self._precision
        yield b"covariance" if self._covariance is not None else b"precision"
        for part in (matrix.indptr, matrix.indices, matrix.data) if self.sparse else (matrix,):
            yield np.ascontiguousarray(part).tobytes()

    def observe(self, evidence: Mapping[Any, Any]) -> Gaussian:
        """Return the distribution of the other sites given the values of some; results show the known values, too.

        The distribution is that of :meth:`condition`, which leaves the known sites out of results.

        Examples
        --------
        >>> pair = Gaussian(covariance=[[1.0, 0.8], [0.8, 2.0]], names=["a", "b"]).observe({"a": 1.0})
        >>> pair.mean.tolist(), pair.evidence
        ([0.8], {'a': 1.0})
        """
        if not isinstance(evidence, Mapping):
            raise ModelError(f"evidence must be a mapping site -> value, got {type(evidence).__name__}.")
        if not evidence:
            return self
        for site in evidence:
            if site in self._evidence:
                raise ModelError(f"the site {site!r} is already observed as {self._evidence[site]!r}.")
        found = self.condition(evidence)
        seen = {self._domains.names[self.index(site)]: float(value) for site, value in evidence.items()}
        found._evidence = {**self._evidence, **seen}
        return found

    def condition(self, values: Mapping[SiteKey, float]) -> Gaussian:
        """Return the distribution of the other sites, given the values of some.

        Examples
        --------
        >>> pair = Gaussian(covariance=[[1.0, 0.8], [0.8, 2.0]], names=["a", "b"])
        >>> pair.condition({"a": 1.0}).mean.tolist()
        [0.8]
        """
        if not isinstance(values, Mapping):
            raise ArgumentError(f"{argument('values')} must be a mapping of sites to numbers, got {describe(values)}.")
        known = np.array([self.index(site) for site in values], np.intp)
        if known.size != np.unique(known).size or not known.size:
            raise ArgumentError("name the sites that are known, each once.")
        try:
            given = np.array([float(value) for value in values.values()])
        except (TypeError, ValueError):
            given = np.array([np.nan])
        if not np.isfinite(given).all():
            raise ArgumentError("the values of known sites must be finite numbers.")
        free = np.setdiff1d(np.arange(self.n_sites), known)
        if not free.size:
            raise ArgumentError("all sites are known, so no site remains; leave at least one out.")
        names = [self._domains.names[int(i)] for i in free]
        shift = given - self.mean[known]
        if self._covariance is not None:
            cross = self._covariance[np.ix_(free, known)]
            gain = np.linalg.solve(self._covariance[np.ix_(known, known)], cross.T).T
            rest = self._covariance[np.ix_(free, free)] - gain @ cross.T
            return Gaussian(self.mean[free] + gain @ shift, 0.5 * (rest + rest.T), names=names)
        own, cross = self._precision[free][:, free], self._precision[free][:, known]
        mean = self.mean[free] - _solve(own, cross @ shift)
        return Gaussian(mean, precision=own, names=names)

    def marginal(self, sites: Sequence[SiteKey]) -> Gaussian:
        """Return the distribution of some of the sites.

        Examples
        --------
        >>> Gaussian(covariance=[[1.0, 0.8], [0.8, 2.0]]).marginal(["1"]).covariance.tolist()
        [[2.0]]
        """
        if not is_iterable(sites):
            raise ArgumentError(f"{argument('sites')} must be a list of sites, got {describe(sites)}.")
        kept = np.array([self.index(site) for site in sites], np.intp)
        if kept.size != np.unique(kept).size or not kept.size:
            raise ArgumentError("name the sites to keep, each once.")
        names = [self._domains.names[int(i)] for i in kept]
        if self._covariance is not None:
            part = self._covariance[np.ix_(kept, kept)]
        else:
            units = np.zeros((self.n_sites, kept.size))
            units[kept, np.arange(kept.size)] = 1.0
            part = _solve(self._precision, units)[kept]
        return Gaussian(self.mean[kept], 0.5 * (part + part.T), names=names)

    def draw_start(self, rng: np.random.Generator) -> Floats:
        """Return a start; sites are spread about twice as wide as given all others."""
        diagonal = self.precision.diagonal()
        found: Floats = self.mean + 2.0 * rng.standard_normal(self.n_sites) / np.sqrt(diagonal)
        return found

    def __repr__(self) -> str:
        kind = "sparse precision" if self.sparse else "dense"
        return f"Gaussian({self.n_sites:,} sites, {kind})"


def _solve(matrix: Any, right: Any) -> Floats:
    if hasattr(matrix, "tocsr"):
        from scipy.sparse.linalg import splu

        dense = right.toarray() if hasattr(right, "toarray") else np.asarray(right)
        found: Floats = splu(matrix.tocsc()).solve(dense)
        return found
    return np.asarray(np.linalg.solve(matrix, right))


def _read_mean(mean: npt.ArrayLike | None, n: int) -> Floats:
    given = np.zeros(()) if mean is None else read_reals(mean, "the mean")
    if given.shape not in ((), (1,), (n,)):
        raise ModelError(f"the mean must be {n} numbers, or one for all, got shape {given.shape}.")
    found = np.array(np.broadcast_to(given, (n,)))
    if not np.isfinite(found).all():
        raise ModelError("the mean must be finite.")
    found.setflags(write=False)
    return found


def _read_dense(given: Any, what: str) -> Floats:
    matrix = read_reals(given, f"the {what}").copy()
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ModelError(f"the {what} must be a square matrix, got shape {matrix.shape}.")
    if not np.isfinite(matrix).all():
        raise ModelError(f"the {what} has an entry that is not finite.")
    matrix.setflags(write=False)
    return matrix


def _read_sparse(given: Any) -> Any:
    read_reals(given.data if given.nnz else 0.0, "the precision")
    matrix = given.tocsr().astype(float)
    matrix.sum_duplicates()
    matrix.sort_indices()
    if matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise ModelError(f"the precision must be a square matrix, got shape {matrix.shape}.")
    if not np.isfinite(matrix.data).all():
        raise ModelError("the precision has an entry that is not finite.")
    return matrix


def _check_symmetric(matrix: Any, what: str, domains: Domains) -> None:
    gap = abs(matrix - matrix.T)
    if hasattr(gap, "tocoo"):
        gap = gap.tocoo()
        worst = int(np.argmax(gap.data)) if gap.nnz else -1
        i, j, size = (int(gap.row[worst]), int(gap.col[worst]), gap.data[worst]) if worst >= 0 else (0, 0, 0.0)
    else:
        i, j = (int(k) for k in np.unravel_index(int(np.argmax(gap)), gap.shape))
        size = gap[i, j]
    if size > _SYMMETRY * abs(matrix).max():
        raise ModelError(
            f"the {what} is not symmetric: entry ({domains.names[i]}, {domains.names[j]}) is "
            f"{matrix[i, j]:.6g}, entry ({domains.names[j]}, {domains.names[i]}) is {matrix[j, i]:.6g}."
        )


def _check_definite(matrix: Floats, what: str) -> None:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        least = float(np.linalg.eigvalsh(matrix)[0])
        raise ModelError(
            f"the {what} is not positive definite: its smallest eigenvalue is {least:.6g}; it must be above zero."
        ) from None


def _check_definite_sparse(matrix: Any) -> None:
    """Refuse a sparse matrix that is not positive definite, judged by diagonal dominance, or else by pivots."""
    diagonal = matrix.diagonal()
    if not (diagonal > 0).all():
        i = int(np.argmin(diagonal))
        raise ModelError(
            f"the precision is not positive definite: its diagonal entry {i} is {diagonal[i]:.6g}, and its "
            "smallest eigenvalue is no larger; it must be above zero."
        )
    others = np.asarray(abs(matrix).sum(axis=1)).ravel() - diagonal
    if (others < diagonal).all():
        return
    if matrix.shape[0] <= _MOST_DENSE:
        _check_definite(matrix.toarray(), "precision")
        return
    from scipy.sparse.linalg import splu

    # without pivoting, the signs of the pivots are those of the eigenvalues (Sylvester)
    factors = splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    pivots = factors.U.diagonal()
    if not (pivots > 0).all():
        raise ModelError(f"the precision is not positive definite: a pivot of its factorisation is {pivots.min():.6g}.")
