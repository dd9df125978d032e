"""Checkpoints: the state and tape of every chain in one file.

It is written so that a kill leaves the old file or the new one, never a torn one. The file is an ordinary
``.npz``: arrays by path ("0/state/x", "1/tape/total") and one JSON text.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.archive import open_archive, write_archive
from gibbsite._common.arguments import check_flags, describe, is_number, is_path
from gibbsite._common.arrays import Array
from gibbsite._common.boundary import Fail, between, check_header, fits
from gibbsite._common.lock import hold
from gibbsite._common.wording import argument
from gibbsite._numba.jit import clock
from gibbsite.errors import ArgumentError, CheckpointError
from gibbsite.kernels.protocols import Tunable
from gibbsite.sampling.stored_tuples import check_stored, flatten, restore
from gibbsite.sampling.tape import DRAWS
from gibbsite.scans.base import period

if TYPE_CHECKING:
    from gibbsite.sampling.driver import Driver
    from gibbsite.sampling.observed import Observed
    from gibbsite.sampling.record import TapeLayout
    from gibbsite.sampling.setup import Length

FORMAT = 3
#: Prefix of the names of arrays that a kernel had found out before the run.
TUNED = "kernel/"


@dataclass(frozen=True)
class Checkpoint:
    """A file to which a run is saved, so that it can be resumed.

    Parameters
    ----------
    path : path
        The file. It is written after two seconds, then every ``every`` seconds, and at the end.
    every : float
        Seconds between saves.
    resume : bool
        Continue from the file if it exists; the result equals that of an uninterrupted run. Otherwise a file
        that exists is refused.

    See Also
    --------
    sample : The function that takes it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import gibbsite as gs
    >>> model, how = gs.ising_grid((3, 3), coupling=0.2), {"rng": 1, "progress": False}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder) / "run.ckpt"
    ...     _ = gs.sample(model, sweeps=100, warmup=10, checkpoint=place, **how)
    ...     gs.sample(model, sweeps=250, checkpoint=gs.Checkpoint(place, resume=True), **how).n_draws
    250
    """

    path: str | Path
    every: float = 60.0
    resume: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | Path) or not is_path(self.path):
            raise ArgumentError(f"{argument('checkpoint')} must be the path of a file, got {self.path!r}.")
        if not is_number(self.every) or not float(self.every) >= 0:
            raise ArgumentError(
                f"{argument('checkpoint_every')} must be a number of seconds, not negative, got {describe(self.every)}."
            )
        check_flags(resume=self.resume)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):  # what cannot be removed was not written by us
        path.unlink()


def read_checkpoint(checkpoint: str | Path | Checkpoint | None) -> Checkpoint | None:
    """Return where and how often a run is saved; refuse a place that cannot be written, before any work is done.

    Examples
    --------
    >>> read_checkpoint(None) is None
    True
    """
    if checkpoint is None:
        return None
    found = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    path = Path(found.path)
    check_writable(path)
    refuse_existing(path, bool(found.resume))
    return found


def check_writable(path: Path) -> None:
    """Refuse a place where no checkpoint can be written, before any work is done."""
    if path.is_dir():
        raise CheckpointError(f"Cannot write {path}: it is a folder; give the name of a file.")
    probe = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(probe, "wb"):
            pass
    except OSError as reason:
        raise CheckpointError(
            f"Cannot write {path}: {reason.strerror or reason}; check the folder and its rights."
        ) from None
    finally:
        _remove(probe)


def save_checkpoint(
    path: Path,
    plan: dict[str, Any],
    progress: dict[str, Any],
    chains: list[Any],
    others: dict[str, Array] | None = None,
) -> None:
    """Save all chains, each a pair (state, tape), and other arrays by name."""
    about = {"kind": "gibbsite checkpoint", "format": FORMAT, "plan": plan, "progress": progress}
    arrays: dict[str, Array] = {}
    for number, (state, tape) in enumerate(chains):
        arrays.update(flatten(f"{number}/state", state))
        arrays.update(flatten(f"{number}/tape", tape))
    arrays.update(others or {})
    # Runs hold a lock, so one name serves all of them: the next run replaces what a killed one has left.
    write_archive(path, about, arrays, "checkpoint")


@contextlib.contextmanager
def hold_checkpoint(checkpoint: Checkpoint | None) -> Iterator[None]:
    """Be the one run that uses a checkpoint; refuse where another one does."""
    if checkpoint is None:
        yield
        return
    path = Path(checkpoint.path)
    with hold(path, lambda reason: CheckpointError(f"Cannot use {path} as a checkpoint: {reason}.")):
        refuse_existing(path, bool(checkpoint.resume))  # it may have come meanwhile
        yield


def refuse_existing(path: Path, resume: bool) -> None:
    """Refuse to begin a run whose checkpoint is there already."""
    if path.exists() and not resume:
        raise CheckpointError(
            f"{path} exists already: continue it with {argument('resume', True)}, or remove it first."
        )


def load_checkpoint(path: Path, arrays: str = "") -> tuple[dict[str, Any], dict[str, Array]]:
    """Load a checkpoint: its JSON part and its arrays, whose types are those of numbers.

    ``arrays`` is what the names of the arrays to be read begin with.
    """
    fail = failure(path)
    with open_archive(path, fail, packed=False) as archive:
        about = archive.header()
        check_header(about, {"plan": dict, "progress": dict}, fail)
        if about.get("format") != FORMAT:
            raise CheckpointError(
                f"{path} has checkpoint format {about.get('format')!r:.20}, this version reads {FORMAT}; "
                "remove it to start afresh."
            )
        if about.get("kind", "gibbsite checkpoint") != "gibbsite checkpoint":
            raise fail("it is a file of another kind")
        return about, archive.read_all(arrays)


def failure(path: Path) -> Fail:
    """Return what makes an error out of what is wrong with a checkpoint."""
    return lambda reason: CheckpointError(
        f"{path} is not a gibbsite checkpoint, or a damaged one: {reason}; remove it to start afresh."
    )


# ---- drivers

_FIRST_SAVE = 2.0  # seconds until the first checkpoint, at most


@dataclass
class Saving:
    """The checkpoint of a run: where it is, how often it is saved, and what the run continues from, if anything."""

    path: Path
    every: float
    stored: tuple[dict[str, Any], dict[str, Array]] | None
    saved: float = 0.0
    complete: bool = False  # nothing after this belongs to the run that can be resumed

    @property
    def tuned(self) -> dict[str, Array] | None:
        """What the kernel of a run that is continued had found out before it began."""
        if self.stored is None:
            return None
        return {name.removeprefix(TUNED): one for name, one in self.stored[1].items() if name.startswith(TUNED)}

    def continued(self, rng: Any, length: Length) -> tuple[Any, Length]:
        """Return seed and length of a run that is continued: those of the checkpoint, unless others are given."""
        assert self.stored is not None
        plan = self.stored[0]["plan"]
        check_header(
            {"entropy": 0, "warmup": None, **plan},
            {"entropy": lambda given: fits(given, int) and given >= 0, "warmup": (None, between(0, 1 << 62))},
            failure(self.path),
        )
        if length.warmup is None:
            length = length._replace(warmup=plan.get("warmup"))
        return plan.get("entropy") if rng is None else rng, length

    def begin(self, driver: Driver) -> None:
        """Continue the run, if there is one; the first checkpoint comes soon."""
        if self.stored is not None:
            driver.restore(self.path, self.stored)
            self.stored = None
        self.saved = clock() - max(self.every - _FIRST_SAVE, 0.0)

    def update(self, driver: Driver) -> None:
        """Save if it is time to, or if the run was cut short in its warmup.

        The one draw that follows then, so that there is an answer, is not part of the run to be resumed.
        """
        cut = not driver.counts.draws and driver.over()
        if not self.complete and (cut or clock() - self.saved >= self.every):
            driver.save(self.path)
            self.saved, self.complete = clock(), cut

    def end(self, driver: Driver) -> None:
        """Save the end of a run."""
        if not self.complete:
            driver.save(self.path)


@contextlib.contextmanager
def open_checkpoint(checkpoint: str | Path | Checkpoint) -> Iterator[Saving]:
    """Check where a run is saved, and hold the file while the run lasts."""
    found = read_checkpoint(checkpoint)
    assert found is not None
    path = Path(found.path)
    with hold_checkpoint(found):
        yield Saving(path, found.every, load_checkpoint(path) if found.resume and path.exists() else None)


def save_driver(driver: Driver, path: Path) -> None:
    """Save the chains of a run, and what its kernel had found out before."""
    kernel = driver.setup.kernel
    tuned = kernel.tuned() if isinstance(kernel, Tunable) else {}
    save_checkpoint(
        path,
        driver.setup.plan.to_dict(),
        vars(driver.counts),
        list(zip(driver.states, driver.tapes, strict=True)),
        {f"meetings/{k}": np.array(found) for k, found in enumerate(driver.meetings)}
        | {f"{TUNED}{name}": found for name, found in tuned.items()},
    )


def restore_driver(driver: Driver, path: Path, about: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Continue a run from a checkpoint; refuse one of another plan."""
    setup, fail = driver.setup, failure(path)
    _check_plan(driver, path, about)
    counts = _read_counts(driver, path, about)
    cards = np.asarray(setup.graph.cards)
    meetings = [arrays.get(f"meetings/{k}", np.zeros(0)) for k in range(len(driver.meetings))]
    for recorder, met in zip(setup.record.meetings, meetings, strict=True):
        if len(met) != counts["draws"] // recorder.every or (len(met) and met.ndim != 3):
            raise fail("it has other meetings of chains than draws")
    states, tapes = driver.states, driver.tapes
    for k in range(len(states)):
        check_stored(f"{k}/state", states[k], arrays, cards, fail)
        check_stored(f"{k}/tape", tapes[k], arrays, cards, fail)
        _check_blocks(setup.record, f"{k}/tape/observed", tapes[k].observed, arrays, counts["draws"], fail)
        states[k] = restore(f"{k}/state", states[k], arrays)
        tape = tapes[k] = restore(f"{k}/tape", tapes[k], arrays)
        if tape.counters[DRAWS] != counts["draws"] or (tape.counters != tapes[0].counters).any():
            raise fail("it has other numbers of draws in its header and on its tapes")
        kept = {"values": tape.sites.size, "energy": setup.record.energy}
        for name, wanted in kept.items():
            each, first = getattr(tape, name), getattr(tapes[0], name)
            if len(each) < counts["draws"] if wanted else each.size or len(each) != len(first):
                raise fail("it has other numbers of recorded draws than its header says")
    _check_states(driver, fail)
    vars(driver.counts).update(counts)
    driver.meetings = tuple(list(met) for met in meetings)


