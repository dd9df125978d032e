"""Gibbs sampling on graphical models: one interface for the whole toolbox.

>>> import gibbsite as gs
>>> model = gs.ising_grid((10, 10), coupling=0.2)
>>> result = gs.sample(model, gs.Gibbs(), sweeps=1000, rng=1, progress=False)
>>> 0.4 < result.marginals["0"][1] < 0.6
True

Names are loaded when first used, so that importing gibbsite costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gibbsite import advice as advice
    from gibbsite import applications as applications
    from gibbsite import batch as batch
    from gibbsite import compatibility as compatibility
    from gibbsite import dimod_sampler as dimod_sampler
    from gibbsite import errors as errors
    from gibbsite import exact as exact
    from gibbsite import formats as formats
    from gibbsite import graph as graph
    from gibbsite import inference as inference
    from gibbsite import influence as influence
    from gibbsite import kernel as kernel
    from gibbsite import lab as lab
    from gibbsite import learn as learn
    from gibbsite import lfsr as lfsr
    from gibbsite import model as model
    from gibbsite import persistent as persistent
    from gibbsite import random as random
    from gibbsite import report as report
    from gibbsite import result as result
    from gibbsite import run as run
    from gibbsite import sampling as sampling
    from gibbsite import scan as scan
    from gibbsite import testing as testing
    from gibbsite import variational as variational
    from gibbsite.advice import (
        Advice,
        recommend,
    )
    from gibbsite.batch import sample_batch, sample_models
    from gibbsite.compatibility import (
        Compatibility,
        check_conditionals,
    )
    from gibbsite.dimod_sampler import DimodSampler, to_sampleset
    from gibbsite.errors import (
        ArgumentError,
        CheckpointError,
        ConvergenceWarning,
        FormatError,
        GibbsiteError,
        IncompatibleError,
        ModelError,
        SamplingError,
        SupportError,
        TooLargeError,
    )
    from gibbsite.exact import (
        ExactCost,
        ExactResult,
        predict_exact,
        solve_exact,
    )
    from gibbsite.formats import (
        example,
        from_bqm,
        from_ising,
        from_networkx,
        from_pgmpy,
        from_qubo,
        read_evidence,
        read_model,
        to_bqm,
        to_networkx,
        write_model,
    )
    from gibbsite.graph import Graph, color_sites, compile_graph
    from gibbsite.inference import Inference, infer
    from gibbsite.influence import (
        BlockOrder,
        Certificate,
        DogsScan,
        Influence,
        ShortRuns,
        bound_influence,
        certify,
        dogs,
        load_scan,
        short_runs,
    )
    from gibbsite.kernel import (
        MALA,
        MGPMH,
        SGLD,
        ULA,
        AnnealedGibbs,
        BlockedGaussianGibbs,
        ConditionalGibbs,
        ContinuousGibbs,
        DoubleMinGibbs,
        ExactGaussian,
        GaussianGibbs,
        Gibbs,
        HerdedGibbs,
        HerdingBound,
        Kernel,
        LocalEnergies,
        LocalMinibatchGibbs,
        Metropolis,
        MinGibbs,
        PoissonGibbs,
        PoissonMH,
        Proposal,
        QuasiGibbs,
        Slice,
        TunaMH,
        herding_bound,
        local_energies,
    )
    from gibbsite.model import (
        AgreementFactors,
        Angle,
        Conditionals,
        ContinuousModel,
        DataDensity,
        DistanceFactors,
        FactorGraph,
        FactorGroup,
        FieldFactors,
        FunctionFactors,
        Gaussian,
        Interval,
        LatticeFactors,
        LogDensity,
        Model,
        SpinFactors,
        TableFactors,
        continuous_spins,
        difference_factors,
        distance_potts,
        ising,
        ising_grid,
        logistic_factors,
        mixture_factors,
        normal_factors,
        potts,
        potts_grid,
        product_factors,
    )
    from gibbsite.persistent import PersistentChains
    from gibbsite.report import plot_convergence, plot_marginals, plot_trace, plot_variation
    from gibbsite.result import Result, SiteTable, compare, load_result  # type: ignore[no-redef]
    from gibbsite.run import BestState, Draws, Energy, Joint, Marginals, PairMoments
    from gibbsite.sampling import sample
    from gibbsite.scan import (
        Chromatic,
        FixedOrder,
        Palindromic,
        RandomScan,
        Scan,
        Shuffled,
        Systematic,
    )
    from gibbsite.variational import MeanFieldResult, mean_field

_HOMES: dict[str, tuple[str, ...]] = {
    "advice": (
        "Advice",
        "recommend",
    ),
    "batch": ("sample_batch", "sample_models"),
    "compatibility": (
        "Compatibility",
        "check_conditionals",
    ),
    "dimod_sampler": ("DimodSampler", "to_sampleset"),
    "errors": (
        "ArgumentError",
        "CheckpointError",
        "ConvergenceWarning",
        "FormatError",
        "GibbsiteError",
        "IncompatibleError",
        "ModelError",
        "SamplingError",
        "SupportError",
        "TooLargeError",
    ),
    "exact": (
        "ExactCost",
        "ExactResult",
        "predict_exact",
        "solve_exact",
    ),
    "formats": (
        "example",
        "from_bqm",
        "from_ising",
        "from_networkx",
        "from_pgmpy",
        "from_qubo",
        "read_evidence",
        "read_model",
        "to_bqm",
        "to_networkx",
        "write_model",
    ),
    "graph": ("Graph", "color_sites", "compile_graph"),
    "inference": ("Inference", "infer"),
    "influence": (
        "BlockOrder",
        "Certificate",
        "DogsScan",
        "Influence",
        "ShortRuns",
        "bound_influence",
        "certify",
        "dogs",
        "load_scan",
        "short_runs",
    ),
    "kernel": (
        "AnnealedGibbs",
        "BlockedGaussianGibbs",
        "ConditionalGibbs",
        "ContinuousGibbs",
        "DoubleMinGibbs",
        "LocalEnergies",
        "ExactGaussian",
        "GaussianGibbs",
        "Gibbs",
        "HerdedGibbs",
        "HerdingBound",
        "Kernel",
        "LocalMinibatchGibbs",
        "MALA",
        "MGPMH",
        "Metropolis",
        "MinGibbs",
        "PoissonGibbs",
        "PoissonMH",
        "Proposal",
        "QuasiGibbs",
        "SGLD",
        "Slice",
        "TunaMH",
        "ULA",
        "herding_bound",
        "local_energies",
    ),
    "model": (
        "AgreementFactors",
        "Angle",
        "Conditionals",
        "ContinuousModel",
        "DataDensity",
        "FactorGraph",
        "FactorGroup",
        "FieldFactors",
        "FunctionFactors",
        "Gaussian",
        "Interval",
        "DistanceFactors",
        "LatticeFactors",
        "LogDensity",
        "Model",
        "SpinFactors",
        "TableFactors",
        "continuous_spins",
        "difference_factors",
        "ising",
        "ising_grid",
        "distance_potts",
        "logistic_factors",
        "mixture_factors",
        "normal_factors",
        "potts",
        "potts_grid",
        "product_factors",
    ),
    "persistent": ("PersistentChains",),
    "report": ("plot_convergence", "plot_marginals", "plot_trace", "plot_variation"),
    "result": ("Result", "SiteTable", "compare", "load_result"),
    "run": ("BestState", "Draws", "Energy", "Joint", "Marginals", "PairMoments"),
    "sampling": ("sample",),
    "scan": (
        "Chromatic",
        "Palindromic",
        "RandomScan",
        "Scan",
        "FixedOrder",
        "Shuffled",
        "Systematic",
    ),
    "variational": ("MeanFieldResult", "mean_field"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_ROOMS = (*_HOMES, "applications", "lab", "learn", "lfsr", "random", "testing")

__all__ = [
    "MALA",
    "MGPMH",
    "SGLD",
    "ULA",
    "Advice",
    "AgreementFactors",
    "Angle",
    "AnnealedGibbs",
    "ArgumentError",
    "BestState",
    "BlockOrder",
    "BlockedGaussianGibbs",
    "Certificate",
    "CheckpointError",
    "Chromatic",
    "Compatibility",
    "ConditionalGibbs",
    "Conditionals",
    "ContinuousGibbs",
    "ContinuousModel",
    "ConvergenceWarning",
    "DataDensity",
    "DimodSampler",
    "DistanceFactors",
    "DogsScan",
    "DoubleMinGibbs",
    "Draws",
    "Energy",
    "ExactCost",
    "ExactGaussian",
    "ExactResult",
    "FactorGraph",
    "FactorGroup",
    "FieldFactors",
    "FixedOrder",
    "FormatError",
    "FunctionFactors",
    "Gaussian",
    "GaussianGibbs",
    "Gibbs",
    "GibbsiteError",
    "Graph",
    "HerdedGibbs",
    "HerdingBound",
    "IncompatibleError",
    "Inference",
    "Influence",
    "Interval",
    "Joint",
    "Kernel",
    "LatticeFactors",
    "LocalEnergies",
    "LocalMinibatchGibbs",
    "LogDensity",
    "Marginals",
    "MeanFieldResult",
    "Metropolis",
    "MinGibbs",
    "Model",
    "ModelError",
    "PairMoments",
    "Palindromic",
    "PersistentChains",
    "PoissonGibbs",
    "PoissonMH",
    "Proposal",
    "QuasiGibbs",
    "RandomScan",
    "Result",
    "SamplingError",
    "Scan",
    "ShortRuns",
    "Shuffled",
    "SiteTable",
    "Slice",
    "SpinFactors",
    "SupportError",
    "Systematic",
    "TableFactors",
    "TooLargeError",
    "TunaMH",
    "bound_influence",
    "certify",
    "check_conditionals",
    "color_sites",
    "compare",
    "compile_graph",
    "continuous_spins",
    "difference_factors",
    "distance_potts",
    "dogs",
    "example",
    "from_bqm",
    "from_ising",
    "from_networkx",
    "from_pgmpy",
    "from_qubo",
    "herding_bound",
    "infer",
    "ising",
    "ising_grid",
    "load_result",
    "load_scan",
    "local_energies",
    "logistic_factors",
    "mean_field",
    "mixture_factors",
    "normal_factors",
    "plot_convergence",
    "plot_marginals",
    "plot_trace",
    "plot_variation",
    "potts",
    "potts_grid",
    "predict_exact",
    "product_factors",
    "read_evidence",
    "read_model",
    "recommend",
    "sample",
    "sample_batch",
    "sample_models",
    "short_runs",
    "solve_exact",
    "to_bqm",
    "to_networkx",
    "to_sampleset",
    "write_model",
]


if TYPE_CHECKING:
    __version__: str
else:  # type checkers know the names above, and no others

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from gibbsite.run.plan import package_version

            return package_version()
        if name in _HOME_OF:
            return getattr(importlib.import_module(f"gibbsite.{_HOME_OF[name]}"), name)
        if name in _ROOMS:
            return importlib.import_module(f"gibbsite.{name}")
        raise AttributeError(f"module 'gibbsite' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, *_ROOMS])
