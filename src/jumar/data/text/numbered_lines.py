"""Reads numbered lines of a text file, and counts malformed samples up to a limit."""

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.paths import read_bytes
from jumar.ground.text import counted, plain_text


def decoded_file(path: Path) -> str:
    """Read a UTF-8 file, without a byte order mark.

    Raises:
        UserError: It cannot be read, is empty, or is not UTF-8; the message states the line.
    """
    content = read_bytes(path)
    if not content.strip():
        raise UserError("the file is empty", where=str(path))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"is not UTF-8 text: {error.reason}",
            where=line_of(path, line),
            todo="Convert it, from GBK for instance: iconv -f GB18030 -t UTF-8 "
            f"{shlex.quote(str(path))} > "
            "converted.txt",
        ) from error


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file, numbered from 1; raises like `decoded_file`."""
    for number, line in enumerate(decoded_file(path).split("\n"), start=1):
        yield number, line.removesuffix("\r")


def line_of(path: Path | str, number: int) -> str:
    """Return the location of a line, for messages."""
    return f"{path}, line {number}"


def excerpt(text: str, max_length: int = 40) -> str:
    """Return the start of untrusted text, for messages."""
    return plain_text(text if len(text) <= max_length else text[: max_length - 1] + "…")


class Skipping:
    """Reports and counts malformed samples of a file, which are left out, up to a limit.

    Args:
        allowed: Maximum number of samples to leave out.
        report: Called with a line about each.
        option: The option that sets this number.
    """

    def __init__(
        self, allowed: int, report: Callable[[str], None], option: str = "data.skip_corrupt=N"
    ) -> None:
        self._allowed, self._report, self._option = allowed, report, option
        self.count = 0

    def fault(self, error: UserError) -> None:
        """Report a sample that is left out.

        Raises:
            UserError: More samples than allowed are left out; this is the error of the last one.
        """
        self.count += 1
        if self.count > self._allowed:
            note = f" (after skipping {counted(self._allowed, 'sample')})"
            raise UserError(
                error.what + (note if self._allowed else ""),
                where=error.where,
                todo=" ".join(
                    filter(None, (error.todo, f"To skip N such samples: {self._option}"))
                ),
            )
        self._report(f"skipped: {error.where}: {error.what}")
