"""Zips of profiles, unpacked in a safe place up to a limited size."""

import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from jumar.ground.errors import UserError
from jumar.ground.paths import is_file
from jumar.profiling.reading.files.finding import ENDINGS, MOST_FILES
from jumar.profiling.reading.files.opening import ZIP

LARGEST: Final = 16 << 30
"""Bytes that all tables of one archive may have when unpacked."""

MOST_FOLD: Final = 300
"""How many times larger than packed a table may be: traces shrink 10 to 60 times, bombs 1000."""


@contextmanager
def unpacked(path: Path, shown: str) -> Generator[Path, None, None]:
    """The file or folder itself, or a zip's content in a folder that is removed afterwards.

    Raises:
        UserError: The archive is broken, points outside of itself, or is a bomb.
    """
    if not _is_zip(path):
        yield path
        return
    with TemporaryDirectory(prefix="jumar-profile-") as folder:
        try:
            with zipfile.ZipFile(path) as archive:
                _unpack(archive, Path(folder), path.stat().st_size, shown)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise _refused(f"the archive is broken: {error}", shown) from None
        except (RuntimeError, NotImplementedError) as error:
            raise _refused(f"the archive cannot be unpacked: {error}", shown) from None
        yield Path(folder)


def _is_zip(path: Path) -> bool:
    if not is_file(path):
        return False
    with path.open("rb") as file:
        return file.read(len(ZIP)) == ZIP


def _unpack(archive: zipfile.ZipFile, folder: Path, packed: int, shown: str) -> None:
    members = [
        member
        for member in archive.infolist()
        if not member.is_dir() and member.filename.lower().endswith(ENDINGS)
    ]
    if len(members) > MOST_FILES:
        raise _refused(f"more than {MOST_FILES} files are in it", shown)
    room = min(LARGEST, MOST_FOLD * packed + (1 << 20))
    for member in members:
        name = PurePosixPath(member.filename.replace("\\", "/"))
        if name.is_absolute() or ".." in name.parts or ":" in name.parts[0]:
            raise _refused(f"'{member.filename}' points outside of it", shown)
        target = folder.joinpath(*name.parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(member) as source, target.open("wb") as file:
            # What a member says of its size is not trusted.
            while chunk := source.read(1 << 20):
                room -= len(chunk)
                if room < 0:
                    raise _refused("it holds far more than its size says", shown)
                file.write(chunk)


def _refused(what: str, shown: str) -> UserError:
    return UserError(what, where=shown, todo="Unpack it yourself and name the folder.")
