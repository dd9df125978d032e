"""Gibbs sampling on graphical models: one interface for the whole toolbox.

>>> import gibbsite as gs
>>> model = gs.ising_grid((10, 10), coupling=0.2)
>>> result = gs.sample(model, gs.Gibbs(), sweeps=1000, rng=1, progress=False)
>>> 0.4 < result.marginals["0"][1] < 0.6
True

The public names are listed in ``__init__.pyi``, beside this file, and nowhere else. They are loaded when
first used, so that importing gibbsite costs next to nothing.
"""

import os
import sys

_signal = None
if sys.orig_argv[1:3] == ["-m", "gibbsite"] or os.path.basename("".join(sys.argv[:1])) == "gibbsite":
    import _signal  # the command line cannot catch Ctrl-C before this package is loaded

    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, lambda number, frame: os._exit(130))

from gibbsite._common.public_names import attach_stub  # noqa: E402

TYPE_CHECKING = False  # importing typing would take longer than all the rest: a time in which Ctrl-C cannot be caught
if TYPE_CHECKING:
    from typing import Any

_find, __dir__, _names = attach_stub(__name__, __spec__.loader)
# namespaces
_SPACES = (
    *("kernels", "factors", "models", "scans", "recorders", "formats", "exact", "influence", "importance"),
    *("log_z", "graphs", "learn", "results", "inference", "applications", "errors", "plots"),
)
__all__ = [name for name in _names if name not in (*_SPACES, "lab", "random", "testing")]


def __getattr__(name: str) -> "Any":
    if name == "__version__":
        from gibbsite.sampling.plan import package_version

        return package_version()
    return _find(name)


if _signal is not None and getattr(_signal.getsignal(_signal.SIGINT), "__module__", "") == __name__:
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
