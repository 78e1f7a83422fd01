"""Outlines of words in JSON.

Either one file for all images, as in ICDAR's ArT and LSVT, or one per image with only its list::

    {"img_1": [{"points": [[10, 12], [80, 14], [79, 40], [9, 38]],
                "transcription": "Genaxis", "illegibility": false}, ...], ...}

Image names may omit the suffix. `transcription` and `illegibility` are optional; words with
`illegibility` true are ignored, like words with the transcription `###`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from jumar.data.polygons.label_lines import BadLine, Outline
from jumar.data.polygons.regions import DONT_CARE
from jumar.ground.json_text import parse_json


def parse(text: str) -> Mapping[str, list[Any]] | list[Any]:
    """Parse a file into lists of words by image, or one list.

    Raises:
        ValueError: It is not JSON, or has another structure; the message states where.
    """
    content = parse_json(text)
    if isinstance(content, list):
        return cast("list[Any]", content)
    if isinstance(content, dict):
        pictures = cast("dict[str, Any]", content)
        invalid_name = next(
            (name for name in pictures if not isinstance(pictures[name], list)), None
        )
        if invalid_name is None:
            return pictures
        raise ValueError(f"'{invalid_name[:40]}' has no list of words")
    raise ValueError("neither a list of words nor lists by image")


def outlines_of(words: list[Any]) -> Iterator[Outline | BadLine]:
    """Yield the outlines of an image; `line` is the position in its list, from 1."""
    for number, word in enumerate(words, start=1):
        try:
            yield _outline(number, word)
        except (ValueError, TypeError) as error:
            yield BadLine(number, str(error))


def _outline(number: int, word: Any) -> Outline:
    if not isinstance(word, dict) or "points" not in word:
        raise ValueError("has no points")
    fields = cast("dict[str, Any]", word)
    points = np.asarray(fields["points"], dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError("its points are not pairs of x and y")
    ignored = fields.get("illegibility", False) is True
    return Outline(number, points, DONT_CARE if ignored else str(fields.get("transcription", "")))
