"""Does a change of the code change any number? ``python -m tests.campaigns.golden``.

Makes more than 120 small runs over all kernels, scans, kinds of models, recorders, methods of ``infer``,
checkpoints, threads and local clusters, keeps a digest of every field of every answer (marginals, standard
errors, draws, fields of the verdict), and compares the digests with those of a reference file. A change that
is meant to keep every number must show no difference.

Sums, ``exp`` and ``log`` may differ in the last bits on other processors and with other versions of NumPy and
Numba, so a reference belongs to a machine: make one with ``--write`` on the commit before the change.

Options
    --write FILE      write the digests to a file instead of comparing
    --against FILE    the reference (default: golden.json beside this file)
    --only TEXT       cases whose name contains the text; may be repeated
    --list            print the names of the cases, and do nothing else
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import gibbsite as gs
from tests.campaigns.golden_models import (
    MODELS,
    conditionals,
    density,
    functions,
    gaussian,
    ising_6,
    lattice,
    machine,
    mixed,
    potts_6,
    rings,
    tables,
    weak,
)

REFERENCE = Path(__file__).with_name("golden.json")
CASES: dict[str, Callable[[], dict[str, Any]]] = {}
QUIET: dict[str, Any] = {"progress": False, "threads": 1}


def case(name: str) -> Callable[[Callable[[], dict[str, Any]]], Callable[[], dict[str, Any]]]:
    """Add a case of this name."""

    def add(function: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
        assert name not in CASES, name
        CASES[name] = function
        return function

    return add


# ---- what is compared


def atoms(value: Any) -> Iterable[str]:
    """Yield every number of a nested value as text that tells its bits; labels and None as they are."""
    if value is None or isinstance(value, bool | int | str | np.bool_ | np.integer):
        yield str(value)
    elif isinstance(value, float | np.floating):
        yield "nan" if math.isnan(value) else float(value).hex()
    elif isinstance(value, np.ndarray):
        yield str(value.shape)
        yield from atoms(value.ravel().tolist())
    elif isinstance(value, Mapping):
        for key in value:
            yield str(key)
            yield from atoms(value[key])
    else:
        for one in value:
            yield from atoms(one)


def digest(value: Any) -> str:
    """Return a digest of all numbers of a value."""
    return hashlib.blake2b("\0".join(atoms(value)).encode(), digest_size=8).hexdigest()


def of_result(result: gs.Result) -> dict[str, Any]:
    """Return what is compared of a sampled result."""
    verdict = result.diagnostics
    found: dict[str, Any] = {
        "totals": result.totals,
        "counts": [result.n_draws, result.warmup, result.chains],
        "verdict": [verdict.converged, len(verdict.reasons), verdict.rhat_max, verdict.ess_min],
        "report": result.report,
    }
    names = ("energy", "log_z", "log_z_error")
    known = {name: getattr(result, name, None) for name in names} | {
        "values": result.draws,
        "best": result.log_potential,
    }
    if result._n_marginal or result._sets.n_joint or not result.domains.n_sites:
        known |= {"marginals": result.marginals, "mcse": result.mcse}
    found |= {name: value for name, value in known.items() if value is not None}
    if result.observables:
        found["observables"] = {
            name: [np.asarray(result.observables[name].mean), np.asarray(result.observables[name].mcse)]
            for name in result.observables
        }
    return found


def figures_of(answer: gs.inference.Inference) -> dict[str, Any]:
    """Return the figures behind the verdict on an answer, by name; the verdict itself is compared apart."""
    figures = answer.diagnostics.to_dict()
    names = {
        name: name.replace("dispersed", "look").removeprefix("n_") for name in figures
    }  # as when the reference was made
    left_out = ("converged", "reasons", "dispersed_starts")
    return {names[k]: figures[k] for k in sorted(figures, key=names.__getitem__) if k not in left_out}


def of_answer(answer: gs.inference.Inference) -> dict[str, Any]:
    """Return what is compared of an answer of ``infer``."""
    found: dict[str, Any] = {
        "method": answer.method,
        "verdict": [answer.kind, answer.converged, len(answer.reasons)],
        "numbers": figures_of(answer),
        "assignment": answer.assignment,
        "log_potential": answer.log_potential,
        "bounds": answer.log_z_bounds,
    }
    if answer.task == "MAR":
        found["marginals"] = answer.marginals
    if answer.task == "PR":
        found["log_z"] = [answer.log_z, answer.log_z_error]
    return found


def add_run(name: str, model: Callable[[], Any], kernel: Callable[[], Any], **how: Any) -> None:
    """Add a run of ``sample``."""

    @case(name)
    def run() -> dict[str, Any]:
        return of_result(gs.sample(model(), kernel(), **{"sweeps": 200, "rng": 3, **QUIET, **how}))


def add_answer(name: str, model: Callable[[], Any], *words: str, **how: Any) -> None:
    """Add an answer of ``infer``."""

    @case(name)
    def run() -> dict[str, Any]:
        return of_answer(gs.infer(model(), *words, **{"progress": False, **how}))


# ---- cases

for _name, _model in MODELS.items():
    add_run(f"gibbs {_name}", _model, gs.Gibbs, record=["marginals", "draws", "energy"])
for _rule in ("metropolised", "suwa-todo"):
    for _name in ("ising", "tables", "potts"):
        add_run(f"gibbs {_rule} {_name}", MODELS[_name], lambda rule=_rule: gs.Gibbs(rule))

_SCANS: dict[str, Callable[[], gs.scans.Scan]] = {
    "systematic": gs.Systematic,
    "palindromic": gs.scans.Palindromic,
    "random": gs.RandomScan,
    "weighted": lambda: gs.RandomScan([1, 2, 3, 3, 2, 1]),
    "shuffled": gs.scans.Shuffled,
    "chromatic": gs.Chromatic,
    "fixed": lambda: gs.scans.FixedOrder([0, 3, 1, 5, 2, 4, 3]),
    "dogs": lambda: gs.dogs(weak(), target=["0"], accuracy=0.1),
}
for _name, _scan in _SCANS.items():

    @case(f"scan {_name}")
    def _scanned(scan: Callable[[], gs.scans.Scan] = _scan) -> dict[str, Any]:
        return of_result(gs.sample(ising_6(), gs.Gibbs(), scan=scan(), sweeps=200, rng=4, record=["draws"], **QUIET))


_DISCRETE: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "herded": (gs.HerdedGibbs, ("ising", "tables", "lattice")),
    "herded shared": (lambda: gs.HerdedGibbs("shared"), ("ising", "lattice")),
    "quasi": (gs.kernels.QuasiGibbs, ("ising", "tables")),
    "blocks": (gs.BlockGibbs, ("ising", "tables", "zeros", "lattice")),
    "trees": (lambda: gs.BlockGibbs("trees"), ("ising", "tables")),
    "cutset": (gs.CutsetGibbs, ("ising", "tables")),
    "tempered": (lambda: gs.Tempered(ladder=(0.0, 0.4, 1.0)), ("ising", "tables", "lattice")),
    "tempered tuned": (gs.Tempered, ("ising",)),
    "paired": (lambda: gs.kernels.PairedTempered(ladder=(0.0, 0.4, 1.0)), ("ising",)),
    "swendsen-wang": (gs.SwendsenWang, ("weak", "lattice", "friendly")),
    "wolff": (gs.Wolff, ("lattice", "friendly")),
    "perfect": (gs.kernels.Perfect, ("ising",)),
    "poisson": (gs.PoissonGibbs, ("ising", "tables", "potts")),
    "mgpmh": (gs.kernels.MGPMH, ("ising",)),
    "min-gibbs": (lambda: gs.kernels.MinGibbs(20.0), ("ising",)),
    "double-min": (lambda: gs.kernels.DoubleMinGibbs(3.0, 20.0), ("ising",)),
    "local minibatch": (lambda: gs.kernels.LocalMinibatchGibbs(1), ("ising",)),
    "mini-bucket metropolis": (gs.importance.MiniBucketMetropolis, ("ising", "tables")),
    "annealed": (lambda: gs.AnnealedGibbs(sweeps=100), ("ising", "tables")),
}
for _name, (_kernel, _models) in _DISCRETE.items():
    for _where in _models:
        _how: dict[str, Any] = {"sweeps": None} if _name in ("quasi", "annealed", "perfect") else {}
        if _name == "perfect":
            _how = {"sweeps": 64}
        add_run(f"{_name} {_where}", MODELS[_where], _kernel, **_how)

_START = {"start": np.array([[0.1, 0.2], [0.3, -0.1], [-0.2, 0.1], [0.0, 0.4]])}
add_run("slice density", density, gs.Slice)
add_run("metropolis density", density, gs.Metropolis)
add_run("metropolis coordinates", density, lambda: gs.Metropolis(one_by_one=True))
add_run("mala density", density, gs.MALA)
add_run("mala adapted", density, lambda: gs.MALA(preconditioner="adapt"))
add_run("ula density", density, lambda: gs.kernels.ULA(0.1))
add_run("default density", density, lambda: None, **_START)
add_run("gaussian gibbs", gaussian, gs.kernels.GaussianGibbs)
add_run("gaussian blocked", gaussian, lambda: gs.kernels.BlockedGaussianGibbs([[0, 1], [2, 3, 4]]))
add_run("gaussian exact", gaussian, gs.kernels.ExactGaussian)
add_run("continuous functions", functions, gs.kernels.ContinuousGibbs)
add_run("continuous slice", functions, lambda: gs.kernels.ContinuousGibbs(method="slice"))
add_run("continuous mixed", mixed, gs.kernels.ContinuousGibbs)
add_run("metropolis functions", functions, gs.Metropolis)
add_run("poisson mh functions", functions, gs.kernels.PoissonMH)
add_run("tuna mh functions", functions, gs.kernels.TunaMH)
add_run("conditionals", conditionals, gs.kernels.ConditionalGibbs)


@case("sgld data")
def _sgld() -> dict[str, Any]:
    data = np.random.default_rng(3).normal(3.0, 1.0, (2000, 1))
    model = gs.DataDensity(
        None,
        lambda x, row: -0.5 * (row[0] - x[0]) ** 2,
        data,
        likelihood_grad=lambda x, row: np.array([row[0] - x[0]]),
        dim=1,
    )
    kernel = gs.kernels.SGLD(1e-4, batch=50, control_variates=[data.mean()])
    return of_result(gs.sample(model, kernel, sweeps=200, rng=1, **QUIET))


for _chains in (4, 20, 70):
    add_run(f"machine of {_chains} chains", machine, gs.Gibbs, chains=_chains, scan=gs.Chromatic(), sweeps=60)
for _name, _size, _periodic in (("board", (48, 50), False), ("ring board", (48, 48), True)):
    for _chains in (2, 18):
        add_run(
            f"{_name} of {_chains} chains",
            lambda size=_size, periodic=_periodic: gs.ising_grid(size, 0.3, 0.1, periodic=periodic),
            gs.Gibbs,
            chains=_chains,
            scan=gs.Chromatic(),
            sweeps=60,
        )
add_run(
    "herded board",
    lambda: gs.ising_grid((48, 50), 0.3, 0.1),
    lambda: gs.HerdedGibbs("shared"),
    scan=gs.Chromatic(),
    sweeps=60,
)
add_run("potts board", lambda: gs.potts_grid((32, 32), 3, 0.5), gs.Gibbs, scan=gs.Chromatic(), sweeps=60, chains=2)
add_run("large by default", lambda: gs.ising_grid((70, 70), 0.2, 0.05), gs.Gibbs, sweeps=40)
add_run("three dimensions", lambda: gs.ising_grid((9, 9, 9), 0.1, 0.05), gs.Gibbs, scan=gs.Chromatic())


@case("colored graph")
def _colored() -> dict[str, Any]:
    rng = np.random.default_rng(11)
    edges = {tuple(sorted(rng.choice(300, 2, replace=False).tolist())) for _ in range(600)}
    upper = np.zeros((300, 300))
    for a, b in edges:
        upper[a, b] = rng.normal(0.0, 0.3)
    model = gs.ising(upper, rng.normal(0.0, 0.2, 300))
    found = {}
    for name, kernel in (("gibbs", gs.Gibbs()), ("herded", gs.HerdedGibbs())):
        for chains in (2, 16):
            result = gs.sample(model, kernel, scan=gs.Chromatic(), sweeps=60, chains=chains, rng=2, **QUIET)
            found |= {f"{name} {chains} {key}": value for key, value in of_result(result).items()}
    return found


for _name, _record in {
    "joint": [gs.recorders.Joint([["a", "b"], ["c", "d", "e"]])],
    "chosen draws": [gs.Draws(["a", "d"])],
    "best": ["best"],
    "energy": ["energy"],
}.items():
    add_run(f"record {_name}", tables, gs.Gibbs, record=_record)
add_run("record pairs", lattice, gs.Gibbs, record=["pairs"])
add_run("record magnetisation", lattice, gs.Gibbs, record=[gs.recorders.Magnetisation()])
add_run("record two-point", rings, gs.Gibbs, record=[gs.recorders.TwoPoint(3)])
add_run("record agreement", potts_6, gs.Gibbs, record=[gs.recorders.Agreement(np.zeros(6, int))])
add_run("record overlap", ising_6, gs.Gibbs, record=[gs.recorders.Overlap()])
add_run("record observable", ising_6, gs.Gibbs, record=[gs.Observable("equal", lambda x: float(x[0] == x[1]))])
add_run("record counts", tables, gs.Gibbs, record=[gs.Marginals(rao_blackwell=False)])
add_run("thinned", tables, gs.Gibbs, sweeps=gs.Sweeps(200, thin=3), record=["draws"])
add_run("steps", tables, gs.Gibbs, sweeps=gs.Steps(333), record=["draws"])
add_run("stop at an error", ising_6, gs.Gibbs, sweeps=100_000, criteria=gs.Criteria(accuracy=0.04))
add_run("one chain", tables, gs.Gibbs, chains=1)
add_run("without the check", tables, gs.Gibbs, criteria=gs.Criteria(dispersed_starts=False))
add_run("given start", tables, gs.Gibbs, start=dict.fromkeys("abcde", 0))
add_run("random start", tables, gs.Gibbs, start="random")
add_run("two threads", lattice, gs.Gibbs, threads=2, record=["draws"])
add_run("two threads board", lambda: gs.ising_grid((200, 200), 0.3), gs.Gibbs, threads=2, sweeps=20)
add_run("evidence", lambda: tables().observe({"b": 1, "d": {0: 0.2, 1: 0.5, 2: 0.1, 3: 0.9}}), gs.Gibbs)
add_run("two modes", lambda: gs.ising(np.triu(np.full((8, 8), 2.0), 1)), gs.Gibbs, start=np.zeros(8, int))
for _name in ("asia", "alarm", "child"):
    add_run(f"network {_name}", lambda name=_name: gs.example(name), gs.Gibbs, sweeps=500)


@case("coupled")
def _coupled() -> dict[str, Any]:
    result = gs.sample(ising_6(), gs.Gibbs(), sweeps=200, rng=3, **QUIET)
    pairs = gs.couple(ising_6(), gs.Gibbs(), pairs=100, sweeps=1, most=1000, rng=result.plan.entropy)
    return of_result(result) | {"coupling_bound": pairs.safe_bound(result.warmup)}


@case("checkpoint resumed")
def _resumed() -> dict[str, Any]:
    found = {}
    for name, kernel in (
        ("gibbs", gs.Gibbs()),
        ("herded", gs.HerdedGibbs()),
        ("tempered", gs.Tempered(ladder=(0.0, 0.5, 1.0))),
    ):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run"
            how: dict[str, Any] = {"record": ["draws"], "rng": 5, "warmup": 20, **QUIET}
            gs.sample(tables(), kernel, sweeps=100, checkpoint=path, **how)
            result = gs.sample(tables(), kernel, sweeps=200, checkpoint=gs.Checkpoint(path, resume=True), **how)
        found |= {f"{name} {key}": value for key, value in of_result(result).items()}
    return found


@case("saved and loaded")
def _saved() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.npz"
        gs.sample(tables(), gs.Gibbs(), sweeps=100, rng=1, record=["draws"], **QUIET).save(path)
        return of_result(gs.load(path))


@case("local dask")
def _dask() -> dict[str, Any]:
    found = of_result(gs.sample(tables(), gs.Gibbs(), sweeps=200, rng=3, on="local-dask", progress=False))
    grid = gs.ising_grid((64, 64), 0.3, 0.1)
    parts = gs.sample(
        grid,
        gs.Gibbs(),
        scan=gs.Chromatic(),
        sweeps=40,
        rng=3,
        on=gs.Cluster("local-dask", partitions=2),
        progress=False,
    )
    return found | {f"partitions {key}": value for key, value in of_result(parts).items()}


@case("persistent chains")
def _persistent() -> dict[str, Any]:
    chains = gs.PersistentChains(machine(), gs.Gibbs(), chains=20, rng=4)
    first = chains.run(10)
    second = chains.run(5, model=machine().reweight(couplings=0.5 * machine().group("couplings").weights))
    return {
        "states": chains.states,
        "first": getattr(first, "marginals", None),
        "second": getattr(second, "marginals", None),
    }


@case("batch of models")
def _batch() -> dict[str, Any]:
    models = [gs.ising_grid((3, 4), coupling=0.1 * k) for k in range(1, 5)]
    results = gs.inference.sample_models(models, gs.Gibbs(), sweeps=100, rng=5, **QUIET)
    return {f"{k} {key}": value for k, one in enumerate(results) for key, value in of_result(one).items()}


@case("couple")
def _couple() -> dict[str, Any]:
    found = gs.couple(ising_6(), gs.Gibbs(), pairs=50, sweeps=20, rng=6)
    return {"met": found.met, "bound": [found.bound(k) for k in range(10)], "marginals": found.marginals}


@case("perfect draws")
def _perfect() -> dict[str, Any]:
    return {"draws": gs.perfect_draws(ising_6(), 50, rng=7)}


@case("short runs and certificates")
def _short() -> dict[str, Any]:
    model = weak()
    scan = gs.dogs(model, target=["0"], accuracy=0.1)
    runs = gs.influence.short_runs(model, scan=scan, runs=200, rng=1)
    certificate = gs.certify(model, target=["0"], accuracy=0.01)
    return {"order": scan.order, "sweeps": certificate.sweeps, "statement": str(runs.statement)}


@case("log z by particles")
def _particles() -> dict[str, Any]:
    annealed = gs.log_z.annealed_importance(lattice(), rng=1)
    particles = gs.log_z.particle_log_z(lattice(), rng=1)
    return {
        "annealed": [annealed.log_z, annealed.lower, annealed.upper],
        "sequential": [particles.log_z, particles.log_z_error],
    }


@case("fit of an ising model")
def _fit() -> dict[str, Any]:
    model = ising_6()
    draws = gs.solve_exact(model).draw(500, np.random.default_rng(1))
    found = gs.learn.fit_ising(draws, model, updates=50, rng=1)
    return {"log-potentials": [found.model.log_potential(x) for x in np.eye(6, dtype=int)]}


@case("exact")
def _exact() -> dict[str, Any]:
    found = {}
    for name, make in {**MODELS, "alarm": lambda: gs.example("alarm")}.items():
        answer = gs.solve_exact(make())
        found |= {f"{name} marginals": answer.marginals, f"{name} log z": answer.log_z}
    return found


@case("mean field and belief propagation")
def _variational() -> dict[str, Any]:
    found = {}
    for name, make in MODELS.items():
        if name != "zeros":
            field = gs.mean_field(make())
            found[f"{name} field"] = [field.marginals, field.log_z]
        for kind in ("sum", "tree-reweighted"):
            belief = gs.belief_propagation(make(), kind=kind)
            found[f"{name} {kind}"] = [belief.marginals, belief.log_z]
    return found


_FIXED: dict[str, Any] = {"rng": 2, "threads": 1}
for _method in (
    *("gibbs", "blocks", "cutset", "quasi", "herded", "poisson", "tempered", "swendsen-wang", "perfect"),
    *("forward", "mini-bucket", "mean-field", "bp", "exact", "auto"),
):
    _budget: dict[str, Any] = {**_FIXED, "sweeps": 300}
    if _method in ("forward", "mini-bucket"):
        _budget = {**_FIXED, "draws": 4096}
    elif _method in ("bp", "exact", "auto"):
        _budget = {}
    elif _method == "mean-field":
        _budget = {"rng": 2}
    elif _method == "quasi":
        _budget = _FIXED
    _asked = {"forward": lambda: gs.example("asia"), "swendsen-wang": weak}.get(_method, ising_6)
    add_answer(f"infer MAR {_method}", _asked, method=_method, **_budget)
for _method in ("annealed", "tempered", "exact", "bp"):
    _budget = {**_FIXED, "sweeps": 100} if _method in ("annealed", "tempered") else {}
    add_answer(f"infer MAP {_method}", tables, "MAP", method=_method, **_budget)
for _method in ("tempered", "mini-bucket", "exact", "mean-field", "bp"):
    _budget = {**_FIXED, "sweeps": 300} if _method == "tempered" else {}
    if _method == "mini-bucket":
        _budget = {**_FIXED, "draws": 4096}
    add_answer(f"infer PR {_method}", tables, "PR", method=_method, **_budget)
add_answer("infer MMAP exact", tables, "MMAP", maximise=["a", "d"])


# ---- the command


def run_case(name: str) -> dict[str, str]:
    """Return the digest of every field of a case; of one that fails, its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return {key: digest(value) for key, value in CASES[name]().items()}
        except Exception as error:  # a case that fails is a difference, too
            return {"failed": f"{type(error).__name__}: {error}"[:300]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--against", type=Path, default=REFERENCE)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    names = [name for name in CASES if not given.only or any(text in name for text in given.only)]
    if given.list:
        print("\n".join(names))
        return
    known = {} if given.write else json.loads(given.against.read_text())
    found: dict[str, dict[str, str]] = {}
    different = 0
    begun = time.monotonic()
    for name in names:
        found[name] = run_case(name)
        if "failed" in found[name]:
            print(f"{name}: {found[name]['failed']}", flush=True)
        elif not given.write:
            fields = sorted(
                k for k in known.get(name, {}) | found[name] if known.get(name, {}).get(k) != found[name].get(k)
            )
            if fields:
                print(f"{name}: {', '.join(fields)} differ", flush=True)
                different += 1
    failed = sum("failed" in one for one in found.values())
    if given.write:
        given.write.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
    seconds = time.monotonic() - begun
    print(f"{len(names)} cases, {different} different, {failed} failed, {seconds:.0f} s")
    sys.exit(bool(different or failed))


if __name__ == "__main__":
    main()
