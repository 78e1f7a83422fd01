"""Numbered lines of a text file, and how many bad ones a run tolerates."""

from collections.abc import Callable, Iterator
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.paths import open_to_read, unreadable
from jumar.ground.text import counted, plain_text


def decoded_file(path: Path) -> str:
    """A file's UTF-8 text, without a byte order mark.

    Raises:
        UserError: It cannot be read, is empty, or is not UTF-8; the message has the line.
    """
    try:
        with open_to_read(path) as file:
            content = file.read()
    except OSError as error:
        raise unreadable(path, error) from error
    if not content.strip():
        raise UserError("the file is empty", where=str(path))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"is not UTF-8 text: {error.reason}",
            where=line_of(path, line),
            todo=f"From GBK for instance: iconv -f GB18030 -t UTF-8 {path} > converted.txt",
        ) from error


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file, numbered from 1; raises as `decoded_file`."""
    for number, line in enumerate(decoded_file(path).split("\n"), start=1):
        yield number, line.removesuffix("\r")


def line_of(path: Path | str, number: int) -> str:
    """A line's position, for messages."""
    return f"{path}, line {number}"


def excerpt(text: str, longest: int = 40) -> str:
    """The beginning of untrusted text, for messages."""
    return plain_text(text if len(text) <= longest else text[: longest - 1] + "…")


class Skipping:
    """Bad samples of a file: listed and left out, up to a limit.

    Args:
        allowed: How many may be left out.
        say: Receives a line about each.
        option: The option that allows N of them.
    """

    def __init__(
        self, allowed: int, say: Callable[[str], None], option: str = "data.skip_corrupt=N"
    ) -> None:
        self._allowed, self._say, self._option = allowed, say, option
        self.count = 0

    def fault(self, error: UserError) -> None:
        """Leave out a sample.

        Raises:
            UserError: The error, if there are more than allowed.
        """
        self.count += 1
        if self.count > self._allowed:
            note = f" ({counted(self._allowed, 'sample')} before it skipped)"
            raise UserError(
                error.what + (note if self._allowed else ""),
                where=error.where,
                todo=" ".join(
                    filter(None, (error.todo, f"To skip N such samples: {self._option}"))
                ),
            )
        self._say(f"skipped: {error.where}: {error.what}")
