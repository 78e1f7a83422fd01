"""The kinds of data that can be checked."""

from typing import Literal

Kind = Literal["images", "pictures", "clips", "sentences", "tagged", "questions", "outlines"]
"""`images` have classes, `pictures` have none, `outlines` are outlines of words in images."""
