"""Groups of a DataTree that are made of plain arrays, and the names of dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite.errors import ArgumentError

if TYPE_CHECKING:
    import xarray


def plain_group(
    arrays: Mapping[str, Any], dims: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return arrays as variables, with indices that count from 1 along the dimensions behind ``dims``."""
    variables, coords = {}, {}
    for name, given in arrays.items():
        values = np.asarray(given)
        if values.ndim < len(dims):
            raise ArgumentError(f"The array of {name!r} must have the dimensions {', '.join(dims)}, and then its own.")
        axes = [f"{name}_dim_{k}" for k in range(values.ndim - len(dims))]
        variables[name] = ((*dims, *axes), values)
        for axis, size in zip((*dims, *axes), values.shape, strict=True):
            coords[axis] = np.arange(size) + (axis not in dims)
    return variables, coords, {}


def rename_dims(
    group: xarray.Dataset, dims: Mapping[str, Sequence[str]], coords: Mapping[str, Sequence[Any]]
) -> xarray.Dataset:
    """Return a group whose dimensions and entries have other names."""
    for variable, names in dims.items():
        if variable in group and set(group[variable].dims) >= {"chain", "draw"}:
            own = [axis for axis in group[variable].dims if axis not in ("chain", "draw")]
        else:
            own = list(group[variable].dims) if variable in group else []
        if own and len(own) != len(names):
            raise ArgumentError(f"{variable!r} has {len(own)} dimensions, and {len(names)} names were given in dims=.")
        shared = {old: new for old, new in zip(own, names, strict=False) if old != new}
        group = group.drop_vars([old for old in shared if old in group.coords])
        part = group[variable].rename(shared) if shared else None
        if part is not None:
            group = group.assign({variable: part})
    for axis, names in coords.items():
        if axis in group.dims:
            if len(names) != group.sizes[axis]:
                raise ArgumentError(f"{axis!r} has {group.sizes[axis]} entries, and {len(names)} names in coords=.")
            group = group.assign_coords({axis: list(names)})
    return group