def _check_plan(driver: Driver, path: Path, about: dict[str, Any]) -> None:
    differences = driver.setup.plan.differences(about["plan"])
    if differences:
        begun = [
            argument(name, about["plan"].get(key))
            for key, name in (("entropy", "rng"), ("warmup", "warmup"), ("chains", "chains"))
            if key in differences
        ]
        hint = f" ({', '.join(begun)} there; what is left out is taken from it)" if begun else ""
        named = ", ".join("the seed" if name == "entropy" else name for name in differences)
        verb = "differs" if len(differences) == 1 else "differ"
        raise CheckpointError(
            f"{path} belongs to another run: {named} {verb}{hint}; use the same "
            "arguments, or start afresh with another file."
        )


def _read_counts(driver: Driver, path: Path, about: dict[str, Any]) -> dict[str, int]:
    """Return how far the saved run is; refuse one that the budget does not extend."""
    names, budget = vars(driver.counts), driver.setup.budget
    assert budget is not None
    check_header(about["progress"], dict.fromkeys(names, between(0, 1 << 62)), failure(path))
    counts: dict[str, int] = {name: about["progress"][name] for name in names}
    draws, rest = counts["draws"], counts["rest_done"]
    if budget.draws is not None and draws > budget.draws + bool(budget.rest):
        raise CheckpointError(
            f"{path} holds {draws} draws already, more than the {budget.draws} asked for; ask for at least as many."
        )
    if rest and (rest != budget.rest or draws <= (budget.draws or 0)):
        raise CheckpointError(f"{path} ended with an incomplete sweep and cannot be extended; start afresh.")
    return counts


