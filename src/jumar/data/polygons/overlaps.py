"""How much outlines overlap."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jumar.data.polygons.regions import Corners


def as_polygons(outlines: Sequence[Corners] | NDArray[np.float64]) -> NDArray[Any]:
    """Shapely's polygons of outlines, which need not be simple: what an outline encloses counts.

    Args:
        outlines: Corners [corners, 2] of each, or [outlines, corners, 2].
    """
    import shapely

    polygons: NDArray[Any]
    if isinstance(outlines, np.ndarray):
        polygons = np.asarray(shapely.polygons(outlines), object)
    else:
        polygons = np.empty(len(outlines), object)
        for index, corners in enumerate(outlines):
            polygons[index] = shapely.Polygon(corners)
    is_invalid = ~shapely.is_valid(polygons)
    if is_invalid.any():
        polygons[is_invalid] = shapely.make_valid(polygons[is_invalid])
    return polygons


def areas(polygons: NDArray[Any]) -> NDArray[np.float64]:
    """Their areas."""
    import shapely

    return np.asarray(shapely.area(polygons), np.float64)


def overlap_areas(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
    """The intersection areas of pairs of polygons.

    Args:
        first: Polygons.
        second: As many, or one for all.
    """
    import shapely

    return np.asarray(shapely.area(shapely.intersection(first, second)), np.float64)


def touching_pairs(
    first: NDArray[Any], second: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs that may overlap, in order of both."""
    import shapely

    tree = shapely.STRtree(second)
    pairs = np.asarray(tree.query(first), np.int64)
    order = np.lexsort((pairs[1], pairs[0]))
    return pairs[0][order], pairs[1][order]
