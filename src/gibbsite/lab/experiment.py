"""Experiments: the list of all experiments and their papers, and the function that runs one.

A new experiment is a module in the folder of its paper that ends in ``EXPERIMENT = Experiment(...)``, and a name
in the list below: "herded-two-variables" is ``herded/two_variables.py``. The first line of the module's docstring
is its title.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbsite._common.arguments import checked
from gibbsite._common.notice import warn_user
from gibbsite._common.wording import argument, missing, unknown
from gibbsite.errors import ArgumentError, FormatError
from gibbsite.formats.parsing.text import PathLike, check_writable, save
from gibbsite.lab.data import DataSource, data_folder, describe_data, require
from gibbsite.lab.findings import Findings
from gibbsite.sampling.executor import Executor
from gibbsite.sampling.executors.choosing import find_executor
from gibbsite.sampling.executors.tasks import map_tasks
from gibbsite.sampling.progress import Progress, Status, choose_progress, whole_runs_only

if TYPE_CHECKING:
    from matplotlib.figure import Figure


HERDED = "Chen, Bornn, de Freitas, Eskelin, Fang and Welling (2016), Herded Gibbs sampling, JMLR 17"
TIJDEMAN = "Tijdeman (1980), The chairman assignment problem, Discrete Mathematics 32"
DOGS = "Mitliagkas and Mackey (2017), Improving Gibbs sampler scan quality with DoGS, ICML"
DOMKE = "Domke (2015), Maximum likelihood learning with arbitrary treewidth via fast-mixing parameter sets, NIPS"
POISSON = "Zhang and De Sa (2019), Poisson-minibatching for Gibbs sampling, NeurIPS"
MINIBATCH = "De Sa, Chen and Wong (2018), Minibatch Gibbs sampling on large graphical models, ICML"
TEMPERING = "Syed, Bouchard-Cote, Deligiannidis and Doucet (2022), Non-reversible parallel tempering, JRSS B 84"
LANGEVIN_NOTES = "Lecture notes, chapter 5: Metropolis-Hastings, Gibbs sampling and Langevin methods"
GIBBS_NOTES = "Lecture notes, day 22: Gibbs sampling, after Bishop (2006), Pattern recognition, section 11.3"


NAMES = (
    "herded-two-variables",
    "herded-incomplete-graph",
    "herded-empty-graph",
    "herded-discrepancy",
    "herded-moments",
    "herded-denoising",
    "herded-entities",
    "herded-example",
    "herded-entity-calibration",
    "herded-jacobi",
    "herded-collapsed",
    "dogs-guarantees",
    "dogs-wallclock",
    "dogs-marginal",
    "dogs-loose-bounds",
    "dogs-mle",
    "dogs-segmentation",
    "dogs-entities",
    "poisson-potts",
    "poisson-spin",
    "poisson-mixture",
    "poisson-mh",
    "poisson-cost",
    "poisson-logistic",
    "notes-ula-bias",
    "notes-gaussian-gibbs",
    "notes-scan",
    "notes-banana",
    "notes-sgld",
    "notes-denoising",
    "notes-comparison",
    "tempering-round-trips",
)


@dataclass
class Meter:
    """Shows the progress of an experiment, and runs its parts on workers if there are any."""

    name: str
    display: Progress
    total: int = 0
    done: int = 0
    begun: float = field(default_factory=time.monotonic)
    executor: Executor | None = None
    kept: Path | None = None  # the folder in which a long run is kept, so that it can be continued

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Apply a pure function to each item, which is one part; the results do not depend on workers."""
        return map_tasks(self.executor, function, items, take=lambda item, found: self.tick(), say=self.display.say)

    def expect(self, parts: int) -> None:
        """Announce more parts."""
        self.total += parts

    def tick(self) -> None:
        """Report that a part is done."""
        self.done += 1
        seconds = time.monotonic() - self.begun
        self.display.show(Status(self.name, self.done, self.total, seconds, float("inf"), 1, unit="part"))


