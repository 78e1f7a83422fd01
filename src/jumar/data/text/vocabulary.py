"""Vocabularies of word pieces: BERT's `vocab.txt`, one piece per line, numbered from 0."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.paths import read_bytes
from jumar.ground.text import plain_text

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""The pieces that do not represent text."""
CONTINUES = "##"
"""Prefix of a piece that continues a word."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Word pieces by id and ids by piece.

    Attributes:
        pieces: The pieces, by id.
        where: The file, for messages.
    """

    pieces: Sequence[str]
    where: str = ""

    def __post_init__(self) -> None:
        missing_pieces = [piece for piece in SPECIAL if piece not in self.ids]
        if missing_pieces:
            raise UserError(
                f"the vocabulary lacks {', '.join(missing_pieces)}",
                where=self.where,
                todo=f"Every BERT vocabulary has {', '.join(SPECIAL)}, each on a separate line; "
                "`jumar data vocab` creates one.",
            )

    def __len__(self) -> int:
        return len(self.pieces)

    @cached_property
    def ids(self) -> dict[str, int]:
        """Ids by piece."""
        return {piece: number for number, piece in enumerate(self.pieces)}

    def id_of(self, piece: str) -> int:
        """Return the id of a special piece."""
        return self.ids[piece]

    @cached_property
    def continuing(self) -> frozenset[int]:
        """Ids of the pieces that continue a word."""
        return frozenset(
            number for number, piece in enumerate(self.pieces) if piece.startswith(CONTINUES)
        )


def read_vocabulary(path: Path) -> Vocabulary:
    """Read the vocabulary in a file.

    As in the original, whitespace around a piece is removed.

    Raises:
        UserError: The file cannot be read, is not UTF-8, lacks a special piece, or has a blank or
            repeated line; the message states file and line.
    """
    lines = read_bytes(path).split(b"\n")
    if not lines[-1]:
        lines.pop()
    return Vocabulary(tuple(_checked(path, lines)), str(path))


def _checked(path: Path, lines: Iterable[bytes]) -> Iterable[str]:
    first: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        where = f"{path}, line {number}"
        if not line.strip():
            raise UserError(
                "the line is blank", where=where, todo="Remove it: each line is a word piece."
            )
        try:
            piece = line.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise UserError(
                f"is not UTF-8 text: {error.reason}",
                where=where,
                todo="Is this a vocabulary? Expected: one word piece per line, in UTF-8.",
            ) from error
        if piece in first:
            raise UserError(
                f"'{plain_text(piece)}' is also on line {first[piece]}",
                where=where,
                todo="Every word piece has one id: remove one of the lines, unless a checkpoint "
                "was trained with this file.",
            )
        first[piece] = number
        yield piece
