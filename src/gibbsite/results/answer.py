"""What all methods answer alike: :class:`Answer`, and :class:`Diagnostics`, which say how far to trust it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.archive import Archive, write_archive
from gibbsite._common.arguments import check_count, checked
from gibbsite._common.boundary import Wanted, check_header
from gibbsite._common.wording import escaped
from gibbsite.errors import ArgumentError
from gibbsite.results.rows import site_lines
from gibbsite.results.table import SiteTable, observed_cells
from gibbsite.results.wording import in_words, verdict_word, with_sign

if TYPE_CHECKING:
    import pandas
    import xarray

    from gibbsite._common.arrays import Array
    from gibbsite.models.domain import Domains

_LONGEST = 120  # characters of a figure in a notebook


@dataclass(frozen=True)
class Diagnostics:
    """How far to trust an answer.

    Figures are attributes, too: ``diagnostics.rhat_max`` is ``diagnostics.figures["rhat_max"]``.

    Attributes
    ----------
    kind : str
        What the answer is: "exact", "estimate", "approximation", "lower bound", "upper bound" or "best
        found".
    converged : bool or None
        Whether the answer can be relied upon; None where its error is not known, as for loopy belief
        propagation, mean field and bounds.
    reasons : tuple of str
        Why it cannot be relied upon, one sentence each.
    figures : dict
        The numbers behind the verdict, by name (docs/diagnostics.md).
    text : str
        The verdict in one line.

    Examples
    --------
    >>> found = Diagnostics("estimate", True, figures={"rhat_max": 1.0}, text="converged: R-hat 1.0")
    >>> found.rhat_max, found.line()
    (1.0, 'converged: R-hat 1.0')
    """

    kind: str
    converged: bool | None
    reasons: tuple[str, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""

    def __getattr__(self, name: str) -> Any:
        figures = self.__dict__.get("figures", {})
        if name in figures:
            return figures[name]
        raise AttributeError(f"these diagnostics have no figure {name!r}")

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    @property
    def word(self) -> str:
        """The verdict in a word or two."""
        return verdict_word(self.converged, self.figures.get("errors", ""))

    def line(self) -> str:
        """Return the verdict in one line."""
        return self.text or self.kind

    def _repr_html_(self) -> str:
        from gibbsite._common.html import card, grid

        figures = ((name, figure) for name, figure in self.figures.items() if figure not in (None, (), [], {}))
        rows = [(name.replace("_", " "), _figure_text(figure)) for name, figure in figures]
        word = self.kind if self.kind == "exact" else self.word.lower()
        table = grid(("figure", "value"), rows) if rows else []
        return card(word, [_without(word, self.line())], good=bool(self.converged), notes=self.reasons, table=table)

    def to_dict(self) -> dict[str, Any]:
        """Return verdict and figures as plain data."""
        return {"converged": self.converged, "reasons": list(self.reasons), **_plain(self.figures)}


def _plain(value: Any) -> Any:
    """Return figures as plain data."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _without(word: str, line: str) -> str:
    """Return a line without the verdict that it begins with, which is shown before it."""
    return line[len(word) + 2 :] if line.lower().startswith(f"{word}: ") else line


def _figure_text(figure: Any) -> str:
    """Return a figure of a verdict as text; long lists are cut."""
    if isinstance(figure, float):
        return in_words(figure)
    if isinstance(figure, bool):
        return "yes" if figure else "no"
    text = str(_plain(figure))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


