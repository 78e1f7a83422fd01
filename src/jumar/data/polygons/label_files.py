"""Reads the label files of a folder or zip, all in one format."""

import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from jumar.data.images.class_folders import DiskTree, join
from jumar.data.images.image_zip import ALWAYS_ALLOWED, MAX_EXPANSION, ZipTree
from jumar.data.polygons import label_json, label_mat
from jumar.data.polygons.label_lines import BadLine, Outline, form_of, outlines_of
from jumar.data.text.numbered_lines import line_of
from jumar.ground.errors import UserError
from jumar.ground.paths import read_bytes

_MAX_BYTES = 512 * 2**20
_README = ("readme", "license", "licence", "copying", "requirements")


@dataclass(frozen=True, kw_only=True)
class LabelFile:
    """The outlines of one image.

    Attributes:
        name: The file's path, or the image's name in a file for several images.
        origin: The file and the image for messages.
        unit: Unit of positions: `line` or `word`.
        outlines: The outlines as stored in the file.
        bad: Lines or words without a valid outline.
    """

    name: str
    origin: str
    unit: str
    outlines: Sequence[Outline]
    bad: Sequence[BadLine]

    def location(self, number: int) -> str:
        """Return where an outline is, for messages."""
        if self.unit == "line":
            return line_of(self.origin, number)
        return f"{self.origin}, {self.unit} {number}"


def read_labels(tree: DiskTree | ZipTree, names: Sequence[str]) -> list[LabelFile]:
    """Read the labels in a tree, whose text files must all have the same format.

    Args:
        tree: A folder or a zip.
        names: Files in it; all but `.txt`, `.json` and Total-Text's `.mat` are ignored.

    Raises:
        UserError: A file cannot be read, or has no labels in a known format.
    """
    label_names = [name for name in names if _is_label(name)]
    contents = dict(zip(label_names, _contents(tree, label_names), strict=True))
    lines = {
        name: _decoded(content, join(tree.name, name))
        for name, content in contents.items()
        if name.lower().endswith(".txt")
    }
    form = form_of(lines.values())
    files: list[LabelFile] = []
    for name in label_names:
        origin = join(tree.name, name)
        if name in lines:
            files.append(_file(name, origin, "line", list(outlines_of(lines[name], form))))
            continue
        kind = "MATLAB" if name.lower().endswith(".mat") else "JSON"
        try:
            if kind == "MATLAB":
                words = label_mat.outlines_of(contents[name])
                files.append(_file(name, origin, "word", words))
                continue
            content = label_json.parse(_decoded(contents[name], origin))
        except ValueError as error:
            raise UserError(f"no labels in {kind}: {error}", where=origin) from error
        pictures = {name: content} if isinstance(content, list) else content
        for picture, words in pictures.items():
            where = origin if isinstance(content, list) else f"{origin}, {picture}"
            outlines = list(label_json.outlines_of(words))
            files.append(_file(picture, where, "word", outlines))
    return files


def _is_label(name: str) -> bool:
    file = name.rpartition("/")[2].lower()
    return file.endswith((".txt", ".json", ".mat")) and not file.startswith(_README)


def _file(name: str, origin: str, unit: str, entries: Sequence[Outline | BadLine]) -> LabelFile:
    return LabelFile(
        name=name,
        origin=origin,
        unit=unit,
        outlines=[entry for entry in entries if isinstance(entry, Outline)],
        bad=[entry for entry in entries if isinstance(entry, BadLine)],
    )


def _contents(tree: DiskTree | ZipTree, names: Sequence[str]) -> list[bytes]:
    if isinstance(tree, DiskTree):
        return [read_bytes(tree.root / name, _MAX_BYTES) for name in names]
    with zipfile.ZipFile(tree.path) as archive:
        return [_member(archive, tree.members[name], join(tree.name, name)) for name in names]


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, origin: str) -> bytes:
    max_bytes = min(_MAX_BYTES, max(ALWAYS_ALLOWED, MAX_EXPANSION * info.compress_size))
    if info.file_size > max_bytes:
        raise UserError(
            f"{info.compress_size} bytes that unpack to {info.file_size}: rejected as a zip bomb",
            where=origin,
        )
    try:
        return archive.read(info)
    except (OSError, zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError) as error:
        raise UserError(f"cannot be read: {error}", where=origin) from error


def _decoded(content: bytes, origin: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            f"is not UTF-8 text: {error.reason}",
            where=line_of(origin, content.count(b"\n", 0, error.start) + 1),
            todo=f"Convert it, from GBK for instance: iconv -f GB18030 -t UTF-8 '{origin}' > "
            "converted.txt",
        ) from error
