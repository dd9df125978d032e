"""Pictures of how an answer depends on the entries of tables: bars of a tornado, and curves of single entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from gibbsite._common.arguments import check_integer, checked, describe
from gibbsite._common.arrays import Floats
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError
from gibbsite.results.plots._canvas import COLORS, FAINT, INK, finish, new_axes, shorten, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NAMED = 70  # characters of an entry beside its bar


@runtime_checkable
class Sensitive(Protocol):
    """How an answer depends on entries, as :func:`gibbsite.questions.analyse_sensitivity` returns it."""

    @property
    def target(self) -> str:
        """What the answer is about."""
        ...

    @property
    def state(self) -> Any:
        """Its state."""
        ...

    @property
    def evidence(self) -> Mapping[str, Any]:
        """What is observed."""
        ...

    @property
    def probability(self) -> float:
        """The answer."""
        ...

    @property
    def factor(self) -> float:
        """By how much odds are multiplied and divided."""
        ...

    def top(self, many: int = 20) -> list[Any]:
        """Return the entries that matter most."""
        ...

    def entry(self, site: str, state: Any, parents: Mapping[str, Any] | None = None) -> Any:
        """Return one entry."""
        ...

    def curve(self, site: str, state: Any, parents: Mapping[str, Any] | None = None) -> tuple[Floats, Floats]:
        """Return the answer for values of an entry."""
        ...


@checked
def plot_tornado(
    sensitivity: Sensitive, *, most: int = 12, ax: Axes | None = None, path: str | Path | None = None
) -> Axes:
    """Show how far a probability moves as each entry of a table changes, as bars, the longest above.

    Parameters
    ----------
    sensitivity : Sensitivity
        Of :func:`gibbsite.questions.analyse_sensitivity`. The odds of each entry are divided (blue) and multiplied
        (orange) by its factor.
    most : int
        Number of entries.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    path : str or Path, optional
        Where to save the picture, usually ``.png``.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import gibbsite as gs
    >>> found = gs.questions.analyse_sensitivity(gs.example("asia"), "lung", "yes", {"xray": "yes"})
    >>> axes = gs.plots.plot_tornado(found, most=3)
    >>> [label.get_text() for label in axes.get_yticklabels()][0]
    'P(lung = yes | smoke = yes) = 0.1'
    """
    _check(sensitivity)
    entries = sensitivity.top(check_integer("most", most, 1))
    axes = new_axes(8.0, 1.3 + 0.3 * max(len(entries), 2), path, ax)
    for row, entry in enumerate(entries):
        for end, color in ((entry.low, COLORS[0]), (entry.high, COLORS[1])):
            axes.barh(row, end - sensitivity.probability, 0.62, sensitivity.probability, color=color, zorder=2)
    axes.axvline(sensitivity.probability, color=INK, lw=0.8, zorder=3)
    names = [f"{shorten(one, _MOST_NAMED)} = {one.value:.4g}" for one in entries]
    axes.set_yticks(range(len(entries)), names)
    axes.set_ylim(max(len(entries), 1) - 0.4, -0.6)
    for color, word in ((COLORS[0], "divided"), (COLORS[1], "multiplied")):
        axes.plot([], [], "s", color=color, ms=7, label=f"odds {word} by {sensitivity.factor:g}")
    axes.legend(fontsize=8, frameon=False, loc="best")
    if not entries:
        axes.set_xlim(0.0, 1.0)
        axes.text(0.5, 0.5, "no entry matters", transform=axes.transAxes, ha="center", color=INK, fontsize=9)
    axes.grid(axis="x", color=FAINT, lw=0.4)
    tidy(axes, f"{_name(sensitivity)} = {sensitivity.probability:.4f}", "probability of the answer", "")
    return finish(axes, path)


@checked
def plot_sensitivity(
    sensitivity: Sensitive,
    entries: Sequence[tuple[Any, ...]] | None = None,
    *,
    most: int = 4,
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Show a probability as a function of single entries of tables, the other entries of a row in proportion.

    Parameters
    ----------
    sensitivity : Sensitivity
        Of :func:`gibbsite.questions.analyse_sensitivity`.
    entries : sequence of tuples, optional
        Site, state and, for a site with parents, a mapping of them to their states; by default those that matter most.
    most : int
        Number of entries if none are named.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    path : str or Path, optional
        Where to save the picture, usually ``.png``.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import gibbsite as gs
    >>> found = gs.questions.analyse_sensitivity(gs.example("asia"), "lung", "yes", {"xray": "yes"})
    >>> axes = gs.plots.plot_sensitivity(found, [("smoke", "yes"), ("lung", "yes", {"smoke": "yes"})])
    >>> len(axes.lines)
    3
    """
    _check(sensitivity)
    chosen = list(_read(sensitivity, entries, check_integer("most", most, 1)))
    axes = new_axes(6.4, 4.0, path, ax)
    axes.axhline(sensitivity.probability, color=FAINT, lw=0.8)
    for number, entry in enumerate(chosen):
        values, answers = sensitivity.curve(entry.site, entry.state, entry.parents)
        color = COLORS[number % len(COLORS)]
        axes.plot(values, answers, color=color, lw=1.4, label=shorten(entry, _MOST_NAMED))
        axes.scatter([entry.value], [sensitivity.probability], color=color, s=22, zorder=3)
    axes.set_xlim(0.0, 1.0)
    if chosen:
        axes.legend(fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0))
    tidy(axes, "", "entry of a table; the dots are the tables as they are", _name(sensitivity))
    return finish(axes, path)


def _check(sensitivity: Any) -> None:
    if not hasattr(sensitivity, "curve") or not hasattr(sensitivity, "top"):
        raise ArgumentError(
            f"{argument('sensitivity')} must be an answer of gs.questions.analyse_sensitivity, "
            f"got {describe(sensitivity)}."
        )


def _read(sensitivity: Sensitive, entries: Sequence[tuple[Any, ...]] | None, most: int) -> Iterator[Any]:
    """Yield the entries to show."""
    if entries is None:
        yield from sensitivity.top(most)
        return
    for each in entries:
        if not isinstance(each, tuple) or len(each) not in (2, 3):
            raise ArgumentError(
                f"{argument('entries')} must be tuples of a site, a state and the states of its parents, "
                f"got {describe(each)}."
            )
        yield sensitivity.entry(*each)


def _name(sensitivity: Sensitive) -> str:
    """Return what the answer is, in two lines if something is observed."""
    given = ", ".join(f"{name} = {label}" for name, label in sensitivity.evidence.items())
    name = shorten(f"{sensitivity.target} = {sensitivity.state}", 48)
    return f"P({name} |\n{shorten(given, 48)})" if given else f"P({name})"
