"""Outlines of words in JSON.

One file for all images, as of ICDAR's ArT and LSVT, or one for each image with its list alone::

    {"img_1": [{"points": [[10, 12], [80, 14], [79, 40], [9, 38]],
                "transcription": "Genaxis", "illegibility": false}, ...], ...}

An image is named with or without its suffix. `transcription` and `illegibility` may be left out;
a word whose `illegibility` is true is ignored, like one whose transcription is `###`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from jumar.data.polygons.label_lines import BadLine, Outline
from jumar.data.polygons.regions import DONT_CARE
from jumar.ground.json_text import parse_json


def parse(text: str) -> Mapping[str, list[Any]] | list[Any]:
    """The words of a file: lists by image, or one list.

    Raises:
        ValueError: It is not JSON, or has another structure; the message says where.
    """
    content = parse_json(text)
    if isinstance(content, list):
        return cast("list[Any]", content)
    if isinstance(content, dict):
        pictures = cast("dict[str, Any]", content)
        wrong_name = next((name for name in pictures if not isinstance(pictures[name], list)), None)
        if wrong_name is None:
            return pictures
        raise ValueError(f"'{wrong_name[:40]}' has no list of words")
    raise ValueError("neither a list of words nor lists by image")


def outlines_of(words: list[Any]) -> Iterator[Outline | BadLine]:
    """The outlines of an image; `line` is the position in its list, from 1."""
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
