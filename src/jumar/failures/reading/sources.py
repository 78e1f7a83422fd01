"""Opens files, folders, archives and standard input as streams of bytes, with limits."""

import gzip
import lzma
import os
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

from jumar.ground.errors import UserError
from jumar.ground.paths import is_file, is_folder, missing, open_to_read

MAX_FILES: Final = 20_000
MIN_UNPACKED_LIMIT: Final = 512 * 1024**2
"""A compressed file may always expand to this many bytes."""
MAX_EXPANSION: Final = 100
"""Maximum expansion of a larger file; real logs expand 10 to 50 times."""
_NOT_LOGS: Final = frozenset(
    f".{ending}"
    for ending in (
        *("py", "pyc", "ipynb", "sh", "c", "cc", "cpp", "h", "so", "html", "md", "rst"),
        *("json", "jsonl", "yaml", "yml", "toml", "cfg", "ini", "csv", "db", "lock"),
        *("pt", "pth", "bin", "safetensors", "ckpt", "npy", "npz", "pb", "onnx", "png", "jpg"),
    )
)
"""Suffixes of files that are not logs; a file named explicitly is read anyway."""

Open = Callable[[], AbstractContextManager[IO[bytes]]]
DAMAGED: Final = (
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    tarfile.TarError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
"""Exceptions of the unpacking libraries: damaged, encrypted or truncated archives."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A stream to read.

    Args:
        name: The name to display.
        open: Opens the unpacked bytes.
        max_bytes: Maximum number of bytes to read.
    """

    name: str
    open: Open
    max_bytes: int = sys.maxsize


def sources_of(paths: list[str]) -> Iterator[Source]:
    """Yield the streams of all paths; `-` is standard input.

    Raises:
        UserError: A path does not exist or cannot be opened, or a folder has too many files.
    """
    for path in paths:
        if path == "-":
            yield Source(name="stdin", open=lambda: nullcontext(sys.stdin.buffer))
        elif is_folder(Path(path)):
            yield from _of_folder(Path(path))
        elif is_file(Path(path)):
            yield from _of_file(Path(path), path)
        else:
            raise missing(Path(path), more="Specify a log, a folder of logs, an archive, or - .")


def _of_folder(folder: Path) -> Iterator[Source]:
    count = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent) / name
            if path.suffix.lower() in _NOT_LOGS or path.is_symlink() or not path.is_file():
                continue
            count += 1
            if count > MAX_FILES:
                raise UserError(
                    f"contains more than {MAX_FILES} files",
                    where=str(folder),
                    todo="Specify the folder with the logs of one job.",
                )
            yield from _of_file(path, str(path))


def _of_file(path: Path, display_name: str) -> Iterator[Source]:
    with open_to_read(path) as file:
        start = file.read(512)
        size = os.fstat(file.fileno()).st_size
    max_bytes = max(MIN_UNPACKED_LIMIT, MAX_EXPANSION * size)
    if start.startswith(b"PK\x03\x04"):
        yield from _of_zip(path, display_name, max_bytes)
    elif start[257:262] == b"ustar" or path.name.endswith(
        (".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
    ):
        yield from _of_tar(path, display_name, max_bytes)
    elif start.startswith(b"\x1f\x8b"):
        yield Source(
            name=display_name,
            open=lambda: cast("AbstractContextManager[IO[bytes]]", gzip.open(path)),  # noqa: SIM115
            max_bytes=max_bytes,
        )
    else:
        yield Source(name=display_name, open=lambda: open_to_read(path))


def _of_zip(path: Path, display_name: str, max_bytes: int) -> Iterator[Source]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
    except DAMAGED as error:
        raise UserError(f"is not a readable zip file: {error}", where=display_name) from error
    bytes_left = max_bytes
    for member in members[:MAX_FILES]:
        if Path(member.filename).suffix.lower() not in _NOT_LOGS:
            member_name = f"{display_name}/{member.filename}"
            yield Source(
                name=member_name, open=_member_of_zip(path, member.filename), max_bytes=bytes_left
            )
            bytes_left = max(0, bytes_left - member.file_size)  # zipfile stops at this size


def _member_of_zip(path: Path, name: str) -> Open:
    @contextmanager
    def opened() -> Generator[IO[bytes]]:
        with zipfile.ZipFile(path) as archive, archive.open(name) as member:
            yield member

    return opened


def _of_tar(path: Path, display_name: str, max_bytes: int) -> Iterator[Source]:
    """Yield members in order, since going back in a compressed archive unpacks it again."""
    try:
        with tarfile.open(path, "r|*") as archive:
            bytes_left = max_bytes
            for count, member in enumerate(archive):
                is_log = member.isfile() and Path(member.name).suffix.lower() not in _NOT_LOGS
                stream = archive.extractfile(member) if is_log else None
                if stream is not None:
                    yield Source(
                        name=f"{display_name}/{member.name}",
                        open=lambda s=stream: nullcontext(s),
                        max_bytes=bytes_left,
                    )
                # Going to the next member unpacks this one, even if unread.
                bytes_left -= member.size
                if bytes_left <= 0 or count >= MAX_FILES:
                    return
    except DAMAGED as error:
        raise UserError(f"is not a readable tar file: {error}", where=display_name) from error
