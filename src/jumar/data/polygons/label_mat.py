"""Outlines of words in Total-Text's MATLAB files, `poly_gt_img11.mat`.

The array `polygt` has a row for each word: `x:`, x of its corners, `y:`, y of its corners, the
text, and the orientation: `c` curved, `h` horizontal, `m` several directions, `#` an ignored word.
"""

import io
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from jumar.data.polygons.label_lines import BadLine, Outline
from jumar.data.polygons.regions import DONT_CARE

MAX_BYTES = 256 * 2**10
"""Maximum size of a file; those of the data set have a few thousand bytes. MATLAB's arrays are
compressed, so a large file could expand to any size."""

_NAMES = ("polygt", "gt")
_COLUMNS = 5


def outlines_of(content: bytes) -> list[Outline | BadLine]:
    """Return the outlines in a file; `line` is the row, from 1.

    Raises:
        ValueError: It is not such a file; the message states the reason.
    """
    if len(content) > MAX_BYTES:
        raise ValueError(f"{len(content)} bytes are too many for the words of an image")
    return list(_rows(_array(content)))


def _array(content: bytes) -> Any:
    from scipy.io import loadmat

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            arrays: dict[str, Any] = loadmat(io.BytesIO(content))
    except NotImplementedError as error:
        raise ValueError("MATLAB 7.3 files are not supported; save it with -v7") from error
    # For damaged files, scipy's parser raises all kinds of errors.
    except Exception as error:
        raise ValueError(f"not a MATLAB file: {error}") from error
    name = next((name for name in _NAMES if name in arrays), None)
    if name is None:
        other_names = ", ".join(name for name in arrays if not name.startswith("__")) or "nothing"
        raise ValueError(f"has no array 'polygt', but {other_names}")
    array: Any = arrays[name]
    if array.ndim != 2 or array.dtype != object or array.shape[1] < _COLUMNS:
        raise ValueError(f"'{name}' does not have a row of x, y and text for each word")
    return array


def _rows(array: Any) -> Iterator[Outline | BadLine]:
    for number, row in enumerate(array, start=1):
        try:
            x, y = (np.asarray(row[column], np.float64).reshape(-1) for column in (1, 3))
        except (TypeError, ValueError):
            yield BadLine(number, "its coordinates are not numbers")
            continue
        if len(x) != len(y):
            yield BadLine(number, f"{len(x)} x and {len(y)} y")
            continue
        ignored = array.shape[1] > _COLUMNS and _text(row[_COLUMNS]) == "#"
        text = DONT_CARE if ignored else _text(row[4])
        yield Outline(number, np.stack([x, y], axis=1), text)


def _text(cell: Any) -> str:
    """Return a MATLAB string, which is an array of zero or one element."""
    return "".join(map(str, np.asarray(cell).reshape(-1)))
