"""ArviZ before version 1 does not know DataTree; here it learns to take one for its InferenceData."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray


def load_arviz() -> Any:
    """Import ArviZ; None if it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ 0.23 announces its next version
        try:
            import arviz
        except ImportError:
            return None
    return arviz


def takes_trees(arviz: Any) -> bool:
    """Tell whether a version of ArviZ works with DataTree."""
    return int(arviz.__version__.partition(".")[0]) >= 1


def make_inference_data(arviz: Any, tree: xarray.DataTree) -> Any:
    """Return the groups of a tree as InferenceData."""
    groups = {name: group.to_dataset() for name, group in tree.children.items()}
    return arviz.InferenceData(attrs=dict(tree.attrs), warn_on_custom_groups=False, **groups)


@functools.cache
def teach_arviz() -> None:
    """Let an old ArviZ, if one is installed, take a DataTree wherever it takes other people's objects.

    All its functions convert what they are given by one function, which refuses a DataTree; so nothing that
    worked without this works otherwise with it.
    """
    arviz = load_arviz()
    if arviz is None or takes_trees(arviz):
        return
    import xarray
    from arviz.data import converters

    convert: Any = converters.convert_to_inference_data

    @functools.wraps(convert)
    def convert_trees(obj: Any, *given: Any, **more: Any) -> Any:
        if isinstance(obj, xarray.DataTree):
            return make_inference_data(arviz, obj)
        return convert(obj, *given, **more)

    converters.convert_to_inference_data = convert_trees
