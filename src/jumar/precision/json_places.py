"""Read a small JSON file with the line number of every value, for messages."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')


ITEM = "[]"


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """A value without children: a scalar, an empty object or an empty array."""

    path: tuple[str, ...]
    """The keys from the root to the value, with `[]` for an array element."""
    value: Any
    line: int


class JsonError(Exception):
    """The text is not JSON, or a key appears twice."""

    def __init__(self, what: str, line: int, todo: str = "") -> None:
        super().__init__(what, line)
        self.what = what
        self.line = line
        self.todo = todo


def read_leaves(text: str) -> list[Leaf]:
    """Return the leaves of a JSON text, in order.

    Raises:
        JsonError: The text is not JSON (the message mentions a `//` comment), or a key appears
            twice.
    """
    if not text.strip():
        raise JsonError("the file is empty", 0, 'a file without changes is {"black-list": {}}')
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise _explained(text, error) from None
    except RecursionError:
        raise JsonError("nested too deeply", 0) from None
    return list(_Walker(text).leaves(()))


def _refuse_constant(name: str) -> Any:
    raise JsonError(f"{name} is not JSON", 0)


def _explained(text: str, error: json.JSONDecodeError) -> JsonError:
    lines = text.split("\n")
    # The decoder stops at the comment, or at a comma before it.
    for number in range(error.lineno, min(error.lineno + 2, len(lines)) + 1):
        start = error.colno - 1 if number == error.lineno else 0
        remainder = lines[number - 1][start:].lstrip(", \t")
        if remainder.startswith(("//", "/*", "#")):
            return JsonError(
                "comments are not JSON; CANN's reader rejects them too",
                number,
                "remove the comment",
            )
        if remainder:
            break
    return JsonError(f"not JSON: {error.msg}", error.lineno)


class _Walker:
    """Iterates over the tokens of a text that is known to be valid JSON."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, int]] = []
        line, end = 1, 0
        for match in _TOKEN.finditer(text):
            line += text.count("\n", end, match.start())
            end = match.start()
            self._tokens.append((match.group(), line))
        self._next = 0

    def _take(self) -> tuple[str, int]:
        self._next += 1
        return self._tokens[self._next - 1]

    def leaves(self, path: tuple[str, ...]) -> Iterator[Leaf]:
        """Yield the leaves of the next value, which is at a path."""
        token, line = self._take()
        is_container, is_object = token in "{[", token == "{"  # noqa: S105
        if not is_container:
            yield Leaf(path=path, value=json.loads(token), line=line)
        elif self._tokens[self._next][0] in "}]":
            self._take()
            yield Leaf(path=path, value={} if is_object else [], line=line)
        elif is_object:
            yield from self._members(path)
        else:
            separator = ","
            while separator == ",":
                yield from self.leaves((*path, ITEM))
                separator = self._take()[0]

    def _members(self, path: tuple[str, ...]) -> Iterator[Leaf]:
        keys: set[str] = set()
        separator = ","
        while separator == ",":
            token, line = self._take()
            key = json.loads(token)
            if key in keys:
                raise JsonError(f"the key '{key}' appears twice", line, "merge both")
            keys.add(key)
            self._take()
            yield from self.leaves((*path, key))
            separator = self._take()[0]
