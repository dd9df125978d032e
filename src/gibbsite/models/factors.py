"""Factors of a model: tables, couplings, fields, lattices, agreements and functions.

>>> import gibbsite as gs
>>> gs.factors.SpinFactors.__name__
'SpinFactors'
"""

from gibbsite.models.distance import DistanceFactors
from gibbsite.models.factor import FactorGroup, TableFactors
from gibbsite.models.functions.factors import FunctionFactors
from gibbsite.models.functions.forms import (
    difference_factors,
    logistic_factors,
    mixture_factors,
    normal_factors,
    product_factors,
)
from gibbsite.models.lattice import FieldFactors, LatticeFactors
from gibbsite.models.networks.noisy import Logistic, NoisyMax, NoisyOr
from gibbsite.models.weighted import AgreementFactors, SpinFactors

__all__ = [
    "AgreementFactors",
    "DistanceFactors",
    "FactorGroup",
    "FieldFactors",
    "FunctionFactors",
    "LatticeFactors",
    "Logistic",
    "NoisyMax",
    "NoisyOr",
    "SpinFactors",
    "TableFactors",
    "difference_factors",
    "logistic_factors",
    "mixture_factors",
    "normal_factors",
    "product_factors",
]
