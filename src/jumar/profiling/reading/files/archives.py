"""Unpacks zips of profiles into a temporary folder, up to a size limit."""

import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from jumar.ground.errors import UserError
from jumar.ground.paths import is_file
from jumar.profiling.reading.files.finding import ENDINGS, MAX_FILES
from jumar.profiling.reading.files.opening import ZIP

MAX_UNPACKED: Final = 16 << 30
"""Maximum unpacked size of an archive's tables in bytes."""

MAX_EXPANSION: Final = 300
"""Maximum ratio of unpacked to packed size; traces have 10 to 60, zip bombs 1000."""


@contextmanager
def unpacked(path: Path, display_name: str) -> Generator[Path, None, None]:
    """Yield the file or folder itself, or a temporary folder with a zip's content.

    Raises:
        UserError: The archive is broken, contains paths outside of it, or is a zip bomb.
    """
    if not _is_zip(path):
        yield path
        return
    with TemporaryDirectory(prefix="jumar-profile-") as folder:
        try:
            with zipfile.ZipFile(path) as archive:
                _unpack(archive, Path(folder), path.stat().st_size, display_name)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise _archive_error(f"the archive is broken: {error}", display_name) from None
        except (RuntimeError, NotImplementedError) as error:
            raise _archive_error(f"the archive cannot be unpacked: {error}", display_name) from None
        yield Path(folder)


def _is_zip(path: Path) -> bool:
    if not is_file(path):
        return False
    with path.open("rb") as file:
        return file.read(len(ZIP)) == ZIP


def _unpack(archive: zipfile.ZipFile, folder: Path, packed_size: int, display_name: str) -> None:
    members = [
        member
        for member in archive.infolist()
        if not member.is_dir() and member.filename.lower().endswith(ENDINGS)
    ]
    if len(members) > MAX_FILES:
        raise _archive_error(f"contains more than {MAX_FILES} files", display_name)
    bytes_left = min(MAX_UNPACKED, MAX_EXPANSION * packed_size + (1 << 20))
    for member in members:
        name = PurePosixPath(member.filename.replace("\\", "/"))
        if name.is_absolute() or ".." in name.parts or ":" in name.parts[0]:
            raise _archive_error(
                f"'{member.filename}' is a path outside of the archive", display_name
            )
        target = folder.joinpath(*name.parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(member) as source, target.open("wb") as file:
            # The size that a member declares is not trusted.
            while chunk := source.read(1 << 20):
                bytes_left -= len(chunk)
                if bytes_left < 0:
                    raise _archive_error("expands to far more than its size suggests", display_name)
                file.write(chunk)


def _archive_error(what: str, display_name: str) -> UserError:
    return UserError(what, where=display_name, todo="Unpack it yourself and pass the folder.")
