"""Words in an image: their outlines, and the repair of invalid outlines."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jumar.ground.text import counted

Corners = NDArray[np.float64]
"""x and y of each corner [corners, 2], in pixels from the top left of the image."""

DONT_CARE = "###"
"""ICDAR's transcription of illegible words, which also replaces Total-Text's `#`."""
UNCERTAIN = frozenset({"*", "?"})
"""Transcriptions that the originals also leave out of training, but count in scores."""

_MIN_AREA = 1.0
_SAME_POINT = 1e-6
_MAX_COORDINATE = 1e6


@dataclass(frozen=True, kw_only=True, eq=False)
class Region:
    """One word, or a line of text, in an image.

    Attributes:
        corners: The corners, clockwise on the screen.
        text: Its transcription; may be empty.
        ignored: Whether scores ignore it: a detector may or may not find it.
    """

    corners: Corners
    text: str = ""
    ignored: bool = False


class BrokenPolygon(ValueError):
    """An ambiguous or empty outline; the message states the reason."""


def mended(corners: NDArray[Any], size: tuple[int, int] | None = None) -> tuple[Corners, list[str]]:
    """Repair an outline, such that it is simple, clockwise and within the image.

    Only unambiguous faults are repaired: repeated corners, counter-clockwise order, four corners in
    an order that crosses itself (if they are convex, there is only one order that does not), and
    parts outside the image.

    Args:
        corners: [corners, 2].
        size: Height and width of the image; None if unknown.

    Returns:
        The outline, and descriptions of its faults.

    Raises:
        BrokenPolygon: It has fewer than three different corners, crosses itself, encloses less
            than one pixel or is outside the image.
    """
    points = np.asarray(corners, dtype=np.float64)
    if not np.isfinite(points).all() or np.abs(points).max(initial=0) > _MAX_COORDINATE:
        raise BrokenPolygon("a coordinate is not a number of pixels")
    faults: list[str] = []
    is_distinct = np.abs(points - np.roll(points, 1, axis=0)).max(axis=1) > _SAME_POINT
    if not is_distinct.all() and is_distinct.any():
        points = points[is_distinct]
        faults.append("a corner is repeated")
    count = len(np.unique(points, axis=0))
    if count < 3:
        raise BrokenPolygon(f"only {counted(count, 'different corner')}")
    if np.linalg.matrix_rank(points - points[0], tol=_SAME_POINT) < 2:
        raise BrokenPolygon("its corners are on one line")
    if _crosses(points):
        points = _uncrossed(points)
        faults.append("the corners are in an order that crosses itself")
    area = signed_area(points)
    if abs(area) < _MIN_AREA:
        raise BrokenPolygon(f"its area is {abs(area):.3g} square pixels")
    if area < 0:
        points = np.concatenate([points[:1], points[:0:-1]])
        faults.append("the corners are in counter-clockwise order")
    if size is not None and _exceeds(points, size):
        points = _clipped(points, size)
        faults.append("it extends beyond the image")
    return points, faults


def signed_area(points: Corners) -> float:
    """Return the area of a polygon [corners, 2], positive if it is clockwise on the screen."""
    x, y = (points - points[0]).T
    return float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2


def _crosses(points: Corners) -> bool:
    import shapely

    return len(points) > 3 and not shapely.is_simple(shapely.linearrings(points))


def _uncrossed(points: Corners) -> Corners:
    """Sort four corners around their centre, the only order that does not cross itself."""
    if len(points) == 4 and len(np.unique(points, axis=0)) == 4:
        middle = points.mean(axis=0)
        angles = np.arctan2(*(points - middle).T[::-1])
        sorted_points = points[np.argsort(angles)]
        sides = np.roll(sorted_points, -1, axis=0) - sorted_points
        cross_products = sides[:, 0] * np.roll(sides[:, 1], -1) - sides[:, 1] * np.roll(
            sides[:, 0], -1
        )
        if (cross_products > 0).all():
            first = int(np.abs(sorted_points - points[0]).sum(axis=1).argmin())
            return np.roll(sorted_points, -first, axis=0)
    raise BrokenPolygon("it crosses itself")


def _exceeds(points: Corners, size: tuple[int, int]) -> bool:
    height, width = size
    return bool((points < 0).any() or (points > (width, height)).any())


def _clipped(points: Corners, size: tuple[int, int]) -> Corners:
    import shapely

    height, width = size
    clipped: Any = shapely.intersection(shapely.polygons(points), shapely.box(0, 0, width, height))
    if clipped.area < _MIN_AREA:
        raise BrokenPolygon(f"it is outside the image of {width} x {height} pixels")
    if clipped.geom_type != "Polygon":
        raise BrokenPolygon("the border of the image cuts it into several pieces")
    ring: Any = shapely.normalize(clipped)
    corners = shapely.get_coordinates(ring.exterior)[:-1]
    return corners if signed_area(corners) > 0 else corners[::-1].copy()