class Answer:
    """The names that the answers of all methods share; what an answer does not have is None.

    Most answers also have the ``model``, a ``plan`` (all that decided the numbers, as plain data), and the time taken
    in ``seconds``, without compilation.

    Attributes
    ----------
    marginals, mcse : SiteTable or None
        Probability of every state of every site, and their standard errors: zero where marginals are exact,
        NaN where nothing is known about their error.
    log_z, log_z_error : float or None
        Natural logarithm of the partition function, or an estimate or bound of it, and its standard error.
    log_z_bounds : pair of float or None
        Bounds of log Z that are certain, infinite where nothing is known.
    assignment : mapping or None
        The best state, by name and label, observed sites included.
    log_potential : float or None
        Its log-potential.
    diagnostics : Diagnostics
        How far to trust all this.
    remarks : tuple of str
        General warnings about the method.
    interrupted : bool
        Whether the computation was ended early by Ctrl-C.
    """

    if TYPE_CHECKING:

        @property
        def remarks(self) -> tuple[str, ...]:
            """General warnings about the method."""
            raise NotImplementedError

        @property
        def interrupted(self) -> bool:
            """Whether the computation was ended early by Ctrl-C."""
            raise NotImplementedError

        @property
        def marginals(self) -> SiteTable | None:
            """Probability of every state of every site."""
            raise NotImplementedError

        @property
        def mcse(self) -> SiteTable | None:
            """Standard errors of the marginals."""
            raise NotImplementedError

        @property
        def log_z(self) -> float | None:
            """Natural logarithm of the partition function."""
            raise NotImplementedError

        @property
        def log_z_error(self) -> float | None:
            """Standard error of log Z."""
            raise NotImplementedError

        @property
        def log_z_bounds(self) -> tuple[float, float] | None:
            """Bounds of log Z that are certain."""
            raise NotImplementedError

        @property
        def assignment(self) -> Mapping[str, Any] | None:
            """The best state."""
            raise NotImplementedError

        @property
        def log_potential(self) -> float | None:
            """Log-potential of the best state."""
            raise NotImplementedError

        @property
        def diagnostics(self) -> Diagnostics:
            """How far to trust the answer."""
            raise NotImplementedError

    else:
        remarks, interrupted = (), False
        marginals = mcse = log_z = log_z_error = log_z_bounds = assignment = log_potential = None

    @property
    def converged(self) -> bool | None:
        """Whether the answer can be relied upon; None where its error is not known."""
        return self.diagnostics.converged

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the answer cannot be relied upon, one sentence each."""
        return self.diagnostics.reasons

    def line(self) -> str:
        """Return the verdict in one line."""
        return self.diagnostics.line()

    def summary(self, most: int = 20) -> str:
        """Return the verdict and the answer as readable text.

        Parameters
        ----------
        most : int
            Number of sites to show.

        Examples
        --------
        >>> import gibbsite as gs
        >>> print(gs.solve_exact(gs.FactorGraph({"a": ["no", "yes"]}, [("a", [1, 3])])).summary())
        exact: log Z = 1.386294361
        a  no 0.2500  yes 0.7500
        """
        check_count("most", most)
        notes = (f"  {note}" for note in (*self.reasons, *self._notes()))
        return "\n".join([self.line(), *notes, *self._lines(most)])

    def _notes(self) -> list[str]:
        """Return what else is to be known about the answer, a line each."""
        stopped = ["interrupted: the answer is what was known by then"] * self.interrupted
        return [*stopped, *(f"note: {remark}" for remark in self.remarks)]

    def __str__(self) -> str:
        return self.summary()

    def _lines(self, most: int) -> Iterator[str]:
        """Yield the answer itself, line by line."""
        if self.log_z is not None:
            yield f"log Z {in_words(self.log_z, '.10g')}{with_sign(self.log_z_error or np.nan)}"
        if self.marginals is not None:
            yield from self._site_lines(self.marginals, most)
        elif self.assignment is not None:
            yield f"log-potential {in_words(self.log_potential, '.10g')}"
            yield from (f"{escaped(name)}  {escaped(self.assignment[name])}" for name in islice(self.assignment, most))
            if len(self.assignment) > most:
                yield f"... and {len(self.assignment) - most:,} more sites"

    def _site_lines(self, table: SiteTable, most: int) -> Iterator[str]:
        """Yield the marginals of the first sites."""
        names = list(islice(table, most))
        errors = self.mcse if self.diagnostics.kind == "estimate" else None
        rows = ((name, table[name], None if errors is None else errors[name]) for name in names)
        width = max((len(escaped(name)) for name in names), default=0)
        yield from site_lines(rows, observed=self._sites()[1], width=width)
        if len(table) > len(names):
            yield f"... and {len(table) - len(names):,} more sites"

    def _repr_html_(self) -> str:
        from gibbsite._common.html import card
        from gibbsite.results.html import marginals_table, states_table

        verdict, evidence, task = self.diagnostics, self._sites()[1], getattr(self, "task", "MAR")
        table: list[str] = []
        if self.marginals is not None and task == "MAR":
            table = marginals_table(self.marginals, self.mcse if verdict.kind == "estimate" else None, evidence)
        elif self.assignment is not None and task != "PR":
            table = states_table(self.assignment, evidence)
        word = verdict.kind if verdict.kind == "exact" else verdict.word.lower()
        lines = [repr(self), *([] if self.line() in repr(self) else [_without(word, self.line())])]
        if self.log_z is not None and task in ("MAR", "PR"):
            lines.append(f"log Z {in_words(self.log_z, '.10g')}{with_sign(self.log_z_error or np.nan)}")
        if self.log_potential is not None:
            lines.append(f"log-potential {in_words(self.log_potential, '.10g')}")
        return card(word, lines, good=bool(verdict.converged), notes=[*verdict.reasons, *self._notes()], table=table)

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the answer as a pandas table.

        Marginals have one row for each state of each site, with the columns ``site``, ``state``,
        ``probability``, ``mcse`` and ``observed``; a best state has one row for each site; an answer that is
        log Z alone has one row.
        """
        from gibbsite.results.dataframe import load_pandas, make_dataframe

        if self.marginals is not None and self.mcse is not None:
            return make_dataframe(self.marginals, {"mcse": self.mcse})
        pandas = load_pandas()
        if self.assignment is not None:
            return pandas.DataFrame({"site": list(self.assignment), "state": list(self.assignment.values())})
        low, high = self.log_z_bounds or (np.nan, np.nan)
        numbers = {"log_z": self.log_z, "log_z_error": self.log_z_error, "lower": low, "upper": high}
        return pandas.DataFrame({name: [value] for name, value in numbers.items()})

    def to_datatree(self) -> xarray.DataTree:
        """Return the answer as an xarray DataTree: marginals, the best state, and figures as attributes."""
        from gibbsite.results.datatree import make_answer_tree

        return make_answer_tree(self)

    def plot_marginals(self, **how: Any) -> Array:
        """Draw the marginals; see :func:`gibbsite.plot_marginals`."""
        from gibbsite.results.plots import plot_marginals

        if self.marginals is None:
            raise ArgumentError("This answer has no marginals to draw.")
        return plot_marginals(self, **how)  # type: ignore[arg-type]

    @checked
    def save(self, path: str | Path) -> None:
        """Save to an ``.npz`` file, which :func:`gibbsite.load` reads."""
        write_archive(Path(path), *self._pack())

    @checked
    def write_report(self, path: str | Path, *, before: Answer | None = None, title: str | None = None) -> None:
        """Write a report that a browser opens: one file with the answer, how sure it is, pictures, and all numbers.

        Parameters
        ----------
        path : str or Path
            The file, usually ``.html``. It needs no network.
        before : Answer, optional
            An answer about the same model before the evidence, to show what the evidence has changed.
        title : str, optional
            The heading.

        Notes
        -----
        Pictures need matplotlib; without it the report has tables only.

        Examples
        --------
        >>> import gibbsite as gs, os, tempfile
        >>> asia, place = gs.example("asia"), os.path.join(tempfile.mkdtemp(), "asia.html")
        >>> gs.infer(asia.observe({"xray": "yes"})).write_report(place, before=gs.infer(asia))
        >>> os.path.getsize(place) < 1_500_000
        True
        """
        from gibbsite.results.report.answers import write_answer

        write_answer(self, path, before, title)

    def _sites(self) -> tuple[Domains, Mapping[str, Any], Mapping[str, tuple[Any, ...]]]:
        """Return the free sites, what was observed, and the states of observed sites."""
        source: Any = getattr(self, "model", self)
        return source.domains, source.evidence, source.evidence_labels

    def _site_table(self, cells: Array, binary: bool, certain: float) -> SiteTable:
        """Return cells as a table; ``certain`` is the number of observed states, 1 for probabilities, 0 for errors."""
        domains, evidence, labels = self._sites()
        return SiteTable(domains, cells, binary, certain == 1.0, observed_cells(evidence, labels, certain))

    def _pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the header and arrays of a file with everything that answers share."""
        from gibbsite.results.save import describe_sites, write_numbers

        sites, arrays = describe_sites(*self._sites())
        verdict, marginals, mcse = self.diagnostics, self.marginals, self.mcse
        if marginals is not None and mcse is not None:
            arrays |= {"cells": marginals.cells, "errors": mcse.cells}
        content = {
            "log_z": self.log_z,
            "log_z_error": self.log_z_error,
            "log_z_bounds": self.log_z_bounds,
            "assignment": None if self.assignment is None else list(self.assignment.items()),
            "log_potential": self.log_potential,
            "diagnostics": {**asdict(verdict), "figures": _plain(verdict.figures)},
            "remarks": list(self.remarks),
            "interrupted": self.interrupted,
            "binary": marginals is not None and marginals.binary,
        }
        return {"kind": "gibbsite answer", "format": 1, **sites, "content": write_numbers(content)}, arrays


@dataclass(frozen=True, eq=False, repr=False)
class StoredAnswer(Answer):
    """An answer that was loaded from a file: everything that answers of all methods share."""

    domains: Domains
    evidence: Mapping[str, Any]
    evidence_labels: Mapping[str, tuple[Any, ...]]
    diagnostics: Diagnostics = field()
    marginals: SiteTable | None = field(default=None)
    mcse: SiteTable | None = field(default=None)
    log_z: float | None = field(default=None)
    log_z_error: float | None = field(default=None)
    log_z_bounds: tuple[float, float] | None = field(default=None)
    assignment: Mapping[str, Any] | None = field(default=None)
    log_potential: float | None = field(default=None)
    remarks: tuple[str, ...] = ()
    interrupted: bool = False

    def __repr__(self) -> str:
        return f"StoredAnswer({self.domains.n_sites:,} sites; {self.line()})"


_NUMBER = (float, None, lambda value: isinstance(value, float))
_CONTENT = {
    "log_z": _NUMBER,
    "log_z_error": _NUMBER,
    "log_z_bounds": (None, lambda pair: isinstance(pair, list) and len(pair) == 2),
    "assignment": (None, [list]),
    "log_potential": _NUMBER,
    "diagnostics": {"kind": str, "converged": (bool, None), "reasons": [str], "figures": dict, "text": str},
    "remarks": [str],
    "interrupted": bool,
    "binary": bool,
}


def read_answer(about: dict[str, Any], archive: Archive) -> StoredAnswer:
    """Return the answer that a header and its arrays describe."""
    from gibbsite.results.save import read_numbers, read_sites

    domains, evidence, labels = read_sites(about, archive)
    content = read_numbers(about["content"])
    check_header(content, _CONTENT, archive.fail)
    binary, verdict = content.pop("binary"), content.pop("diagnostics")
    if binary and (domains.cards != 2).any():
        raise ValueError("sites of a two-state model have other numbers of states")
    cells = (domains.n_sites if binary else int(domains.cards.sum(dtype=np.int64)),)
    wanted = Wanted(np.float64, cells, finite=False, missing=True, optional=True)
    tables = archive.admit({"cells": wanted, "errors": wanted})
    found = StoredAnswer(domains, evidence, labels, Diagnostics(**verdict | {"reasons": tuple(verdict["reasons"])}))
    if len(tables) == 2:
        content["marginals"] = found._site_table(tables["cells"], binary, 1.0)
        content["mcse"] = found._site_table(tables["errors"], binary, 0.0)
    if content["log_z_bounds"] is not None:
        low, high = content["log_z_bounds"]
        content["log_z_bounds"] = float(low), float(high)
    if content["assignment"] is not None:
        content["assignment"] = {str(site): state for site, state in content["assignment"]}
    content["remarks"] = tuple(content["remarks"])
    return StoredAnswer(domains, evidence, labels, found.diagnostics, **content)
