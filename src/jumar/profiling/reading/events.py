"""Chrome events from a JSON file, one at a time: memory does not grow with the file.

The standard library's scanner parses one event after the other from a window of text. Numbers
with a point stay text (`parse_float=str`), so times keep all of their digits.
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
LARGEST_VALUE: Final = 32 << 20
"""Characters of one event, or one value beside them. Real ones with stacks have some 10,000."""

_HALF_CHARACTER: Final = re.compile(r"\\u[dD][89a-fA-F]")
_BETWEEN: Final = re.compile(r"[\s,]*")
_NAMED: Final = re.compile(r"[\s:]*")


class BrokenJson(ValueError):
    """Text that is not JSON, or not of the expected kind."""


class _Window:
    """Text of which only the window around the reading position is in memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        head = file.read(HEAD)
        self._decoder = codecs.getincrementaldecoder(encoding_of(head))(errors="replace")
        self.text = self._decoder.decode(head).lstrip("\ufeff")
        self.at = 0
        self.ended = not head
        self._scan = json.JSONDecoder(strict=False, parse_float=str).raw_decode

    def fill(self) -> bool:
        """Read on; False at the end of the file."""
        if self.ended:
            return False
        rest = len(self.text) - self.at
        chunk = self._file.read(max(CHUNK, rest))
        self.ended = not chunk
        self.text = self.text[self.at :] + self._decoder.decode(chunk, final=self.ended)
        self.at = 0
        return True

    def next_character(self, between: re.Pattern[str] = _BETWEEN) -> str:
        """The next significant character; empty at the end."""
        while True:
            match = between.match(self.text, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.fill():
                return ""

    def value(self) -> Any:
        """The JSON value at the reading position."""
        while True:
            try:
                value, end = self._scan(self.text, self.at)
            except json.JSONDecodeError as error:
                self._more(error.pos, unfinished=error.msg.startswith("Unterminated"))
            except (RecursionError, MemoryError):
                raise BrokenJson("it is nested too deeply") from None
            except ValueError as error:
                raise BrokenJson(str(error)) from None
            else:
                if end < len(self.text) or not self.fill():
                    self.at = end
                    return value

    def _more(self, wrong: int, *, unfinished: bool) -> None:
        """Read on if the window may only have truncated the value; else it is malformed."""
        if not unfinished and wrong < len(self.text) - 32:
            raise BrokenJson("it is not JSON")
        if len(self.text) - self.at > LARGEST_VALUE:
            raise BrokenJson(f"one value is longer than {LARGEST_VALUE >> 20} MiB")
        if not self.fill():
            raise BrokenJson("it ends in the middle")


class EventReader:
    """The events of a trace, and its other values.

    Args:
        file: The bytes of the trace.

    Attributes:
        beside: Values beside `traceEvents`, complete when the events have been read.
        problem: Why reading stopped before the end; empty when it did not.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._window = _Window(file)
        self.beside: dict[str, Any] = {}
        self.problem = ""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Events in the order of the file; a broken file ends them and says so in `problem`."""
        try:
            if self._window.next_character() == "[":
                yield from self._array()
            elif self._window.next_character() == "{":
                yield from self._object()
            else:
                self.problem = "it is not JSON"
        except BrokenJson as error:
            self.problem = str(error)
        except (OSError, EOFError, zlib.error) as error:
            self.problem = f"it cannot be unpacked to its end: {error}"

    def _array(self) -> Iterator[dict[str, Any]]:
        window = self._window
        window.at += 1
        while (character := window.next_character()) != "]":
            if not character:
                raise BrokenJson("it ends in the middle")
            event = window.value()
            if isinstance(event, dict):
                yield event
        window.at += 1

    def _object(self) -> Iterator[dict[str, Any]]:
        window = self._window
        window.at += 1
        while (character := window.next_character()) != "}":
            if not character:
                raise BrokenJson("it ends in the middle")
            name = window.value()
            if not isinstance(name, str):
                raise BrokenJson("it is not JSON")
            if window.next_character(_NAMED) == "[" and name == "traceEvents":
                yield from self._array()
            else:
                self.beside[name] = window.value()


def load_json(path: Path, largest: int = LARGEST_VALUE) -> Any:
    """The one value of a JSON file of a bounded size, numbers with a point as text."""
    with opened(path) as file:
        content = file.read(4 * largest + 1)
    if len(content) > 4 * largest:
        raise BrokenJson(f"it is larger than {4 * largest >> 20} MiB")
    text = content.decode(encoding_of(content[:HEAD]), "replace").lstrip("\ufeff")
    try:
        value = json.loads(text, strict=False, parse_float=str)
        return _encodable(value) if _HALF_CHARACTER.search(text) else value
    except (RecursionError, MemoryError):
        raise BrokenJson("it is nested too deeply") from None
    except ValueError as error:
        raise BrokenJson(f"it is not JSON: {error}") from None


def load_object(path: Path) -> dict[str, Any]:
    """A whole JSON file whose value is an object; see `load_json`."""
    tree = load_json(path)
    if not isinstance(tree, dict):
        raise BrokenJson("it is not an object")
    return tree


def arguments_of(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an event tells beside its name and times."""
    arguments = event.get("args")
    return arguments if isinstance(arguments, dict) else {}


def _encodable(value: Any) -> Any:
    """A JSON value without unpaired surrogates, which JSON can express and UTF-8 cannot."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_encodable(each) for each in value]
    if isinstance(value, dict):
        return {_encodable(name): _encodable(each) for name, each in value.items()}
    return value
