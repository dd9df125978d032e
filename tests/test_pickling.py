"""Errors and objects of every public class go to other processes and come back as they were."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._common.wording import argument
from gibbsite.errors import UnknownFormatError
from gibbsite.kernels.registry import registered_kernels
from gibbsite.scans.registry import proof_scans


def all_errors() -> Iterator[type[BaseException]]:
    for found in pkgutil.walk_packages(gs.__path__, "gibbsite."):
        if found.name != "gibbsite.__main__":
            module = importlib.import_module(found.name)
            for kind in vars(module).values():
                is_error = inspect.isclass(kind) and issubclass(kind, BaseException)
                if is_error and kind.__module__.startswith("gibbsite"):
                    yield kind


def test_errors_survive() -> None:
    kinds = set(all_errors())
    assert {gs.errors.SamplingError, gs.errors.CheckpointError, gs.errors.FormatError, UnknownFormatError} <= kinds
    for kind in sorted(kinds, key=lambda each: each.__name__):
        if kind is UnknownFormatError:
            error: BaseException = UnknownFormatError("noext", "give it {}", writing=True)
        elif kind is gs.errors.FormatError:
            error = gs.errors.FormatError("a number is missing", "model.uai", 3, 7)
        else:
            error = kind(f"{argument('chains')} must be 1.")
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind
        assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))
        if isinstance(error, gs.GibbsiteError):
            assert again.text.marked == error.text.marked


def test_an_error_keeps_what_was_recorded_before_it() -> None:
    def fall_off(x: Any) -> float:
        return np.nan if x[0] > 1.0 else float(-0.5 * x[0] ** 2)

    with pytest.raises(gs.errors.SamplingError) as caught:
        gs.sample(gs.LogDensity(fall_off, dim=1), gs.Slice(), sweeps=5000, chains=1, rng=1, progress=False, start=[0.0])
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert (again.result is None) == (caught.value.result is None)


def log_normal(x: Any) -> float:
    return float(-0.5 * x[0] ** 2)


def log_row(x: Any, row: Any) -> float:
    return float(-0.5 * (x[0] - row[0]) ** 2)


def draw(x: Any, rng: Any) -> float:
    return float(rng.standard_normal())


def instances(folder: Path) -> list[Any]:
    """Objects of all public classes that can be made in a moment."""
    lattice, asia = gs.ising_grid((3, 3), coupling=0.3, field=0.1), gs.example("asia")
    quiet: dict[str, Any] = {"rng": 1, "progress": False}
    recorders = [
        gs.Marginals(),
        gs.Draws(),
        gs.recorders.Energy(),
        gs.recorders.BestState(),
        gs.recorders.PairMoments(),
        gs.recorders.Joint(["0", "1"]),
        gs.recorders.Magnetisation(),
        gs.recorders.Overlap(),
        gs.recorders.TwoPoint(),
        gs.recorders.Agreement(np.zeros(9, int)),
        gs.Observable("first", log_normal),
    ]
    result = gs.sample(lattice, gs.Gibbs(), sweeps=40, record=recorders[:5], **quiet)
    stored = gs.formats.store_edges([([0, 1], [1, 2], 0.3)], folder / "pairs", sites=3)
    return [
        *(instance for one in registered_kernels() for instance in one.proof_instances()),
        *(kernel for one in registered_kernels() if (kernel := one.example()) is not None),
        *proof_scans(4),
        *recorders,
        gs.kernels.Proposal(draw, symmetric=True),
        gs.BayesianNetwork.from_model(asia),
        gs.Criteria(accuracy=0.01, query=["0"]),
        gs.Checkpoint(folder / "run.npz", resume=True),
        gs.Cluster("local-dask", partitions=2),
        gs.Sweeps(100, thin=2),
        gs.Steps(100),
        gs.importance.Forward(),
        gs.importance.MiniBucket(),
        gs.importance.MiniBucketMetropolis(),
        gs.Interval(0.0, 1.0),
        gs.Angle(),
        lattice,
        asia,
        *asia.groups,
        *lattice.groups,
        stored,
        gs.formats.store_edges([([0, 1], [1, 2], 0.3)], folder / "potts", sites=3, states=3),
        gs.Gaussian(np.zeros(2), precision=np.array([[2.0, 0.5], [0.5, 1.0]])),
        gs.LogDensity(log_normal, dim=1),
        gs.DataDensity(log_normal, log_row, np.zeros((5, 1)), dim=1),
        gs.Conditionals({"a": draw}),
        gs.models.continuous_spins([[0.0, 0.5], [0.5, 0.0]]),
        *gs.models.continuous_spins([[0.0, 0.5], [0.5, 0.0]]).groups,
        *gs.models.distance_potts(np.eye(3), 2, gamma=1.0).groups,
        *gs.ising(0.5 - 0.5 * np.eye(3)).groups,
        *gs.potts(0.5 - 0.5 * np.eye(3), 3).groups,
        gs.factors.normal_factors([0], 0.0, 1.0),
        gs.factors.difference_factors([[0, 1]], 1.0),
        gs.factors.logistic_factors([0, 1], np.ones((3, 2)), [0, 1, 1]),
        gs.factors.mixture_factors([0, 1], [0.3, 1.2], sd=1.0),
        result,
        result.marginals,
        result.diagnostics,
        gs.infer(asia),
        gs.infer(lattice, "MAP"),
        gs.solve_exact(asia),
        gs.exact.predict_exact(asia),
        gs.mean_field(lattice, progress=False),
        gs.belief_propagation(lattice, progress=False),
        gs.sample_weighted(asia, draws=500, **quiet),
        gs.log_z.bound_log_z(asia, draws=500, **quiet),
        gs.log_z.annealed_importance(lattice, steps=10, particles=8, sweeps=20, rng=1),
        gs.log_z.particle_log_z(lattice, steps=10, particles=8, rng=1),
        gs.graphs.compile_graph(lattice),
        gs.graphs.compile_graph(asia),
        gs.influence.bound_influence(lattice),
        gs.certify(lattice, sweeps=10),
        gs.dogs(lattice),
        gs.influence.BlockOrder([["0", "1"], ["2"]]),
        gs.kernels.herding_bound(lattice),
        gs.kernels.local_energies(lattice),
        gs.influence.short_runs(lattice, scan=gs.Systematic(), sweeps=5, runs=20, rng=1),
        gs.couple(lattice, pairs=10, rng=1),
        gs.kernels.ULA(0.1),
        gs.kernels.SGLD(0.001, batch=10),
        gs.learn.AspectModel(),
        gs.learn.ChainCRF(),
        gs.PersistentChains(lattice, rng=1),
        gs.inference.check_conditionals(gs.Conditionals({"a": draw}, log_density=log_normal), places=2, rng=1),
    ]


@pytest.mark.long
def test_objects_survive(tmp_path: Path) -> None:
    made = instances(tmp_path)
    for thing in made:
        again = pickle.loads(pickle.dumps(thing))
        assert type(again) is type(thing)
        if type(thing).__repr__ is not object.__repr__:
            assert repr(again) == repr(thing)
    covered = {base.__name__ for thing in made for base in type(thing).__mro__}
    public = {name for name in gs.__all__ if inspect.isclass(getattr(gs, name))}
    errors = {name for name in public if issubclass(getattr(gs, name), BaseException)}
    assert public - errors - covered == set()


def test_errors_survive_the_pickling_of_clusters() -> None:
    """Dask pickles errors by a function of tblib, which makes them without calling their initialisers."""
    pickling_support = pytest.importorskip("tblib.pickling_support")
    for kind in (gs.errors.TooLargeError, gs.errors.CheckpointError, gs.errors.ModelError):
        made, given, *_ = pickling_support.pickle_exception(kind("chains must be 1."))
        assert str(made(*given)) == "chains must be 1."
