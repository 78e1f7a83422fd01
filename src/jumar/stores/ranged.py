"""Concurrent reading of object ranges, in any process.

Data-loading workers may be forked from a process that uses obstore, whose threads do not survive a
fork, so a request would hang. Such a worker starts a helper process, a new interpreter that reads
the ranges and ends with the worker.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import IO, Any, cast

from jumar.stores.client import StoredObject, StoreError, client_of, is_usable_here
from jumar.stores.download import MAX_REQUESTS
from jumar.stores.location import parse


@dataclass(frozen=True, kw_only=True)
class Range:
    """A range of an object's bytes, from `start` to before `end`."""

    stored: StoredObject
    start: int
    end: int


def read_ranges(ranges: Sequence[Range]) -> list[bytes]:
    """Read ranges concurrently, and return their bytes in the same order.

    Raises:
        StoreError: The store does not respond, or an object has changed.
    """
    if not ranges:
        return []
    if is_usable_here():
        return read_directly(ranges)
    return _helper().read(ranges)


def read_directly(ranges: Sequence[Range]) -> list[bytes]:
    """Read ranges in this process, which must not be forked from one that has used a store."""
    if len(ranges) == 1:
        return [_read(ranges[0])]
    with ThreadPoolExecutor(max_workers=min(MAX_REQUESTS, len(ranges))) as pool:
        return list(pool.map(_read, ranges))


def _read(byte_range: Range) -> bytes:
    return client_of(byte_range.stored.location).read(
        byte_range.stored, byte_range.start, byte_range.end
    )


class _Helper:
    """A process that reads ranges for this one."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jumar.stores.range_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def read(self, ranges: Sequence[Range]) -> list[bytes]:
        request = [
            [
                str(byte_range.stored.location),
                byte_range.stored.size,
                byte_range.stored.e_tag,
                byte_range.start,
                byte_range.end,
            ]
            for byte_range in ranges
        ]
        requests, responses = self._process.stdin, self._process.stdout
        assert requests is not None
        assert responses is not None
        with self._lock:
            try:
                requests.write(json.dumps(request).encode() + b"\n")
                requests.flush()
                head: Any = json.loads(responses.readline() or b"{}")
                if "sizes" in head:
                    return [_read_exactly(responses, size) for size in head["sizes"]]
            except (OSError, ValueError) as error:
                raise _helper_ended(ranges[0]) from error
        if "what" not in head:
            raise _helper_ended(ranges[0])
        raise StoreError(head["what"], where=head["where"], todo=head["todo"])


def _helper_ended(byte_range: Range) -> StoreError:
    return StoreError(
        "the process that reads this store for a worker has ended",
        where=str(byte_range.stored.location),
        todo="It may have been killed for lack of memory. Try again with fewer data.workers.",
    )


def _read_exactly(file: IO[bytes], size: int) -> bytes:
    content = file.read(size)
    if len(content) != size:
        raise OSError("the response ends too early")
    return content


_helpers: dict[int, _Helper] = {}
_start_lock = Lock()


def _helper() -> _Helper:
    """Return the helper of this process, starting it on first use."""
    with _start_lock:
        if os.getpid() not in _helpers:
            _helpers.clear()
            _helpers[os.getpid()] = _Helper()
        return _helpers[os.getpid()]


def answer(line: bytes) -> tuple[bytes, list[bytes]]:
    """Return a helper's response to a request line: a head line, and the contents after it."""
    ranges = [
        Range(
            stored=StoredObject(location=parse(url), size=size, e_tag=e_tag), start=start, end=end
        )
        for url, size, e_tag, start, end in cast("list[list[Any]]", json.loads(line))
    ]
    try:
        contents = read_directly(ranges)
    except StoreError as error:
        failure = {"what": error.what, "where": error.where, "todo": error.todo}
        return json.dumps(failure).encode() + b"\n", []
    sizes = [len(content) for content in contents]
    return json.dumps({"sizes": sizes}).encode() + b"\n", contents
