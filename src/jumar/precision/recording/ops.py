"""Records every aten op of a step, forward and backward, below autograd and autocast.

Views and other ops that move no data (`view`, `t`, `expand`, `detach`, `alias`) are left out: their
outputs have the content of their inputs. So are ops that leave memory uninitialised (`empty`);
their tensors have no statistics before something is written to them. What an optimizer computes in
its step is recorded as parameters, not as ops.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from jumar.precision.recording.calls import Calls, Entry
from jumar.precision.recording.cann import cann_type
from jumar.precision.recording.contents import Contents
from jumar.precision.recording.layers import Layers

_MOVES_NOTHING: Final = frozenset({"_unsafe_view", "lift_fresh", "lift", "_reshape_copy"})
_SILENT: Final = {
    name: {3: "running_mean", 4: "running_var"}
    for name in ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm")
}
"""Arguments that an op writes to although its schema does not say so."""


@dataclass(frozen=True, kw_only=True)
class AboutOp:
    """Facts from an op's schema.

    Attributes:
        name: With namespace and overload.
        names: Its CANN type, then how op lists name it.
        arguments: Names of its arguments.
        written: Arguments that it writes to, by position.
        is_recorded: Whether it computes something.
        is_blank: Whether its outputs are uninitialised.
        is_copy: Whether its output has the content of its last tensor, if the dtype is the same.
    """

    name: str
    names: tuple[str, ...]
    arguments: tuple[str, ...]
    written: Mapping[int, str]
    is_recorded: bool
    is_blank: bool
    is_copy: bool


class OpRecorder(TorchDispatchMode):
    """Records ops while it is entered.

    Args:
        calls: Receives the recorded calls.
        contents: Measures tensors.
        layers: Tracks the running layer.

    Attributes:
        is_paused: Whether recording is paused.
    """

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Whether torch wraps every call for its compiler, which is off while we record."""
        return False

    def __init__(self, calls: Calls, contents: Contents, layers: Layers) -> None:
        super().__init__()
        self._calls, self._contents, self._layers = calls, contents, layers
        self.is_paused = False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run an op; record its inputs and outputs."""
        del types
        options = kwargs or {}
        if self.is_paused or not isinstance(func, torch._ops.OpOverload):
            return func(*args, **options)
        about = about_op(func)
        phase, layer = self._layers.current()
        entry = (
            self._calls.entry("op", about.name, layer, phase, names=about.names)
            if about.is_recorded
            else None
        )
        if entry is not None:
            self._take(entry, about, args, options)
        result = func(*args, **options)
        written = _written(about, args, options)
        for _, tensor in written:
            self._contents.changed(tensor)
        if entry is not None:
            if about.is_copy:
                source = args[1] if about.written and len(args) > 1 else args[0]
                self._contents.copied(source, result, is_written=bool(written))
            self._give(entry, result, written)
        elif about.is_blank:
            for _, tensor in _tensors(result):
                self._contents.blank(tensor)
        return result

    def _take(
        self, entry: Entry, about: AboutOp, args: Sequence[Any], options: Mapping[str, Any]
    ) -> None:
        see, plain = self._contents.see, dict[str, Any]()
        for position, value in enumerate(args):
            if isinstance(value, Tensor):
                entry.values.append(see("input", str(position), value))
            elif not _add_list(entry, see, str(position), value):
                plain[about.arguments[position]] = value
        for name, value in options.items():
            if isinstance(value, Tensor):
                entry.values.append(see("input", name, value))
            elif value is not None and not _add_list(entry, see, name, value):
                plain[name] = value
        entry.arguments = plain

    def _give(self, entry: Entry, result: Any, written: Sequence[tuple[str, Tensor]]) -> None:
        see = self._contents.see
        outputs = list(_tensors(result))
        written_ids = {id(tensor) for _, tensor in written}
        entry.values += [
            see("output", name, tensor, is_written=id(tensor) in written_ids)
            for name, tensor in outputs
        ]
        output_ids = {id(tensor) for _, tensor in outputs}
        entry.values += [
            see("output", name, tensor, is_written=True)
            for name, tensor in written
            if id(tensor) not in output_ids
        ]


def _add_list(entry: Entry, see: Callable[..., Any], name: str, value: Any) -> bool:
    """Record a list of tensors; returns False if it is something else."""
    if not isinstance(value, (list, tuple)) or not any(isinstance(e, Tensor) for e in value):
        return False
    entry.values += [
        see("input", f"{name}.{index}", item)
        for index, item in enumerate(value)
        if isinstance(item, Tensor)
    ]
    return True


def _tensors(result: Any) -> Iterator[tuple[str, Tensor]]:
    """The tensors that an op returned."""
    if isinstance(result, Tensor):
        yield "0", result
    elif isinstance(result, (list, tuple)):
        for index, item in enumerate(result):
            for name, tensor in _tensors(item):
                yield f"{index}.{name}" if isinstance(item, (list, tuple)) else str(index), tensor


def _written(
    about: AboutOp, args: Sequence[Any], options: Mapping[str, Any]
) -> list[tuple[str, Tensor]]:
    """The tensors that an op has written to."""
    if not about.written:
        return []
    tensors: list[tuple[str, Tensor]] = []
    for position, name in about.written.items():
        value = args[position] if position < len(args) else options.get(name)
        if isinstance(value, Tensor):
            tensors.append((name, value))
        elif isinstance(value, (list, tuple)):
            tensors += [(f"{name}.{number}", item) for number, item in enumerate(value)]
    return tensors


@cache
def about_op(func: Any) -> AboutOp:
    """What the schema of an op says."""
    schema: Any = func._schema
    packet = schema.name.partition("::")[2]
    written = {
        position: argument.name
        for position, argument in enumerate(schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    } | _SILENT.get(packet, {})
    gives = [returned for returned in schema.returns if "Tensor" in str(returned.type)]
    is_view = bool(gives) and all(
        returned.alias_info is not None and not returned.alias_info.is_write for returned in gives
    )
    is_blank = packet.startswith(("empty", "new_empty"))
    op = packet if not schema.overload_name else f"{packet}.{schema.overload_name}"
    moves_nothing = is_view or is_blank or packet in _MOVES_NOTHING
    return AboutOp(
        name=str(func),
        names=(cann_type(op), op, packet),
        arguments=tuple(argument.name for argument in schema.arguments),
        written=written,
        is_recorded=(bool(gives) or bool(written)) and not moves_nothing,
        is_blank=is_blank,
        is_copy=packet in ("clone", "copy_"),
    )
