"""Parses tensor shapes in profiles."""

import math

Shape = tuple[int, ...]

_MAX_ELEMENTS = 1 << 50
"""More elements than any device can store; such shapes come from broken or hostile files."""


def shapes_of(text: str | None) -> list[Shape]:
    """Parse `2,3;;4` as [(2, 3), (), (4,)]; shapes with non-numeric sizes are dropped."""
    if text is None:
        return []
    shapes: list[Shape] = []
    for part in text.split(";"):
        try:
            shapes.append(tuple(int(size) for size in part.split(",") if size.strip()))
        except ValueError:
            continue
    return shapes


def volume(shape: Shape) -> int:
    """Number of elements; 0 if a size is unknown (negative) or impossible."""
    if not all(0 <= size < _MAX_ELEMENTS for size in shape):
        return 0
    product = math.prod(shape)
    return product if product < _MAX_ELEMENTS else 0
