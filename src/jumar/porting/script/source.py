"""Decode a script and encode it again, leaving everything that no edit touches unchanged."""

import codecs
import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from jumar.porting.edits import Place, Text

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"^[ \t\f]*(?:[#\r\n]|$)")


class Unreadable(Exception):
    """A file that cannot be read as a script; `note` says why."""

    def __init__(self, note: Text) -> None:
        super().__init__(note.en)
        self.note = note


@dataclass(frozen=True)
class SourceText:
    """The text of a script without its byte order mark, with its original line endings."""

    text: str
    encoding: str = "utf-8"
    bom: bool = False

    def encoded(self, text: str) -> bytes:
        """The bytes of a text in this file's encoding."""
        return (codecs.BOM_UTF8 if self.bom else b"") + text.encode(self.encoding)


def decode(content: bytes) -> SourceText:
    """Read a script as Python does: byte order mark, then coding cookie, then UTF-8.

    Raises:
        Unreadable: It is binary, or not in the encoding it declares.
    """
    if b"\0" in content:
        raise Unreadable(Text(en="contains NUL bytes: not a script", zh="含有 NUL 字节，不是脚本"))
    bom = content.startswith(codecs.BOM_UTF8)
    body = content[len(codecs.BOM_UTF8) :] if bom else content
    encoding = _cookie(body) or "utf-8"
    try:
        encoding = codecs.lookup(encoding).name
        text = body.decode(encoding)
        # A codec that does not round-trip (UTF-7, rot13) cannot write the same file back.
        is_reversible = text.encode(encoding) == body
    except (LookupError, UnicodeError, TypeError, AttributeError) as error:
        raise Unreadable(
            Text(
                en=f"cannot be read as {encoding}: {error}",
                zh=f"无法按 {encoding} 编码读取：{error}",
            )
        ) from error
    if not is_reversible:
        raise Unreadable(
            Text(en=f"cannot be written back as {encoding}", zh=f"无法按 {encoding} 编码写回")
        )
    return SourceText(text, encoding, bom)


def _cookie(body: bytes) -> str:
    lines = re.split(rb"\r\n|\r|\n", body[:4096], maxsplit=2)
    for line in lines[:2]:
        match = _COOKIE.match(line)
        if match:
            return match[1].decode("ascii")
        if not _BLANK.match(line):
            return ""
    return ""


_BLOCK = re.compile(
    r"^(?P<outer>[ \t]*)(?:async|class|def|elif|else|except|finally|for|if|try|while|with)\b"
    r"[^\r\n]*:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n)(?P=outer)(?P<step>[ \t]+)\S",
    re.MULTILINE,
)
"""A compound statement and the first line of its block; `Args:` in a docstring does not match."""
_MAX_BLOCKS = 500
"""Maximum number of blocks examined; several, since one may be an example within a string."""


class Lines:
    r"""The lines of a text, split as Python's parser splits them.

    Args:
        text: With line endings `\n`, `\r\n` or `\r`. Unlike `str.splitlines`, the parser does not
            end a line at a form feed.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]

    @cached_property
    def newline(self) -> str:
        r"""The line ending of the first line; `\n` if there is none."""
        match = re.search(r"\r\n|\r|\n", self.text)
        return match[0] if match else "\n"

    @cached_property
    def indentation(self) -> str:
        """The most common indentation of a block; four spaces if there is none."""
        steps = Counter(match["step"] for match in islice(_BLOCK.finditer(self.text), _MAX_BLOCKS))
        step = next((step for step, _ in steps.most_common(1)), "")
        return step if step == "\t" or len(step) in (2, 3, 4, 8) else "    "

    @cached_property
    def ascii(self) -> bool:
        return self.text.isascii()

    def offset(self, line: int, byte_column: int) -> int:
        """The character offset of a parser position: line counted from 1, column in UTF-8 bytes."""
        start = self.starts[line - 1]
        if self.ascii:
            return start + byte_column
        # The parser counts UTF-8 bytes regardless of the file's encoding.
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        content = self.text[start:end]
        if content.isascii():
            return start + byte_column
        return start + len(content.encode()[:byte_column].decode(errors="ignore"))

    def place(self, offset: int) -> Place:
        """Line and column, from 1, of a character offset."""
        line = bisect_right(self.starts, offset)
        return Place(line=line, column=offset - self.starts[line - 1] + 1)

    def line_start(self, offset: int) -> int:
        return self.starts[bisect_right(self.starts, offset) - 1]

    def line_end(self, offset: int) -> int:
        """Offset after the end of the line that contains an offset."""
        line = bisect_right(self.starts, offset)
        return self.starts[line] if line < len(self.starts) else len(self.text)

    def indent(self, offset: int) -> str:
        """The white space at the start of the line that contains an offset."""
        match = re.compile(r"[ \t\f]*").match(self.text, self.line_start(offset))
        return match[0] if match else ""
