"""Image source: ImageNet-style TFRecord shards."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from jumar.data.images.class_folders import is_hidden, is_image
from jumar.data.records.imagenet_example import record_of_example
from jumar.data.records.record_shards import RECORD_SUFFIXES, SHARD_NAME, RecordShards
from jumar.data.records.stored_shards import StoredShards
from jumar.data.samples import Record
from jumar.ground.errors import UserError
from jumar.ground.paths import unreadable

LABELS_FILE = "labels.txt"
BACKGROUND = "background"
"""Name of class 0 if labels start at 1, as in ImageNet's shards."""
_NUMBERED_LINE = re.compile(r"^(\d{1,9}):(.*)$")


class ImageShards(RecordShards):
    """The images of TFRecord shards, in shard order, with labels as stored.

    Attributes:
        classes: Names by stored label, from `labels.txt` next to the shards; empty without it.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        notice: Callable[[str], None],
        stored: StoredShards | None = None,
    ) -> None:
        """Index the shards; arguments and errors as for `RecordShards`."""
        rewrite_command = "jumar data tfrecord SRC --to DEST"
        super().__init__(paths, notice, rewrite_command=rewrite_command, stored=stored)
        self.classes: Sequence[str] = read_class_names(paths[0].parent / LABELS_FILE)

    def read(self, index: int) -> Record:
        """Read one record.

        Raises:
            CorruptRecord: Its checksum is wrong, it is not a tf.Example, or it lacks an image, a
                label, or a coordinate of a box.
        """
        payload, origin = self.payload(index)
        return record_of_example(payload, origin)


def is_shard_name(name: str) -> bool:
    """Return whether a file counts as TFRecord, by its name."""
    if is_hidden(name) or is_image(name) or name.lower().endswith(".zip"):
        return False
    stem = name.lower().removesuffix(".gz").removesuffix(".zlib")
    return SHARD_NAME.match(name) is not None or stem.endswith(RECORD_SUFFIXES)


def read_class_names(path: Path) -> tuple[str, ...]:
    """Read class names by label, one per line or as `label:name`; empty if there is no file.

    Raises:
        UserError: The file cannot be read, or its numbered lines skip a label.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise unreadable(path, error) from error
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    matches = [_NUMBERED_LINE.match(line) for line in lines]
    if not all(matches):
        return tuple(line.strip() for line in lines)
    names: list[str] = []
    for number, match in enumerate(matches):
        if match is not None:
            if int(match[1]) != number:
                raise UserError(
                    f"the label is {match[1]}, expected {number}",
                    where=f"{path}, line {number + 1}",
                    todo="Number the classes from 0 in order, or write one name per line.",
                )
            names.append(match[2])
    return tuple(names)
