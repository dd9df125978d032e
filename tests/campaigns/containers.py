"""Files that somebody has changed with care: loaded, used for a moment, and counted.

Every container that gibbsite stores (.ner, .seg, .pairs, checkpoints of runs and of searches, saved results,
weighted results, scans) is changed again and again, with its checksums renewed: extreme numbers, arrays cut,
grown, left out or of another type, indices out of range, entries of headers of other types or missing, bytes
changed anywhere. Another process makes, loads and uses one file after another, so that a crash is seen and known
to be that of the file in use; it is replaced after a crash and after some thousands of files. A file is refused with one sentence, or gives an
answer. What counts as a failure is a crash, any other exception, a file that takes longer than a minute, and
another answer from a file whose checksums are not those of its bytes.

    python -m tests.campaigns.containers --mutations 100000 --seconds 600 --out containers.json
    NUMBA_BOUNDSCHECK=1 python -m tests.campaigns.containers --containers ner checkpoint

It can be interrupted: with ``--out`` what is done is kept, and the next call goes on from there. Mutation
number k of a container is the same in every run.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from select import select
from typing import Any

import numpy as np

import gibbsite as gs

Parts = tuple[dict[str, Any], dict[str, Any]]
PATIENCE = 60.0  # seconds that a file may take
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a folder that no disk is needed for


# ---- containers: how a good one is made, taken apart, put together, and used


def _model() -> Any:
    import gibbsite as gs

    return gs.ising(np.triu(np.random.default_rng(5).normal(size=(6, 6)), 1), np.linspace(-1, 1, 6))


HOW: dict[str, Any] = {
    "rng": 3,
    "progress": False,
    "threads": 1,
    "criteria": gs.Criteria(dispersed_starts=False),
    "chains": 2,
    "warmup": 5,
}


def _numbers(found: Any) -> list[float]:
    return [round(float(one), 9) for one in np.ravel(found)[:50]]


class Container:
    """A kind of file; a folder is one of several files."""

    def make(self, path: Path) -> None:
        """Write a good file."""
        raise NotImplementedError

    def read(self, path: Path) -> Parts:
        """Take a file apart: its header and its arrays."""
        raise NotImplementedError

    def write(self, path: Path, parts: Parts) -> None:
        """Put a file together; its checksums are right."""
        raise NotImplementedError

    def use(self, path: Path) -> Any:
        """Load a file and do something with it; return what came out."""
        raise NotImplementedError


class _Archive(Container):
    def read(self, path: Path) -> Parts:
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        about = arrays.pop("about", None)
        return ({} if about is None else json.loads(about.item())), arrays

    def write(self, path: Path, parts: Parts) -> None:
        about = {} if not parts[0] else {"about": np.array(json.dumps(parts[0]))}
        with open(path, "wb") as file:
            np.savez(file, **about, **parts[1])


class Entities(_Archive):
    """A recogniser of names, with links."""

    def make(self, path: Path) -> None:
        from gibbsite.applications import EntityRecognizer
        from gibbsite.applications.entities.documents import Document, Sentence

        told = Sentence(["Anna", "saw", "Rome", "."], ["B-PER", "O", "B-LOC", "O"])
        more = Sentence(["Rome", "is", "old", "."], ["B-LOC", "O", "O", "O"])
        documents = [Document(str(k), [told, more]) for k in range(4)]
        EntityRecognizer("window", l2=0.01, links=True).fit(documents).save(path)

    def use(self, path: Path) -> Any:
        from gibbsite.applications import EntityRecognizer

        loaded = EntityRecognizer.load(path)
        text = "Anna saw Rome. Rome saw Anna."
        found = [loaded.tag(text, method="viterbi"), loaded.tag(text, method="posterior")]
        found.append(loaded.tag(text, method="blocks", sweeps=5))
        return [[(e.label, e.start, e.end) for e in one.entities] for one in found]


class Segments(_Archive):
    """A segmenter of images."""

    def make(self, path: Path) -> None:
        from gibbsite.applications.storage import pack
        from tests.applications.test_untrusted_models import of_segments

        path.write_bytes(pack("segment", *of_segments()))

    def use(self, path: Path) -> Any:
        from gibbsite.applications.segmentation import Segmenter

        image = np.random.default_rng(1).integers(0, 256, (40, 60, 3), np.uint8)
        return Segmenter.load(path).segment(image, rounds=3, rng=1).labels[::9, ::9].tolist()


class Pairs(Container):
    """A stored Ising model; with ``states`` a Potts model with few couplings."""

    states: Any = None

    def make(self, path: Path) -> None:
        import gibbsite as gs

        rng = np.random.default_rng(0)
        a, b = np.triu_indices(12, 1)
        weight = rng.choice([-0.5, 0.5], a.size) if self.states else rng.normal(0, 0.3, a.size)
        field = 0.1 if self.states is None else [0.1, 0.0, -0.1]
        gs.formats.store_edges([(a, b, weight)], path, sites=12, field=field, states=self.states)

    def read(self, path: Path) -> Parts:
        manifest = json.loads((path / "manifest.json").read_text())
        return manifest, {name: np.load(path / f"{name}.npy") for name in manifest["files"]}

    def write(self, path: Path, parts: Parts) -> None:
        from gibbsite.models.stored import CHECKSUM, hash_file, identify, sum_up

        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        manifest, arrays = copy.deepcopy(parts[0]), parts[1]
        for name, array in arrays.items():
            file = path / f"{name}.npy"
            np.save(file, array)
            if isinstance(manifest.get("files"), dict) and isinstance(manifest["files"].get(name), dict):
                manifest["files"][name] |= {"bytes": file.stat().st_size, "blake2b": hash_file(file)}
        if {"version", "files", "digest"} <= set(manifest):
            manifest["digest"] = identify(manifest)
        if CHECKSUM in manifest:
            manifest[CHECKSUM] = sum_up(manifest)
        (path / "manifest.json").write_text(json.dumps(manifest))

    def use(self, path: Path) -> Any:
        import gibbsite as gs

        model = gs.open_model(path)
        code = model.log_potential(np.zeros(model.n_sites, int)) if model.n_sites < 1000 else 0.0
        return _numbers([code, *gs.sample(model, sweeps=20, **HOW).totals.ravel()])


class Potts(Pairs):
    """A stored Potts model."""

    states = ("red", "green", "blue")


class Checkpoint(_Archive):
    """The checkpoint of a run that records everything."""

    def sample(self, path: Path, sweeps: int, resume: bool) -> Any:
        import gibbsite as gs

        record = ["marginals", "draws", "energy", "best", "pairs", gs.recorders.Magnetisation(series=True)]
        how = {"record": record, "scan": gs.scans.Shuffled(), "checkpoint": gs.Checkpoint(path, resume=resume)}
        return gs.sample(_model(), sweeps=sweeps, **HOW, **how)

    def make(self, path: Path) -> None:
        self.sample(path, 20, resume=False)

    def use(self, path: Path) -> Any:
        return _numbers(self.sample(path, 40, resume=True).totals)


class Ladder(Checkpoint):
    """The checkpoint of a tempered run."""

    def sample(self, path: Path, sweeps: int, resume: bool) -> Any:
        import gibbsite as gs

        kernel = gs.Tempered(ladder=(0.0, 0.4, 1.0))
        return gs.sample(_model(), kernel, sweeps=sweeps, checkpoint=gs.Checkpoint(path, resume=resume), **HOW)


class Herded(Checkpoint):
    """The checkpoint of a herded run."""

    def sample(self, path: Path, sweeps: int, resume: bool) -> Any:
        import gibbsite as gs

        return gs.sample(
            _model(), gs.HerdedGibbs(), sweeps=sweeps, checkpoint=gs.Checkpoint(path, resume=resume), **HOW
        )


class Search(Checkpoint):
    """The checkpoint of a search for a most probable state."""

    def sample(self, path: Path, sweeps: int, resume: bool) -> Any:
        import gibbsite as gs

        how = {"method": "annealed", "task": "MAP", "rng": 1, "progress": False, "chains": 2, "threads": 1}
        return gs.infer(_model(), sweeps=10 * sweeps, checkpoint=gs.Checkpoint(path, resume=resume), **how)

    def use(self, path: Path) -> Any:
        return _numbers([self.sample(path, 40, resume=True).log_potential])


class Saved(_Archive):
    """A saved result."""

    def make(self, path: Path) -> None:
        import gibbsite as gs

        record = ["marginals", "draws", "energy", "best", "pairs", gs.recorders.Magnetisation(series=True)]
        gs.sample(_model(), sweeps=40, record=record, **HOW).save(path)

    def use(self, path: Path) -> Any:
        import gibbsite as gs

        found = gs.load(path)
        found.summary()
        found.to_dataframe()
        return _numbers(np.concatenate([np.ravel(one.mean) for one in found.observables.values()]))


class Weighted(_Archive):
    """A saved result of weighted draws."""

    def make(self, path: Path) -> None:
        import gibbsite as gs

        how = {"rng": 1, "progress": False, "threads": 1}
        gs.sample_weighted(gs.example("asia"), gs.importance.Forward(), draws=500, **how).save(path)

    def use(self, path: Path) -> Any:
        import gibbsite as gs

        found = gs.load(path)
        found.summary()
        return _numbers(found.estimate.cells)


class Scan(_Archive):
    """A saved scan."""

    def make(self, path: Path) -> None:
        import gibbsite as gs

        gs.dogs(gs.ising_grid((3, 3), coupling=0.1), target=0, steps=12).save(path)

    def use(self, path: Path) -> Any:
        import gibbsite as gs

        model, scan = gs.ising_grid((3, 3), coupling=0.1), gs.load(path)
        repr(scan)
        scan.certify(model)
        return _numbers(gs.sample(model, scan=scan, sweeps=10, **HOW).totals)


CONTAINERS: dict[str, Container] = {
    "ner": Entities(),
    "seg": Segments(),
    "pairs": Pairs(),
    "potts": Potts(),
    "checkpoint": Checkpoint(),
    "ladder": Ladder(),
    "herded": Herded(),
    "search": Search(),
    "result": Saved(),
    "weighted": Weighted(),
    "scan": Scan(),
}


# ---- mutations

EXTREMES = [0, 1, -1, 2, 3, 7, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**62, 2**63 - 1]
EXTREMES += [-(2**31), -(2**62), -(2**63), 2**64 - 1]
REALS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 1e-320, 1e300, -1e300, 2.0**53, 1e18, 7.0]
VALUES: list[Any] = [None, True, False, 0, 1, -1, 3, 2**31, 2**63, 2**70, 1e400, float("nan"), 1.5, "", "text", [], {}]
VALUES += [[1, 2], {"a": 1}, [[[]]], ["x"] * 3, "9" * 5000, [None], "\ud800", "\0"]
TYPES = [
    "<i1",
    "<i2",
    "<i4",
    "<i8",
    "<u1",
    "<u2",
    "<u4",
    "<u8",
    "<f2",
    "<f4",
    "<f8",
    ">i4",
    ">f8",
    "S3",
    "U3",
    "?",
    "c16",
]


def mutate_array(rng: np.random.Generator, arrays: dict[str, Any]) -> None:
    """Change one array."""
    name = str(rng.choice(list(arrays)))
    found = np.array(arrays[name])
    kind = int(rng.integers(8))
    if kind <= 3 and found.size and found.dtype.kind in "iuf":
        many = int(rng.choice([1, 1, 2, found.size]))
        places = rng.integers(found.size, size=many)
        if found.dtype.kind == "f":
            values = np.array(REALS)[rng.integers(len(REALS), size=many)]
        else:
            near = [int(one) + step for one in (found.min(), found.max()) for step in (-1, 1)]
            chosen = [[*EXTREMES, *near, *near][k] for k in rng.integers(len(EXTREMES) + 8, size=many)]
            size = 8 * found.dtype.itemsize
            values = np.array([one % 2**size for one in chosen], np.uint64).astype(f"<u{found.dtype.itemsize}")
            values = values.view(found.dtype)
        with np.errstate(all="ignore"):
            found.flat[places] = values
        arrays[name] = found
    elif kind == 4:
        del arrays[name]
    elif kind == 5:
        cut = int(rng.choice([0, 1, max(len(found) - 1, 0) if found.ndim else 0]))
        arrays[name] = found[:cut] if found.ndim else found[None]
    elif kind == 6:
        grown = np.concatenate([found, found[-1:]]) if found.ndim and len(found) else found[None]
        arrays[name] = grown if rng.random() < 0.5 else found.reshape(-1)[None]
    else:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                arrays[name] = found.astype(str(rng.choice(TYPES)))
            except (TypeError, ValueError):
                arrays[name] = np.zeros(found.shape, "<i8")


def mutate_header(rng: np.random.Generator, header: Any) -> None:
    """Change one entry somewhere in a header."""
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
        for key in list(keys)[:40]:
            places.append((value, key))
            walk(value[key])

    walk(header)
    if not places:
        return
    owner, key = places[int(rng.integers(len(places)))]
    kind = int(rng.integers(5))
    if kind == 0:
        del owner[key]
    elif kind == 1 and isinstance(owner[key], int | float):
        owner[key] = [*EXTREMES, 0.5, float("nan")][int(rng.integers(len(EXTREMES) + 2))]
    elif kind == 2 and isinstance(owner[key], list):
        owner[key] = owner[key][:-1] if rng.random() < 0.5 else owner[key] + owner[key]
    else:
        owner[key] = copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])


def mutate_bytes(rng: np.random.Generator, path: Path) -> bool:
    """Change bytes of a file, without a look at what they mean; tell whether its checksums were renewed.

    Those of archives are, mostly: the bytes are those of an entry.
    """
    if path.is_dir():
        path = path / str(rng.choice([one.name for one in path.iterdir()]))
    data = bytearray(path.read_bytes())
    if data[:2] == b"PK" and rng.random() < 0.7:
        with zipfile.ZipFile(io.BytesIO(bytes(data))) as file:
            members = {one.filename: bytearray(file.read(one)) for one in file.infolist()}
        name = str(rng.choice(list(members)))
        _spoil(rng, members[name])
        with zipfile.ZipFile(path, "w") as file:
            for each, content in members.items():
                file.writestr(each, bytes(content))
        return True
    _spoil(rng, data)
    path.write_bytes(data)
    return False


def _spoil(rng: np.random.Generator, data: bytearray) -> None:
    if rng.random() < 0.2 and data:
        del data[int(rng.integers(len(data))) :]
        return
    for _ in range(int(rng.choice([1, 1, 2, 8]))):
        if data:
            data[int(rng.integers(min(len(data), 200) if rng.random() < 0.5 else len(data)))] = int(rng.integers(256))


def write_mutation(container: Container, number: int, seed: int, parts: Parts, path: Path) -> bool:
    """Write mutation number so and so of a container; tell whether its checksums are right."""
    rng = np.random.default_rng([seed, number])
    header, arrays = copy.deepcopy(parts[0]), dict(parts[1])
    how = rng.random()
    if how < 0.8:
        for _ in range(int(rng.choice([1, 1, 1, 2]))):
            if header and rng.random() < 0.4:
                mutate_header(rng, header)
            elif arrays:
                mutate_array(rng, arrays)
        try:
            container.write(path, (header, arrays))
            return True
        except (KeyError, TypeError, ValueError, AttributeError, UnicodeError, OverflowError):
            pass  # what cannot be written so is changed in its bytes
    container.write(path, parts)
    return mutate_bytes(rng, path)


# ---- the process that makes and uses files

LIFE = 5000  # mutations after which a worker is replaced by a fresh one


def work() -> None:
    """Use the mutations that a line of standard input asks for; say what came of each.

    A line holds the container, the good file, the seed, and the first and the last number. Number -1 is the good
    file itself.
    """
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        kind, good, seed, first, last = json.loads(line)
        container, path = CONTAINERS[kind], Path(good).with_name(f"{kind}-mutated")
        parts = container.read(Path(good))
        for number in range(first, last + 1):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            if number < 0:
                container.write(path, parts)
                sound = True
            else:
                sound = write_mutation(container, number, seed, parts, path)
            print(json.dumps([*_outcome(container, path), sound]), flush=True)


def _outcome(container: Container, path: Path) -> list[Any]:
    import gibbsite as gs

    try:
        return ["answer", container.use(path)]
    except gs.GibbsiteError as error:
        sentence = str(error)
        return ["refused" if "\n" not in sentence and sentence else "torn", sentence]
    except BaseException as error:
        import traceback

        where = [f"{one.filename}:{one.lineno}" for one in traceback.extract_tb(error.__traceback__)[-3:]]
        return ["failed", f"{type(error).__name__}: {error!s:.200} at {where}"]


class Worker:
    """A process that makes and uses mutations; another one is started when it ends."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.told = b""

    def use(self, kind: str, good: Path, seed: int, first: int, last: int) -> Iterator[list[Any]]:
        """Yield what came of each mutation, and whether its checksums were right; stop after a crash."""
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.campaigns.containers", "--work"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([kind, str(good), seed, first, last]).encode() + b"\n")
        self.process.stdin.flush()
        for _ in range(first, last + 1):
            line = self._line(self.process)
            if line is None:
                yield [*self._end(self.process), True]
                return
            yield json.loads(line)

    def _line(self, process: subprocess.Popen[bytes]) -> bytes | None:
        """Return the next line; None if the process has ended or takes too long."""
        assert process.stdout is not None
        while b"\n" not in self.told:
            more = os.read(process.stdout.fileno(), 65536) if select([process.stdout], [], [], PATIENCE)[0] else b""
            if not more:
                return None
            self.told += more
        line, _, self.told = self.told.partition(b"\n")
        return line

    def _end(self, process: subprocess.Popen[bytes]) -> list[Any]:
        assert process.stdout is not None
        late = not select([process.stdout], [], [], 0)[0]
        if late:
            process.kill()
        code = process.wait()
        self.close()
        return ["endless", f"more than {PATIENCE:g} s"] if late else ["crashed", f"exit code {code}"]

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.communicate()
            self.process, self.told = None, b""


