"""What is asked: sites, factors, evidence, and builders for well-known models.

Models are immutable and named; ``observe`` folds evidence in, ``reweight`` changes weights. Files are in
:mod:`gibbsite.formats`, compiled arrays in :mod:`gibbsite.graph`.
"""

from __future__ import annotations

from gibbsite.model.base import Model
from gibbsite.model.conditionals import Conditionals
from gibbsite.model.continuous import ContinuousModel, continuous_spins
from gibbsite.model.density import DataDensity, LogDensity
from gibbsite.model.distance import DistanceFactors
from gibbsite.model.domain import Angle, Domains, Interval, Label, SiteKey
from gibbsite.model.evidence import Finding, Folding
from gibbsite.model.factor import FactorGroup, TableFactors
from gibbsite.model.factorgraph import FactorGraph
from gibbsite.model.functions import (
    FunctionFactors,
    difference_factors,
    logistic_factors,
    mixture_factors,
    normal_factors,
    product_factors,
)
from gibbsite.model.gaussian import Gaussian
from gibbsite.model.lattice import FieldFactors, LatticeFactors
from gibbsite.model.weighted import AgreementFactors, SpinFactors
from gibbsite.model.zoo import distance_potts, ising, ising_grid, potts, potts_grid, rbm

__all__ = [
    "AgreementFactors",
    "Angle",
    "Conditionals",
    "ContinuousModel",
    "DataDensity",
    "DistanceFactors",
    "Domains",
    "FactorGraph",
    "FactorGroup",
    "FieldFactors",
    "Finding",
    "Folding",
    "FunctionFactors",
    "Gaussian",
    "Interval",
    "Label",
    "LatticeFactors",
    "LogDensity",
    "Model",
    "SiteKey",
    "SpinFactors",
    "TableFactors",
    "continuous_spins",
    "difference_factors",
    "distance_potts",
    "ising",
    "ising_grid",
    "logistic_factors",
    "mixture_factors",
    "normal_factors",
    "potts",
    "potts_grid",
    "product_factors",
    "rbm",
]
