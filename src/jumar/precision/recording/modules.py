"""Record the modules of a step: inputs and outputs of the forward pass, and their gradients.

Gradients are recorded by hooks on tensors. A backward hook of a module would insert a node into the
graph, which changes the order in which gradients are added, and thus their bits. As a consequence,
the gradient of an input with several users is the sum over all of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.utils.hooks import RemovableHandle

from jumar.precision.dumps.dump import Role
from jumar.precision.recording.calls import Calls, Entry
from jumar.precision.recording.contents import Contents, RecordedValue
from jumar.precision.recording.layers import Layers


@dataclass(eq=False, slots=True)
class _Running:
    """A call of a module.

    Attributes:
        path: The module's path; None if it is not recorded.
        inputs: The recorded inputs.
        backward: The backward call, once a gradient has been computed.
    """

    path: str | None
    op: str
    inputs: list[RecordedValue]
    backward: Entry | None = None


class ModuleRecorder:
    """Records modules from `install` to `remove`.

    Args:
        calls: Receives the recorded calls.
        contents: Measures tensors.
        layers: Names modules, and tracks the running one.
    """

    def __init__(self, calls: Calls, contents: Contents, layers: Layers) -> None:
        self._calls, self._contents, self._layers = calls, contents, layers
        self._handles: list[RemovableHandle] = []
        self._running: list[_Running] = []
        self._awaited: dict[tuple[int, int], list[tuple[_Running, Role, str]]] = {}

    def install(self) -> None:
        """Hook into all modules."""
        self._handles = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after, with_kwargs=True, always_call=True),
        ]

    def remove(self) -> None:
        """Remove the hooks on modules; hooks on tensors remain, but have no effect."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._running.clear()
        self._awaited = {}

    def _before(self, module: nn.Module, arguments: tuple[Any, ...]) -> None:
        path = self._layers.path_of(module)
        running = _Running(path, type(module).__name__, [])
        self._running.append(running)
        if path is None:
            return
        self._layers.enter(path)
        for name, tensor in tensors_in(arguments):
            running.inputs.append(self._contents.record("input", name, tensor))
            self._await(running, "output", name, tensor)

    def _after(self, module: nn.Module, arguments: Any, *keywords_and_result: Any) -> None:
        """Record outputs; called with keywords and result, or the result alone after an error."""
        del module, arguments
        if not self._running:  # The forward pass started before the step.
            return
        running = self._running.pop()
        if running.path is None:
            return
        self._layers.stack.pop()
        if len(keywords_and_result) < 2:
            return
        keywords, result = keywords_and_result
        entry = self._calls.entry("module", running.op, running.path, "forward")
        if entry is None:
            return
        entry.values += running.inputs
        record = self._contents.record
        entry.values += [record("input", name, tensor) for name, tensor in tensors_in(keywords)]
        for name, tensor in tensors_in(result):
            entry.values.append(record("output", name, tensor))
            self._await(running, "input", name, tensor)

    def _await(self, running: _Running, role: Role, name: str, tensor: Tensor) -> None:
        """Record the gradient of a tensor when it is computed, by one hook for all its modules."""
        node = tensor.grad_fn
        if node is None:
            return
        key = (node._sequence_nr(), tensor.output_nr)  # pyright: ignore[reportAttributeAccessIssue]
        if key not in self._awaited:
            self._awaited[key] = []
            tensor.register_hook(partial(self._gradient, self._awaited, key))
        self._awaited[key].append((running, role, name))

    def _gradient(
        self,
        awaited: Mapping[tuple[int, int], Sequence[tuple[_Running, Role, str]]],
        key: tuple[int, int],
        gradient: Tensor,
    ) -> None:
        if awaited is not self._awaited:  # The step has ended.
            return
        # If a tensor is an output of several modules, the outermost is first in the backward pass.
        for running, role, name in reversed(awaited[key]):
            if running.backward is None:
                assert running.path is not None
                running.backward = self._calls.entry("module", running.op, running.path, "backward")
            if running.backward is not None:
                recorded = self._contents.record(role, name, gradient)
                position = len(running.backward.values) if role == "output" else 0
                running.backward.values.insert(position, recorded)


def tensors_in(value: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors in inputs or outputs, each with its position, after that of the value."""
    if isinstance(value, Tensor):
        yield name or "0", value
        return
    for index, item in _items(value):
        yield from tensors_in(item, f"{name}.{index}" if name else str(index))


def _items(value: Any) -> Iterable[tuple[object, Any]]:
    if isinstance(value, (list, tuple)):
        return enumerate(value)
    if isinstance(value, Mapping):
        return value.items()
    if is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in fields(value)]
    return ()
