"""Binary polynomials and discrete quadratic models of dimod.

As in `bqm`, both give an energy, and the model is ``p(x) ~ exp(-beta * E(x))``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Floats
from gibbsite._common.reals import read_reals
from gibbsite._common.wording import site_name
from gibbsite.errors import IncompatibleError, TooLargeError
from gibbsite.formats.network import MOST_MEMBERS
from gibbsite.formats.objects.bqm import read_beta
from gibbsite.models.factor import TableFactors
from gibbsite.models.factorgraph import FactorGraph

_ENTRIES = 1 << 26  # most entries of all tables, half a gigabyte


@checked
def from_polynomial(polynomial: Any, *, beta: float = 1.0) -> FactorGraph:
    """Build a model from a dimod binary polynomial, whose terms may have any number of variables.

    Parameters
    ----------
    polynomial : dimod.BinaryPolynomial
        Of vartype SPIN (state labels -1 and 1) or BINARY (0 and 1).
    beta : float
        Inverse temperature: ``p(x) ~ exp(-beta * E(x))``.

    Returns
    -------
    FactorGraph
        Sites in the order of the terms, named by the texts of the variables; a table for each term.

    Raises
    ------
    TooLargeError
        When tables of terms with many variables would not fit into memory.

    See Also
    --------
    from_bqm : Terms of at most two variables.

    Examples
    --------
    >>> import dimod
    >>> model = from_polynomial(dimod.BinaryPolynomial({"abc": -1.0, "a": 0.5}, "SPIN"), beta=2.0)
    >>> model.log_potential({"a": 1, "b": 1, "c": 1}), model.log_potential({"a": -1, "b": 1, "c": 1})
    (1.0, -1.0)
    """
    vartype = getattr(getattr(polynomial, "vartype", None), "name", None)
    if vartype not in ("SPIN", "BINARY") or not hasattr(polynomial, "degree") or not hasattr(polynomial, "items"):
        raise IncompatibleError(f"from_polynomial takes a dimod BinaryPolynomial, got {type(polynomial).__name__}.")
    beta = read_beta(beta)
    index: dict[Any, int] = {}
    for variable in sorted(polynomial.variables, key=lambda one: (str(type(one)), str(one))):
        index[variable] = len(index)
    by_degree: dict[int, tuple[list[list[int]], list[float]]] = {}
    for term, bias in polynomial.items():
        scopes, biases = by_degree.setdefault(len(term), ([], []))
        scopes.append(sorted(index[variable] for variable in term))
        biases.append(bias)
    entries = sum(len(scopes) << degree for degree, (scopes, _) in by_degree.items())
    most = max(by_degree, default=0)
    if most > MOST_MEMBERS or entries > _ENTRIES:
        raise TooLargeError(
            f"a term has {most} variables, and all tables together {entries:,} entries; split long terms with "
            "dimod.make_quadratic."
        )
    constant, groups = 0.0, []
    for degree, (scopes, biases) in sorted(by_degree.items()):
        weights = -beta * read_reals(biases, "the biases of the polynomial")
        if degree == 0:
            constant += float(weights.sum())
            continue
        table = _product(degree, vartype)
        groups.append(TableFactors(np.array(scopes, np.int32), weights.reshape(-1, *[1] * degree) * table + 0.0))
    names = [str(site_name(variable)) for variable in index]
    states = (-1, 1) if vartype == "SPIN" else (0, 1)
    return FactorGraph(names, groups=groups, states=states, log_factors=[((), constant)] if constant else [])


def _product(degree: int, vartype: str) -> Floats:
    """Return the product of variables in all their states, an axis each."""
    values = np.array([-1.0, 1.0] if vartype == "SPIN" else [0.0, 1.0])
    table = np.ones(())
    for _ in range(degree):
        table = np.multiply.outer(table, values)
    return table


@checked
def from_dqm(dqm: Any, *, beta: float = 1.0) -> FactorGraph:
    """Build a model from a dimod discrete quadratic model, whose variables have any number of cases.

    Parameters
    ----------
    dqm : dimod.DiscreteQuadraticModel
        Linear biases of cases, quadratic biases of pairs of cases. Constraints that were added to it are penalties
        among them.
    beta : float
        Inverse temperature: ``p(x) ~ exp(-beta * E(x))``.

    Returns
    -------
    FactorGraph
        Sites in the order of ``dqm.variables``, named by the texts of the variables, with the cases as states.

    See Also
    --------
    from_bqm : Two states.

    Examples
    --------
    >>> import dimod
    >>> dqm = dimod.DiscreteQuadraticModel()
    >>> _ = dqm.add_variable(3, label="a"), dqm.add_variable(2, label="b")
    >>> dqm.set_quadratic_case("a", 2, "b", 1, -1.5)
    >>> from_dqm(dqm, beta=2.0).log_potential({"a": 2, "b": 1})
    3.0
    """
    if not all(hasattr(dqm, name) for name in ("num_cases", "get_linear", "get_quadratic", "adj")):
        raise IncompatibleError(f"from_dqm takes a dimod DiscreteQuadraticModel, got {type(dqm).__name__}.")
    beta = read_beta(beta)
    variables = list(dqm.variables)
    index = {variable: k for k, variable in enumerate(variables)}
    sites = {}
    for variable in variables:
        name = str(site_name(variable))
        if name in sites:
            raise IncompatibleError(f"two variables have the same name as text, {name!r}; relabel one of them.")
        sites[name] = list(dqm.get_cases(variable))
    factors: list[Any] = []
    for u, position in index.items():
        linear = read_reals(np.asarray(dqm.get_linear(u)).ravel(), "the linear biases")
        factors.append(((position,), -beta * linear + 0.0))
        for v in dqm.adj[u]:
            if position < index[v]:
                table = np.zeros((dqm.num_cases(u), dqm.num_cases(v)))
                for codes, bias in dqm.get_quadratic(u, v).items():
                    table[codes] = bias
                factors.append(((position, index[v]), -beta * read_reals(table, "the quadratic biases") + 0.0))
    offset = -beta * float(getattr(dqm, "offset", 0.0))
    return FactorGraph(sites, log_factors=[*factors, *([((), offset)] if offset else [])])
