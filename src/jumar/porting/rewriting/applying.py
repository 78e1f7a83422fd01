"""Apply replacements to source code, and map offsets between the old and the new code."""

import ast
from bisect import bisect_right
from collections.abc import Iterable

from jumar.porting.rewriting.changes import Replacement, Rewrite
from jumar.porting.script.nodes import walk

_SIDES = ("close", "plain", "open")


class OffsetMap:
    """Maps offsets in the old code to offsets in the new code, and back.

    Args:
        replacements: In the order of `ordered`, without overlaps.
    """

    def __init__(self, replacements: list[Replacement]) -> None:
        self._old = [(change.start, change.end, len(change.text)) for change in replacements]
        self._new: list[tuple[int, int, int]] = []
        shift = 0
        for start, end, length in self._old:
            self._new.append((start + shift, start + shift + length, end - start))
            shift += length - (end - start)
        self._sides = [change.side for change in replacements]

    def forward(self, offset: int, *, end: bool = False, ahead: bool = False) -> int:
        """Map an offset in the old code to the new code.

        Text that opens or closes a wrapping belongs to the wrapped span.

        Args:
            offset: An offset in the old code.
            end: Whether it is the end of a span, not its start.
            ahead: Whether text inserted before the span, such as a new line before a statement,
                belongs to the span as well.
        """
        shift = 0
        for (start, stop, length), side in zip(self._old, self._sides, strict=True):
            if start > offset:
                break
            if start == stop == offset:
                if side == "close" or (side == "plain" and not (end or ahead)):
                    shift += length
                continue
            if start == offset and not end:
                break
            if stop <= offset:
                shift += length - (stop - start)
            else:
                # Within replaced text: return its start or its end.
                return start + shift + (length if end else 0)
        return offset + shift

    def backward(self, offset: int) -> int:
        """Map an offset in the new code to the old code; inserted text to its insertion point."""
        index = bisect_right(self._new, (offset, 1 << 60, 0)) - 1
        if index < 0:
            return offset
        _, stop, length = self._new[index]
        old = self._old[index][0]
        return old if offset < stop else old + length + (offset - stop)


def ordered(replacements: Iterable[Replacement]) -> list[Replacement]:
    """Sort replacements by position; at the same position, wider insertions are outside."""
    return sorted(
        replacements,
        key=lambda change: (
            change.start,
            change.end > change.start,
            _SIDES.index(change.side),
            change.width if change.side == "close" else -change.width,
        ),
    )


def applied(text: str, replacements: list[Replacement]) -> str:
    """Return the code with replacements, which must be ordered and must not overlap."""
    parts: list[str] = []
    position = 0
    for change in replacements:
        parts += [text[position : change.start], change.text]
        position = change.end
    return "".join([*parts, text[position:]])


def compatible(rewrites: list[Rewrite]) -> list[Rewrite]:
    """Keep only rewrites that do not change the same characters; earlier ones win.

    A rewrite within code that another one removes is dropped: it has nothing left to change.
    """
    accepted: list[Rewrite] = []
    accepted_replacements: list[Replacement] = []
    for candidate in rewrites:
        if not any(
            _clash(replacement, earlier)
            for replacement in candidate.replacements
            for earlier in accepted_replacements
        ):
            accepted.append(candidate)
            accepted_replacements += candidate.replacements
    return accepted


def emptied_blocks(
    tree: ast.Module, spans: dict[ast.stmt, tuple[int, int]], replacements: list[Replacement]
) -> list[Replacement]:
    """Put `pass` into each block whose statements are all removed."""
    removals = [
        change for change in replacements if change.text == "" and change.end > change.start
    ]
    if not removals:
        return replacements

    def removed(statement: ast.stmt) -> Replacement | None:
        start, end = spans[statement]
        return next(
            (change for change in removals if change.start <= start < end <= change.end), None
        )

    result = list(replacements)
    for node in walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(node, ast.Module) or not isinstance(block, list) or len(block) < 2:
                continue
            changes = [removed(statement) for statement in block]
            if all(change is not None for change in changes):
                first = changes[0]
                if first in result:
                    start, end = spans[block[0]]
                    result[result.index(first)] = Replacement(start=start, end=end, text="pass")
    return result


def _clash(first: Replacement, second: Replacement) -> bool:
    if first.start == first.end and second.start == second.end:
        # Two insertions at the same position are both kept, unless they are equal.
        return (
            first.start == second.start and first.text == second.text and first.side == second.side
        )
    if first.start == first.end:
        return second.start < first.start < second.end
    if second.start == second.end:
        return first.start < second.start < first.end
    return first.start < second.end and second.start < first.end
