"""Collect the calls of a step during recording, filtered by globs."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final

import torch

from jumar.ground.errors import UserError, did_you_mean
from jumar.precision.dumps.dump import Call, Kind, Phase, Statistics
from jumar.precision.recording.contents import RecordedValue

_PLAIN: Final = (bool, int, float, str, torch.dtype, torch.device, torch.layout, type(None))


@dataclass(slots=True)
class Entry:
    """A call whose values are still being collected; see `Call`."""

    kind: Kind
    op: str
    layer: str
    phase: Phase
    number: int
    cann: str = ""
    values: list[RecordedValue] = field(default_factory=list)
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def call(self, rows: list[Statistics]) -> Call:
        """Return the call, given the statistics of all rows."""
        return Call(
            kind=self.kind,
            op=self.op,
            layer=self.layer,
            number=self.number,
            phase=self.phase,
            values=tuple(value.value(rows) for value in self.values),
            arguments={name: _text(argument) for name, argument in self.arguments.items()},
            cann=self.cann,
        )


class Calls:
    """The calls of a step, in the order of execution.

    Args:
        ops: Globs of the ops to record; empty for all.
        layers: Globs of the layers to record; empty for all.

    Attributes:
        entries: The recorded calls.
    """

    def __init__(self, ops: Sequence[str] = (), layers: Sequence[str] = ()) -> None:
        self._ops, self._layers = tuple(ops), tuple(layers)
        self._numbers: Counter[tuple[str, str, str, str]] = Counter()
        self._seen_ops: set[str] = set()
        self._seen_layers: set[str] = set()
        self.entries: list[Entry] = []

    def clear(self) -> None:
        """Forget the previous step."""
        self.entries.clear()
        self._numbers.clear()

    def entry(
        self, kind: Kind, op: str, layer: str, phase: Phase, *, names: Sequence[str] = ()
    ) -> Entry | None:
        """Add a call; None if it is filtered out.

        Args:
            kind: Kind of call.
            op: See `Call.op`.
            layer: See `Call.layer`.
            phase: The part of the step.
            names: Other names of an op that a glob may match, its CANN type first.
        """
        if self._layers:
            self._seen_layers.add(layer)
            if not _matches((layer,), self._layers):
                return None
        if self._ops and kind == "op":
            self._seen_ops.update((op, *names))
            if not _matches((op, *names), self._ops):
                return None
        key = (kind, op, layer, phase)
        entry = Entry(kind, op, layer, phase, self._numbers[key], names[0] if names else "")
        self._numbers[key] += 1
        self.entries.append(entry)
        return entry

    def check_globs(self) -> None:
        """Check that every glob matched something in the step.

        Raises:
            UserError: A glob matched nothing.
        """
        for option, globs, names in (
            ("--ops", self._ops, self._seen_ops),
            ("--layers", self._layers, self._seen_layers),
        ):
            for glob in globs:
                if not any(fnmatchcase(name, glob) for name in names):
                    known = sorted(filter(None, names))
                    more = f" and {len(known) - 20} more" if len(known) > 20 else ""
                    examples = f"{', '.join(known[:20])}{more}"
                    raise UserError(
                        f"'{glob}' matches nothing in the step",
                        where=option,
                        todo=f"{did_you_mean(glob, names)}The step contains {examples}.",
                    )


def _matches(names: Sequence[str], globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for name in names for glob in globs)


def _text(argument: object) -> str:
    """Return an argument that is not a tensor as text, without memory addresses."""
    if isinstance(argument, (list, tuple)):
        return f"[{', '.join(map(_text, _items(argument)))}]"
    return str(argument) if isinstance(argument, _PLAIN) else type(argument).__name__


def _items(argument: Any) -> Iterator[object]:
    return iter(argument)
