"""A unified diff that `patch -p1` and `git apply` accept, byte for byte."""

import os
import re
import tokenize
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from io import BytesIO

from jumar.porting.edits import FileReport

CONTEXT = 3


def diff_lines(file: FileReport) -> Iterator[str]:
    r"""Yield the unified diff of a ported file; nothing if both texts are the same.

    Every line ends in `\n`, after any other characters of the original line ending, such as `\r`.
    The joined lines form a patch if they are encoded like the file, as `diff_bytes` does.
    """
    if file.before == file.after:
        return
    before, after = _split(file.before), _split(file.after)
    yield f"--- {_name('a/' + file.path)}\n"
    yield f"+++ {_name('b/' + file.path)}\n"
    for group in SequenceMatcher(None, before, after).get_grouped_opcodes(CONTEXT):
        (_, first_old, _, first_new, _), (_, _, end_old, _, end_new) = group[0], group[-1]
        yield f"@@ -{_range(first_old, end_old)} +{_range(first_new, end_new)} @@\n"
        for tag, old, old_end, new, new_end in group:
            if tag == "equal":
                yield from _marked(" ", before[old:old_end])
            else:
                yield from _marked("-", before[old:old_end])
                yield from _marked("+", after[new:new_end])


def diff_bytes(file: FileReport) -> bytes:
    """Return the unified diff in the encoding that the file's coding cookie declares.

    A patch in another encoding would not apply.
    """
    beginning = BytesIO(file.before[:4096].encode("utf-8", "replace"))
    try:
        encoding, _ = tokenize.detect_encoding(beginning.readline)
    except SyntaxError:
        encoding = "utf-8"
    lines = list(diff_lines(file))
    head = "".join(lines[:2]).encode("utf-8")
    return head + "".join(lines[2:]).encode(encoding, "backslashreplace")


def _split(text: str) -> list[str]:
    r"""Return the lines as `patch` counts them: only `\n` ends a line."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if line.endswith("\n"):
            yield mark + line
        else:
            yield f"{mark}{line}\n"
            yield "\\ No newline at end of file\n"


def _range(start: int, end: int) -> str:
    """Return the first line and the number of lines; an empty range names the line before it."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _name(path: str) -> str:
    """Return a file name as both programs parse it, quoted like a C string if necessary."""
    if re.search(r'["\\\x00-\x1f\x7f\ud800-\udfff]', path):
        return '"' + "".join(_quoted(byte) for byte in os.fsencode(path)) + '"'
    # Without a trailing tab, both programs would end a name at its first space.
    return f"{path}\t" if re.search(r"\s", path) else path


def _quoted(byte: int) -> str:
    letter = chr(byte)
    if letter in '"\\':
        return "\\" + letter
    return letter if 0x20 <= byte < 0x7F else f"\\{byte:03o}"
