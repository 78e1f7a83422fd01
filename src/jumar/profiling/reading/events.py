"""Reads Chrome trace events from a JSON file one at a time, in bounded memory.

The standard library's scanner parses one event after another from a window of text. Numbers with
a decimal point remain text (`parse_float=str`), so times keep all of their digits.
"""

import codecs
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from jumar.profiling.reading.files.opening import HEAD, encoding_of, opened

CHUNK: Final = 1 << 20
MAX_VALUE_LENGTH: Final = 32 << 20
"""Maximum characters of an event or other value; real events with stacks have some 10,000."""

_LONE_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_SEPARATORS: Final = re.compile(r"[\s,]*")
_AFTER_KEY: Final = re.compile(r"[\s:]*")


class BrokenJson(ValueError):
    """A file that is not JSON, or not of the expected form."""


class _Window:
    """A text file; only the part around the reading position is in memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        head = file.read(HEAD)
        self._decoder = codecs.getincrementaldecoder(encoding_of(head))(errors="replace")
        self.text = self._decoder.decode(head).lstrip("\ufeff")
        self.position = 0
        self.ended = not head
        self._scan = json.JSONDecoder(strict=False, parse_float=str).raw_decode

    def fill(self) -> bool:
        """Read the next chunk; False at the end of the file."""
        if self.ended:
            return False
        unread = len(self.text) - self.position
        chunk = self._file.read(max(CHUNK, unread))
        self.ended = not chunk
        self.text = self.text[self.position :] + self._decoder.decode(chunk, final=self.ended)
        self.position = 0
        return True

    def next_character(self, skipped: re.Pattern[str] = _SEPARATORS) -> str:
        """The next significant character; empty at the end of the file."""
        while True:
            match = skipped.match(self.text, self.position)
            self.position = match.end() if match else self.position
            if self.position < len(self.text):
                return self.text[self.position]
            if not self.fill():
                return ""

    def value(self) -> Any:
        """The JSON value at the reading position."""
        while True:
            try:
                value, end = self._scan(self.text, self.position)
            except json.JSONDecodeError as error:
                self._read_more(error.pos, unfinished=error.msg.startswith("Unterminated"))
            except (RecursionError, MemoryError):
                raise BrokenJson("nested too deeply") from None
            except ValueError as error:
                raise BrokenJson(str(error)) from None
            else:
                if end < len(self.text) or not self.fill():
                    self.position = end
                    return value

    def _read_more(self, error_position: int, *, unfinished: bool) -> None:
        """Read the next chunk if the value may continue in it; otherwise it is malformed."""
        if not unfinished and error_position < len(self.text) - 32:
            raise BrokenJson("not valid JSON")
        if len(self.text) - self.position > MAX_VALUE_LENGTH:
            raise BrokenJson(f"one value is longer than {MAX_VALUE_LENGTH >> 20} MiB")
        if not self.fill():
            raise BrokenJson("truncated")


class EventReader:
    """Iterates over the events of a trace, and keeps its other values.

    Args:
        file: The trace, opened for binary reading.

    Attributes:
        other_values: Values next to `traceEvents`; complete once all events have been read.
        problem: Why reading stopped before the end; empty if it did not.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._window = _Window(file)
        self.other_values: dict[str, Any] = {}
        self.problem = ""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The events in file order; iteration ends where the file is broken, and sets `problem`."""
        try:
            if self._window.next_character() == "[":
                yield from self._array()
            elif self._window.next_character() == "{":
                yield from self._object()
            else:
                self.problem = "not valid JSON"
        except BrokenJson as error:
            self.problem = str(error)
        except (OSError, EOFError, zlib.error) as error:
            self.problem = f"cannot be decompressed to the end: {error}"

    def _array(self) -> Iterator[dict[str, Any]]:
        window = self._window
        window.position += 1
        while (character := window.next_character()) != "]":
            if not character:
                raise BrokenJson("truncated")
            event = window.value()
            if isinstance(event, dict):
                yield event
        window.position += 1

    def _object(self) -> Iterator[dict[str, Any]]:
        window = self._window
        window.position += 1
        while (character := window.next_character()) != "}":
            if not character:
                raise BrokenJson("truncated")
            name = window.value()
            if not isinstance(name, str):
                raise BrokenJson("not valid JSON")
            if window.next_character(_AFTER_KEY) == "[" and name == "traceEvents":
                yield from self._array()
            else:
                self.other_values[name] = window.value()


def load_json(path: Path, max_length: int = MAX_VALUE_LENGTH) -> Any:
    """The value of a JSON file of limited size; decimal numbers remain text."""
    with opened(path) as file:
        content = file.read(4 * max_length + 1)
    if len(content) > 4 * max_length:
        raise BrokenJson(f"larger than {4 * max_length >> 20} MiB")
    text = content.decode(encoding_of(content[:HEAD]), "replace").lstrip("\ufeff")
    try:
        value = json.loads(text, strict=False, parse_float=str)
        return _encodable(value) if _LONE_SURROGATE.search(text) else value
    except (RecursionError, MemoryError):
        raise BrokenJson("nested too deeply") from None
    except ValueError as error:
        raise BrokenJson(f"not valid JSON: {error}") from None


def load_object(path: Path) -> dict[str, Any]:
    """`load_json` of a file whose value is an object."""
    tree = load_json(path)
    if not isinstance(tree, dict):
        raise BrokenJson("not a JSON object")
    return tree


def arguments_of(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """The `args` of an event; empty if it has none."""
    arguments = event.get("args")
    return arguments if isinstance(arguments, dict) else {}


def _encodable(value: Any) -> Any:
    """A JSON value without unpaired surrogates, which JSON can express but UTF-8 cannot."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable(name): _encodable(item) for name, item in value.items()}
    return value