FAILURES = ("crashed", "endless", "failed", "torn", "other")


def campaign(
    kinds: list[str],
    mutations: int,
    seed: int = 1,
    out: Path | None = None,
    say: Callable[[str], None] = print,
    seconds: float = float("inf"),
) -> dict[str, Any]:
    """Use a number of mutations of each container; return counts and failures."""
    known: dict[str, Any] = json.loads(out.read_text()) if out is not None and out.exists() else {}
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        for kind in kinds:
            counts = known.setdefault(kind, {"done": 0, "answer": 0, "same": 0, "refused": 0, "failures": []})
            _use_mutations(kind, Path(folder), mutations, seed, counts, say, seconds, lambda: _keep(out, known))
            say(
                f"{kind}: {counts['done']} files, {counts['refused']} refused, {counts['answer']} answers "
                f"({counts['same']} the same), {len(counts['failures'])} failures, "
                f"{time.monotonic() - begun:.0f} s"
            )
    return known


def _use_mutations(
    kind: str,
    folder: Path,
    mutations: int,
    seed: int,
    counts: dict[str, Any],
    say: Callable[[str], None],
    seconds: float,
    keep: Callable[[], None],
) -> None:
    """Use the mutations of one container that are left; add to its counts."""
    good, worker, begun = folder / kind, Worker(), time.monotonic()
    CONTAINERS[kind].make(good)
    while counts["done"] < mutations and time.monotonic() - begun < seconds:
        first = counts["done"]
        right = next(worker.use(kind, good, seed, -1, -1))
        assert right[0] == "answer", right
        life = LIFE if seconds == float("inf") else 100
        for number, (what, told, sound) in enumerate(
            worker.use(kind, good, seed, first, min(mutations, first + life) - 1), first
        ):
            same = [what, told] == right[:2]
            found = "other" if what == "answer" and not same and not sound else what
            counts["done"] += 1
            if found in FAILURES:
                counts["failures"].append([number, found, told])
                say(f"{kind} {number}: {found}: {told}")
            else:
                counts[found] += 1
                counts["same"] += same
            if counts["done"] % 1000 == 0:
                keep()
        keep()
        if counts["done"] // LIFE != first // LIFE:
            worker.close()
    worker.close()


def _keep(out: Path | None, known: dict[str, Any]) -> None:
    if out is None:
        return
    spare = out.with_suffix(".part")
    spare.write_text(json.dumps(known, indent=1))
    os.replace(spare, out)


def main() -> int:
    """Run the campaign."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--containers", nargs="+", default=list(CONTAINERS), choices=list(CONTAINERS))
    reader.add_argument("--mutations", type=int, default=1000)
    reader.add_argument("--seconds", type=float, default=float("inf"), help="time limit for each container")
    reader.add_argument("--seed", type=int, default=1)
    reader.add_argument("--out", type=Path)
    reader.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = reader.parse_args()
    if given.work:
        work()
        return 0
    found = campaign(given.containers, given.mutations, given.seed, given.out, seconds=given.seconds)
    return int(any(one["failures"] for one in found.values()))


if __name__ == "__main__":
    sys.exit(main())
