"""What someone who wants to do harm writes into a file that others will read."""

import io
import json
import os
import pickle
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

HANDLER = "attackCanary"
"""The JavaScript that must not become part of a page."""

WORDS = (
    "a\x1b]0;owned\x07\x1b[2Jb\x9b31m\rc\x00d",
    "b\u202edne\u2066x\u200f\u2028\u2029",
    f"</script><script>{HANDLER}()</script><img src=x onerror={HANDLER}()>-->]]>",
    f'" onmouseover="{HANDLER}()" x=\'{HANDLER}',
    "{{ ''.__class__.__mro__ }}{% include '/etc/passwd' %}${7*7}%(x)s%s{0.__class__}",
    "[bold red]x[/][link=file:///etc/passwd]y[/link][/nothing]",
    "=cmd|'/C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    f"[x](javascript:{HANDLER}()) | a | <b onclick={HANDLER}()>",
    "\ud800",
    "../../../escaped",
    "9" * 5000,
)
"""Terminal escapes, directions of writing, markup, templates, formulas, paths."""

NUMBERS = (10**400, -(2**63), 2**64, 1e308, -1, float("nan"), float("inf"), 2**31)
ONE_LINE = tuple(word for word in WORDS if not set(word) & set("\0\ud800\r\u2028\u2029\n"))


class Runs:
    """What creates a file when it is unpickled."""

    def __init__(self, canary: Path) -> None:
        self._canary = canary

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (str(self._canary),)


def bomb(canary: Path) -> bytes:
    """A pickle that leaves a canary where it is read."""
    return pickle.dumps(Runs(canary), protocol=2)


def torch_file(canary: Path) -> bytes:
    """The same in the form of `torch.save`."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as packed:
        packed.writestr("archive/data.pkl", bomb(canary))
        packed.writestr("archive/version", "3\n")
    return stream.getvalue()


def object_array(canary: Path) -> bytes:
    """A .npy of Python objects."""
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bomb(canary)


def code(canary: Path) -> str:
    """Python that leaves a canary where it is executed."""
    return f"import os\nos.mkdir({str(canary)!r})\n"


def zipped(files: Mapping[str, bytes], *, links: Mapping[str, str] | None = None) -> bytes:
    """A zip with any names, and with symbolic links."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(zipfile.ZipInfo(name), data)
        for name, to in (links or {}).items():
            entry = zipfile.ZipInfo(name)
            entry.create_system, entry.external_attr = 3, 0o120777 << 16
            packed.writestr(entry, to)
    return stream.getvalue()


def tarred(files: Mapping[str, bytes], *, links: Mapping[str, str] | None = None) -> bytes:
    """The same as a tar."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as packed:
        for name, to in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, to
            packed.addfile(entry)
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            packed.addfile(entry, io.BytesIO(data))
    return stream.getvalue()


def climbing(data: bytes, suffix: str, outside: Path) -> dict[str, bytes]:
    """Names of an archive that lead out of the folder into which it is unpacked."""
    absolute = outside / f"escaped-absolute{suffix}"
    names = (f"../escaped{suffix}", f"../../escaped{suffix}", f"a/../../../escaped{suffix}")
    backslashes = f"..\\..\\escaped{suffix}"
    return dict.fromkeys((*names, str(absolute), f"link/escaped{suffix}", backslashes), data)


def lying_zip(name: str, size: int = 2**31) -> bytes:
    """A zip whose entry unpacks to much more than anyone has memory for."""
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = bytes(2**20)
    data = b"".join(squeezer.compress(block) for _ in range(40)) + squeezer.flush()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name, b"\0" * 100)
    content = bytearray(stream.getvalue())
    for signature, at in ((b"PK\x03\x04", 18), (b"PK\x01\x02", 20)):
        place = content.index(signature) + at
        content[place : place + 8] = struct.pack("<II", len(data), size)
    return bytes(content)


def huge_png() -> bytes:
    """An image of 2 gigapixels by its header."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 50_000, 40_000, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(100)))


def lying_wav() -> bytes:
    """A clip of 4 GiB by its header, which is not there."""
    form = struct.pack("<HHIIHH", 1, 65535, 2**32 - 1, 2**32 - 1, 65535, 16)
    return b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0" + form + b"data\xff\xff\xff\xff\0\0"


def lying_safetensors(names: tuple[str, ...] = ONE_LINE) -> bytes:
    """Tensors that end beyond the file, under names that do harm."""
    head = {name: {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]} for name in names}
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text


def worded(value: Any, words: tuple[str, ...] = WORDS) -> Any:
    """JSON with another hostile word in each of its texts."""
    turn = iter(range(10**6))

    def one(each: Any) -> Any:
        if isinstance(each, dict):
            return {name: one(inner) for name, inner in each.items()}
        if isinstance(each, list):
            return [one(inner) for inner in each]
        return words[next(turn) % len(words)] if isinstance(each, str) else each

    return one(value)


def numbered(value: Any, shift: int = 0) -> Any:
    """JSON with an impossible number in place of each number."""
    turn = iter(range(shift, 10**6))

    def one(each: Any) -> Any:
        if isinstance(each, dict):
            return {name: one(inner) for name, inner in each.items()}
        if isinstance(each, list):
            return [one(inner) for inner in each]
        is_number = isinstance(each, int | float) and not isinstance(each, bool)
        return NUMBERS[next(turn) % len(NUMBERS)] if is_number else each

    return one(value)


def write_json(path: Path, value: Any) -> None:
    """JSON as Python writes it, also infinities and half characters."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
