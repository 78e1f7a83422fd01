"""Record the aten ops of a step, forward and backward, below autograd and autocast.

Views and other ops that move no data (`view`, `t`, `expand`, `detach`, `alias`) are omitted: their
outputs have the content of their inputs. Ops that leave memory uninitialised (`empty`) are omitted,
too, and their tensors have no statistics until something is written to them. Optimizer steps are
recorded as parameters, not as ops.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
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
from jumar.precision.recording.modules import tensors_in

_MOVES_NOTHING: Final = frozenset({"_unsafe_view", "lift_fresh", "lift", "_reshape_copy"})
_UNDECLARED_WRITES: Final = {
    name: {3: "running_mean", 4: "running_var"}
    for name in ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm")
}
"""Arguments that an op writes to, although its schema does not declare it."""


@dataclass(frozen=True, kw_only=True)
class AboutOp:
    """Facts about an op, from its schema.

    Attributes:
        name: Its name with namespace and overload.
        names: Its CANN type and its names in op lists.
        arguments: Names of its arguments.
        written: Names of the arguments that it writes to, by position.
        is_recorded: Whether it computes something.
        is_blank: Whether its outputs are uninitialised.
        is_copy: Whether its output is a copy of its last tensor, if the dtype is the same.
    """

    name: str
    names: tuple[str, ...]
    arguments: tuple[str, ...]
    written: Mapping[int, str]
    is_recorded: bool
    is_blank: bool
    is_copy: bool


class OpMode(TorchDispatchMode):
    """Base of the modes that see every op of a step.

    Attributes:
        is_paused: Whether ops run without being seen.
    """

    supports_higher_order_operators = True
    is_paused = False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keep torch from disabling its compiler in each call: within the mode it is off anyway."""
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run an op, seen by `run` unless this mode is paused."""
        del types
        options = kwargs or {}
        if self.is_paused or not isinstance(func, torch._ops.OpOverload):
            return func(*args, **options)
        return self.run(func, about_op(func), args, options)

    @abstractmethod
    def run(
        self, func: Any, about: AboutOp, args: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        """Run an op and return its result."""


class OpRecorder(OpMode):
    """Records ops while it is entered.

    Args:
        calls: Receives the recorded calls.
        contents: Measures tensors.
        layers: Tracks the running layer.
    """

    def __init__(self, calls: Calls, contents: Contents, layers: Layers) -> None:
        super().__init__()
        self._calls, self._contents, self._layers = calls, contents, layers

    def run(
        self, func: Any, about: AboutOp, args: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        """Run an op and record its inputs and outputs."""
        phase, layer = self._layers.current()
        entry = (
            self._calls.entry("op", about.name, layer, phase, names=about.names)
            if about.is_recorded
            else None
        )
        if entry is not None:
            self._record_inputs(entry, about, args, options)
        result = func(*args, **options)
        written = _written(about, args, options)
        for _, tensor in written:
            self._contents.changed(tensor)
        if entry is not None:
            if about.is_copy:
                source = args[1] if about.written and len(args) > 1 else args[0]
                self._contents.copied(source, result, is_written=bool(written))
            self._record_outputs(entry, result, written)
        elif about.is_blank:
            for _, tensor in tensors_in(result):
                self._contents.blank(tensor)
        return result

    def _record_inputs(
        self, entry: Entry, about: AboutOp, args: Sequence[Any], options: Mapping[str, Any]
    ) -> None:
        plain: dict[str, Any] = {}
        named = [(str(number), about.arguments[number], arg) for number, arg in enumerate(args)]
        named += [(name, name, value) for name, value in options.items() if value is not None]
        for name, argument, value in named:
            tensors = [self._contents.record("input", *each) for each in tensors_in(value, name)]
            entry.values += tensors
            if not tensors:
                plain[argument] = value
        entry.arguments = plain

    def _record_outputs(
        self, entry: Entry, result: Any, written: Sequence[tuple[str, Tensor]]
    ) -> None:
        record = self._contents.record
        outputs = list(tensors_in(result))
        written_ids = {id(tensor) for _, tensor in written}
        entry.values += [
            record("output", name, tensor, is_written=id(tensor) in written_ids)
            for name, tensor in outputs
        ]
        output_ids = {id(tensor) for _, tensor in outputs}
        entry.values += [
            record("output", name, tensor, is_written=True)
            for name, tensor in written
            if id(tensor) not in output_ids
        ]


def _written(
    about: AboutOp, args: Sequence[Any], options: Mapping[str, Any]
) -> list[tuple[str, Tensor]]:
    """Return the tensors that an op has written to."""
    if not about.written:
        return []
    tensors: list[tuple[str, Tensor]] = []
    for position, name in about.written.items():
        value = args[position] if position < len(args) else options.get(name)
        tensors += tensors_in(value, name)
    return tensors


@cache
def about_op(func: Any) -> AboutOp:
    """Return facts about an op from its schema."""
    schema: Any = func._schema
    packet = schema.name.partition("::")[2]
    written = {
        position: argument.name
        for position, argument in enumerate(schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    } | _UNDECLARED_WRITES.get(packet, {})
    outputs = [output for output in schema.returns if "Tensor" in str(output.type)]
    is_view = bool(outputs) and all(
        output.alias_info is not None and not output.alias_info.is_write for output in outputs
    )
    is_blank = packet.startswith(("empty", "new_empty"))
    op = packet if not schema.overload_name else f"{packet}.{schema.overload_name}"
    moves_nothing = is_view or is_blank or packet in _MOVES_NOTHING
    return AboutOp(
        name=str(func),
        names=(cann_type(op), op, packet),
        arguments=tuple(argument.name for argument in schema.arguments),
        written=written,
        is_recorded=(bool(outputs) or bool(written)) and not moves_nothing,
        is_blank=is_blank,
        is_copy=packet in ("clone", "copy_"),
    )
