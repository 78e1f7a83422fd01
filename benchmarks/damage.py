"""A file as a bad disk, an interrupted copy, another program or an attacker leaves it."""

import json
import random
from collections.abc import Callable
from typing import Any

_EDGES = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1]
_WORDS = [
    *(b"", b"nan", b"-inf", b"1e400", b"-1", b"9" * 40, b"0x10", b"1_000", b"1.5", b"N/A", b"null"),
    *(b"=cmd|' /C calc'!A0", b"../../etc/passwd", b"<script>owned=1</script>", b"[red]x[/red]"),
    *(b"\x00", b"\xff\xfe", b"\r", b"\x1b[2J", b'"', b"'", b",", b"\t", b"{{7*7}}", b"%s%n"),
    *("\u202e\ufeff\U0001f600".encode(), b"\xed\xa0\x80", b"[" * 5000, b"{" + b'"a":{' * 3000),
]
_LEAVES: list[Any] = [
    *(None, True, -1, 0, 1.5, 10**30, 1e308, float("nan"), float("inf"), "", "x", "1", "-1"),
    *("nan", [], {}, [[]], ["x"], {"x": None}, "\u0000", "\ud800", "../..", "9" * 400),
]


def damage(data: bytes, numbers: random.Random) -> bytes:
    """The bytes with one to four damages.

    Args:
        data: The file.
        numbers: Decides which.
    """
    kinds: list[Callable[[bytes, random.Random], bytes]] = [
        *(_bits, _bytes, _cut, _left_out, _doubled, _edge, _word, _moved),
        *((_leaf, _leaf, _leaf) if data[:1] in (b"{", b"[") else ()),
        *((_cell, _cell, _line) if _is_text(data) else ()),
    ]
    for _ in range(numbers.choice((1, 1, 1, 2, 4))):
        data = numbers.choice(kinds)(data, numbers)
    return data


def _is_text(data: bytes) -> bool:
    return b"\0" not in data[:1000] and b"\n" in data


def _place(data: bytes, numbers: random.Random) -> int:
    """A place in the data, half of them near the beginning, where headers are."""
    near = min(len(data), 64)
    return (
        numbers.randrange(near + 1) if numbers.random() < 0.5 else numbers.randrange(len(data) + 1)
    )


def _bits(data: bytes, numbers: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(numbers.randrange(1, 9)):
        if changed:
            changed[min(_place(data, numbers), len(data) - 1)] ^= 1 << numbers.randrange(8)
    return bytes(changed)


def _bytes(data: bytes, numbers: random.Random) -> bytes:
    place = _place(data, numbers)
    return data[:place] + numbers.randbytes(numbers.randrange(1, 20)) + data[place:]


def _cut(data: bytes, numbers: random.Random) -> bytes:
    return data[: _place(data, numbers)]


def _left_out(data: bytes, numbers: random.Random) -> bytes:
    place = _place(data, numbers)
    return data[:place] + data[place + numbers.randrange(1, 2 + len(data) // 4) :]


def _doubled(data: bytes, numbers: random.Random) -> bytes:
    place = _place(data, numbers)
    length = numbers.randrange(1, 2 + len(data) // 4)
    return data[: place + length] + data[place:]


def _moved(data: bytes, numbers: random.Random) -> bytes:
    length = numbers.randrange(1, 2 + len(data) // 4)
    first, second = _place(data, numbers), _place(data, numbers)
    return data[:first] + data[second : second + length] + data[first + length :]


def _edge(data: bytes, numbers: random.Random) -> bytes:
    size = numbers.choice((1, 2, 4, 8))
    value = numbers.choice(_EDGES) & (1 << 8 * size) - 1
    place = _place(data, numbers)
    return (
        data[:place]
        + value.to_bytes(size, numbers.choice(("little", "big")))
        + data[place + size :]
    )


def _word(data: bytes, numbers: random.Random) -> bytes:
    place = _place(data, numbers)
    return data[:place] + numbers.choice(_WORDS) + data[place:]


def _line(data: bytes, numbers: random.Random) -> bytes:
    lines = data.split(b"\n")
    place = numbers.randrange(len(lines))
    kind = numbers.randrange(3)
    if kind == 0:
        del lines[place]
    elif kind == 1:
        lines.insert(place, numbers.choice(lines))
    else:
        lines[place] = numbers.choice(_WORDS)
    return b"\n".join(lines)


def _cell(data: bytes, numbers: random.Random) -> bytes:
    lines = data.split(b"\n")
    place = numbers.randrange(len(lines))
    separator = b"\t" if b"\t" in lines[place] else b","
    cells = lines[place].split(separator)
    cells[numbers.randrange(len(cells))] = numbers.choice(_WORDS)
    lines[place] = separator.join(cells)
    return b"\n".join(lines)


def _leaf(data: bytes, numbers: random.Random) -> bytes:
    """JSON with one value of another type, or without it."""
    try:
        root = json.loads(data)
    except (ValueError, RecursionError):
        return _bits(data, numbers)
    holders: list[tuple[Any, Any]] = []
    waiting: list[Any] = [root]
    while waiting and len(holders) < 20_000:
        value = waiting.pop()
        if isinstance(value, dict | list):
            keys = list(value) if isinstance(value, dict) else range(len(value))
            holders += [(value, key) for key in keys]
            waiting += [value[key] for key in keys]
    if not holders:
        return json.dumps(numbers.choice(_LEAVES)).encode()
    holder, key = numbers.choice(holders)
    if numbers.random() < 0.2:
        del holder[key]
    elif isinstance(holder, dict) and numbers.random() < 0.1:
        holder[numbers.choice(["", "x", "\u0000"])] = holder.pop(key)
    else:
        holder[key] = numbers.choice(_LEAVES)
    return json.dumps(root).encode(errors="replace")