@dataclass(frozen=True)
class Experiment:
    """One experiment of a paper.

    Attributes
    ----------
    source : str
        The paper, with figure or table.
    run : function (quick, rng, meter) -> Findings
        Runs the experiment with the settings of the paper, or a smaller version. ``rng`` is a seed.
    draw : function (findings, figure)
        Draws the figure.
    size : (width, height)
        Size of the figure in inches.
    data : DataSource, optional
        The files from outside that it reads.
    long : str
        What a long run does more, if there is one.
    name, title : str
        The name on the command line, and a description of one line; filled in by :func:`find`.
    """

    source: str
    run: Callable[[bool, int, Meter], Findings]
    draw: Callable[[Findings, Figure], None]
    size: tuple[float, float] = (9.0, 6.0)
    data: DataSource | None = None
    long: str = ""
    name: str = ""
    title: str = ""

    def save(self, findings: Findings, folder: str | Path) -> list[Path]:
        """Write ``NAME.json`` and ``NAME.png`` into a folder; return the paths.

        Without matplotlib there is no picture, and a warning is given.
        """
        from gibbsite.results.plots._canvas import new_figure, save_figure

        place = make_folder(folder)
        data, picture = (place / f"{self.name}.{suffix}" for suffix in ("json", "png"))
        save(data, findings.json())
        if importlib.util.find_spec("matplotlib") is None:
            warn_user(missing("The figure needs", "matplotlib", "report"))
            return [data]
        figure = new_figure(*self.size, picture)
        self.draw(findings, figure)
        save_figure(figure, picture)
        return [data, picture]


@checked
def find(name: str) -> Experiment:
    """Return the experiment of this name.

    Examples
    --------
    >>> find("herded-denoising").source[:12]
    'Chen, Bornn,'
    """
    if name not in NAMES:
        raise ArgumentError(unknown("experiment", name, NAMES))
    paper, _, rest = name.partition("-")
    module = importlib.import_module(f"gibbsite.lab.{paper}.{rest.replace('-', '_')}")
    experiment: Experiment = module.EXPERIMENT
    return replace(experiment, name=name, title=(module.__doc__ or "").partition("\n")[0].rstrip("."))


def experiments() -> list[Experiment]:
    """Return all experiments.

    Examples
    --------
    >>> [experiment.name for experiment in experiments()] == list(NAMES)
    True
    """
    return [find(name) for name in NAMES]


def run(
    name: str,
    *,
    quick: bool = False,
    long: PathLike | None = None,
    rng: int = 1,
    data: PathLike | None = None,
    progress: Any = None,
    on: Any = None,
) -> Findings:
    """Run an experiment.

    Parameters
    ----------
    name : str
        One of ``gs.lab.NAMES``.
    quick : bool
        Run a smaller version instead of the settings of the paper, which take minutes.
    long : path, optional
        Make as many draws as the paper where that takes hours, and keep the run in this folder: a run that was
        stopped continues there. Only "poisson-mixture" and "poisson-mh" have such a run.
    rng : int
        Seed, which determines the findings.
    data : path, optional
        Folder with the data of the papers, instead of the one that the environment variable ``GIBBSITE_DATA`` names.
        An experiment that lacks data of a given folder is refused; without a folder it uses made-up data.
    progress : optional
        As in :func:`gibbsite.sample`.
    on : optional
        As in :func:`gibbsite.sample`: a cluster whose workers run the replicates of an experiment.

    Returns
    -------
    Findings
        Tables, arrays and notes.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C or SIGTERM interrupts the experiment; incomplete experiments have no findings.

    Examples
    --------
    >>> import gibbsite as gs
    >>> findings = gs.lab.run("herded-discrepancy", quick=True, progress=False)
    >>> findings.tables[0].columns[0]
    'values'
    """
    experiment = find(name)
    if isinstance(rng, bool) or not isinstance(rng, int) or rng < 0:
        raise ArgumentError(f"{argument('rng')} must be a whole number of at least 0 here, got {rng!r}.")
    if long is not None:
        if not experiment.long or quick:
            names = ", ".join(each.name for each in experiments() if each.long)
            raise ArgumentError(f"{argument('long')} is for {names}, and not together with {argument('quick')}.")
        make_folder(long)
    display = choose_progress(progress)
    begun = time.monotonic()
    try:
        with data_folder(data), find_executor(on) as executor, whole_runs_only():
            if data is not None:
                require(experiment.data)
            used = describe_data(experiment.data)
            kept = None if long is None else Path(long)
            findings = experiment.run(bool(quick), rng, Meter(name, display, executor=executor, kept=kept))
    finally:
        display.close()
    seconds = time.monotonic() - begun
    findings = replace(findings, quick=bool(quick), long=long is not None, rng=rng)
    return replace(findings, name=name, data=used, seconds=seconds)


def make_folder(folder: PathLike) -> Path:
    """Make a folder if it does not exist; refuse one that cannot be written to."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise FormatError("this is a file, not a folder; choose another name.", str(place)) from None
    except OSError as reason:
        raise FormatError(f"the folder cannot be made: {reason.strerror or reason}.", str(place)) from None
    check_writable(place / "file")
    return place
