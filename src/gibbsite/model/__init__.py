"""What is asked: sites, factors, evidence, and builders for well-known models."""

from __future__ import annotations

from gibbsite.model.domain import Domains, Label, SiteKey
from gibbsite.model.evidence import Finding, Folding
from gibbsite.model.factor import FactorGroup, TableFactors
from gibbsite.model.factorgraph import FactorGraph
from gibbsite.model.kernelled import KernelFactors
from gibbsite.model.lattice import FieldFactors, LatticeFactors
from gibbsite.model.weighted import AgreementFactors, SpinFactors
from gibbsite.model.zoo import ising, ising_grid, kernel_potts, potts, potts_grid

__all__ = [
    "AgreementFactors",
    "Domains",
    "FactorGraph",
    "FactorGroup",
    "FieldFactors",
    "Finding",
    "Folding",
    "KernelFactors",
    "Label",
    "LatticeFactors",
    "SiteKey",
    "SpinFactors",
    "TableFactors",
    "ising",
    "ising_grid",
    "kernel_potts",
    "potts",
    "potts_grid",
]
