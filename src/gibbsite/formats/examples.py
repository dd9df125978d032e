"""Networks that come with the package, by name; where they are from and their licences: networks/NOTICE."""

from __future__ import annotations

from pathlib import Path

from gibbsite._common.arguments import checked
from gibbsite._common.wording import unknown
from gibbsite.errors import ArgumentError
from gibbsite.formats.bif import read_bif
from gibbsite.models.factorgraph import FactorGraph

_FOLDER = Path(__file__).with_name("networks")

EXAMPLES = ("alarm", "asia", "child")
"""Names of the networks :func:`example` returns."""


@checked
def example(name: str) -> FactorGraph:
    """Return a network that comes with the package.

    Parameters
    ----------
    name : {"alarm", "asia", "child"}
        ALARM, patient monitoring, 37 sites (Beinlich et al. 1989); a chest clinic of 8 sites, with a
        deterministic OR that single-site moves cannot cross (Lauritzen and Spiegelhalter 1988); CHILD,
        birth asphyxia, 20 sites (Spiegelhalter and Cowell 1992).

    Returns
    -------
    FactorGraph
        The model.

    Notes
    -----
    The networks are under the Creative Commons Attribution-ShareAlike 3.0 licence, see ``formats/networks/NOTICE`` in
    the package.

    Examples
    --------
    >>> import gibbsite as gs
    >>> gs.example("asia").sites[:3]
    ('asia', 'tub', 'smoke')
    """
    if name not in EXAMPLES:
        raise ArgumentError(unknown("example", name, EXAMPLES))
    return read_bif(example_path(name))


def example_path(name: str) -> Path:
    """Return the file of an example."""
    return _FOLDER / f"{name}.bif"