def _check_states(driver: Driver, fail: Fail) -> None:
    """Refuse states that sites cannot have, and positions that the schedule cannot be at."""
    setup, layout = driver.setup, driver.layout
    codes, cards = layout.codes(driver.states, driver.sizes), np.asarray(setup.graph.cards)
    numbers = np.asarray(setup.model.domains.numbers)
    states = codes[:, ~numbers] if numbers.any() else codes
    if not np.isfinite(codes).all() or (states < 0).any() or (states >= cards[~numbers]).any():
        raise fail("a chain is in a state that its sites do not have")
    if states.dtype.kind == "f" and (states != np.floor(states)).any():
        raise fail("a chain is in a state that its sites do not have")
    steps = int(period(driver.schedule))
    for state in driver.states:
        if not 0 <= state.position[0] < max(steps, 1) or not 0 <= state.position[1] < 1 << 62:
            raise fail("a chain stands beyond the end of its scan")
        fresh, order = setup.scan.buffer(layout.moving), np.sort(state.order)
        shuffled = fresh.size > 1 and fresh[-1] == fresh.size - 1  # all sites, in any order
        if order.size and (order[0] < 0 or order[-1] >= order.size or (shuffled and not np.array_equal(order, fresh))):
            raise fail("the order in which sites are visited is none")


def _check_blocks(
    record: TapeLayout, prefix: str, fresh: Observed, arrays: dict[str, Array], draws: int, fail: Fail
) -> None:
    """Refuse blocks of open recorders from a file with which their steps must not go on."""
    place, block = arrays[f"{prefix}/place"], arrays[f"{prefix}/block"]
    steps = np.diff(place)
    if place[0] != 0 or place[-1] != block.size or (steps < np.diff(fresh.place)).any():
        raise fail("the blocks of its recorders have other sizes")
    for number, (recorder, prepared) in enumerate(record.open):
        if not recorder.admits(prepared.block, block[place[number] : place[number + 1]], draws):
            raise fail(f"the block of its recorder {recorder.key!r} is damaged")
