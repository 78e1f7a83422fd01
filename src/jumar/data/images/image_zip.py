"""Image source: class folders in a zip, read in place."""

import struct
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jumar.data.images.class_folders import ClassListing, DiskTree, ListedImages, is_hidden
from jumar.data.images.image_folder import ImageFolder
from jumar.data.records.offset_files import MAX_IMAGE_BYTES, OffsetFiles, too_large
from jumar.data.samples import CorruptRecord, Record
from jumar.ground.errors import UserError

MAX_EXPANSION = 200
"""Ratio of unpacked to packed size above which a member is rejected as a decompression bomb."""
ALWAYS_ALLOWED = 16 * 2**20
"""Unpacked size up to which the ratio is not checked: blank bitmaps are packed well."""
_ENCRYPTED = 1
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_LOCAL_MAGIC = b"PK\x03\x04"


class ZipTree:
    """The folders and files of a zip, with the position of each member's data.

    Raises:
        UserError: The file cannot be read, is not a zip, or has encrypted members or two members
            with the same name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)
        self.members: dict[str, zipfile.ZipInfo] = {}
        self._folders: dict[str, set[str]] = {"": set()}
        self._files: dict[str, list[str]] = {"": []}
        for info in _directory(path):
            # Some Windows tools write backslashes, against the specification.
            name = info.filename.replace("\\", "/")
            if info.flag_bits & _ENCRYPTED and not info.is_dir():
                raise UserError(
                    f"'{name}' is encrypted",
                    where=self.name,
                    todo="Unpack the zip with its password and use the folder instead.",
                )
            parts = [part for part in name.split("/") if part]
            if not parts or any(is_hidden(part) for part in parts):
                continue
            folders = parts if name.endswith("/") else parts[:-1]
            self._add_folders(folders)
            if folders is not parts:
                self._files["/".join(folders)].append(parts[-1])
                if self.members.setdefault("/".join(parts), info) is not info:
                    raise UserError(
                        f"'{'/'.join(parts)}' occurs twice",
                        where=self.name,
                        todo="Unpack the zip, keep the right one, and zip the folder again.",
                    )

    def _add_folders(self, parts: Sequence[str]) -> None:
        for depth, part in enumerate(parts):
            folder = "/".join(parts[: depth + 1])
            if folder not in self._folders:
                self._folders[folder], self._files[folder] = set(), []
                self._folders["/".join(parts[:depth])].add(part)

    def entries(self, folder: str) -> tuple[Sequence[str], Sequence[str]]:
        """Return the sorted names of the folders and the files in a folder, without hidden ones."""
        return sorted(self._folders[folder]), sorted(set(self._files[folder]))


class ImageZip(ListedImages):
    """Images in the class folders of a zip; the label of an image is the position of its class.

    Members are read without `zipfile`, whose open file has one position, which forked workers would
    share: they would read each other's data.
    """

    def __init__(self, tree: ZipTree, listing: ClassListing) -> None:
        super().__init__(listing)
        self._path = tree.name
        self._file = OffsetFiles([tree.path])
        members = [tree.members[path] for path in listing.paths]
        self._entries = np.array(
            [
                (
                    info.header_offset,
                    _bounded(info.compress_size),
                    _bounded(info.file_size),
                    info.CRC,
                )
                for info in members
            ],
            dtype=np.int64,
        )
        self._methods = np.array([info.compress_type for info in members], dtype=np.int32)

    def read(self, index: int) -> Record:
        """Read and unpack one image.

        Raises:
            CorruptRecord: The member is damaged, packed by an unknown method, empty, or too large
                for an image.
        """
        origin = f"{self._path}, {self._listing.paths[index]}"
        offset, packed_size, size, crc = (int(value) for value in self._entries[index])
        try:
            encoded = self._unpack(offset, packed_size, size, int(self._methods[index]))
            if zlib.crc32(encoded) != crc:
                raise ValueError("its checksum does not match: the zip is damaged")
        except (OSError, ValueError, zlib.error) as error:
            raise CorruptRecord(origin, error) from error
        return Record(encoded=encoded, label=int(self._listing.labels[index]), origin=origin)

    def _unpack(self, offset: int, packed_size: int, size: int, method: int) -> bytes:
        if max(size, packed_size) > MAX_IMAGE_BYTES:
            raise ValueError(too_large(max(size, packed_size)))
        if size > max(ALWAYS_ALLOWED, MAX_EXPANSION * packed_size):
            raise ValueError(f"{packed_size} bytes that unpack to {size}: rejected as a zip bomb")
        if not size:
            raise ValueError("the file is empty")
        header = self._file.read(0, offset, _LOCAL_HEADER.size)
        if len(header) < _LOCAL_HEADER.size or not header.startswith(_LOCAL_MAGIC):
            raise ValueError(
                f"no member begins at byte {offset}: the zip is damaged or was changed"
            )
        _, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(header)
        start = offset + _LOCAL_HEADER.size + name_bytes + extra_bytes
        data = self._file.read(0, start, packed_size)
        if method == zipfile.ZIP_DEFLATED:
            stream = zlib.decompressobj(-zlib.MAX_WBITS)
            data = stream.decompress(data, size + 1)
        elif method != zipfile.ZIP_STORED:
            raise ValueError(
                f"packed with method {method}; only stored and deflated members can be read"
            )
        if len(data) != size:
            raise ValueError(f"does not have the {size} bytes that the zip's directory states")
        return data


def images_of(tree: DiskTree | ZipTree, listing: ClassListing) -> ImageFolder | ImageZip:
    """Return the source of the listed files of a tree; it also suits sounds."""
    return ImageZip(tree, listing) if isinstance(tree, ZipTree) else ImageFolder(tree.root, listing)


def _bounded(size: int) -> int:
    # A zip may state sizes that do not fit into int64; such members are rejected when read.
    return min(size, MAX_IMAGE_BYTES + 1)


def _directory(path: Path) -> list[zipfile.ZipInfo]:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.infolist()
    except zipfile.BadZipFile as error:
        raise UserError(
            f"not a zip file, or damaged: {error}",
            where=str(path),
            todo="Copy or download the file again; a truncated file lacks its table of contents.",
        ) from error
    except (OSError, NotImplementedError, ValueError, UnicodeDecodeError) as error:
        raise UserError(f"cannot be read: {error}", where=str(path)) from error
