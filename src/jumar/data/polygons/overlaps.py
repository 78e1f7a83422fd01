"""Areas of overlap between outlines."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jumar.data.polygons.regions import Corners


def as_polygons(outlines: Sequence[Corners] | NDArray[np.float64]) -> NDArray[Any]:
    """Convert outlines to Shapely's polygons; one that is not simple becomes the area it encloses.

    Args:
        outlines: Corners [corners, 2] of each outline, or an array [outlines, corners, 2].
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
    """Return the areas of polygons."""
    import shapely

    return np.asarray(shapely.area(polygons), np.float64)


def overlap_areas(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
    """Return the intersection areas of pairs of polygons.

    Args:
        first: Polygons.
        second: The same number of polygons, or one polygon for all.
    """
    import shapely

    return np.asarray(shapely.area(shapely.intersection(first, second)), np.float64)


def touching_pairs(
    first: NDArray[Any], second: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the indices of pairs that may overlap, sorted by `first`, then by `second`."""
    import shapely

    tree = shapely.STRtree(second)
    pairs = np.asarray(tree.query(first), np.int64)
    order = np.lexsort((pairs[1], pairs[0]))
    return pairs[0][order], pairs[1][order]
