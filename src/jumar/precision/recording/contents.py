"""Measure statistics of tensors, once for all ops that use them.

Most inputs of an op are outputs of an earlier one. Statistics are cached by storage, position in it
and version counter, and discarded as soon as an op writes to the storage. A storage is identified
by its address, which a weak reference keeps from being reused.
"""

import functools
import operator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from jumar.precision.dumps.digest import digest_of
from jumar.precision.dumps.dump import Role, Statistics, Value, dtype_name
from jumar.precision.dumps.shards import View
from jumar.precision.dumps.tensor_file import STORABLE
from jumar.precision.recording.statistics import Meter, is_dense

_KEYS: Final = (
    *("Python", "PythonTLSSnapshot", "ADInplaceOrView"),
    *(f"{kind}{device}" for kind in ("Autograd", "Autocast") for device in ("CPU", "CUDA")),
    *("AutogradPrivateUse1", "AutocastPrivateUse1", "AutogradOther"),
)


_EXCLUDED: Final[Any] = functools.reduce(
    operator.or_,
    (torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, name)) for name in _KEYS),
)
"""Dispatch keys excluded while measuring: autograd, autocast and the recorder itself."""


def unrecorded() -> Any:
    """Return a context in which ops are neither recorded nor differentiated nor cast."""
    return torch._C._ExcludeDispatchKeyGuard(_EXCLUDED)


class RecordedValue(NamedTuple):
    """A tensor of a call, whose statistics may still be on the device.

    Attributes:
        row: The number of the row with its statistics; None if it has none.
        tensor: The key of its copy; None if there is none.
        digest: See `Value.digest`.
    """

    role: Role
    name: str
    dtype: str
    shape: tuple[int, ...]
    row: int | None
    tensor: str | None
    digest: str | None

    def value(self, rows: list[Statistics]) -> Value:
        """Return the value, given the statistics of all rows."""
        return Value(
            role=self.role,
            name=self.name,
            dtype=self.dtype,
            shape=self.shape,
            statistics=None if self.row is None else rows[self.row],
            tensor=self.tensor,
            digest=self.digest,
        )


@dataclass(slots=True)
class _Facts:
    """Cached facts about a storage.

    Attributes:
        reference: Keeps the storage's address from being reused.
        is_blank: Whether nothing has been written to the storage.
        rows: Numbers of rows of statistics by `_elements`.
        copies: Names of copies by position, shape and strides.
        bases: Names of the copies that store the elements of views, by `_elements`.
        digests: Hashes by `_elements` and the order of the elements.
    """

    reference: StorageWeakRef
    is_blank: bool = False
    rows: dict[tuple[Any, ...], int] = field(default_factory=dict)
    copies: dict[tuple[Any, ...], str] = field(default_factory=dict)
    bases: dict[tuple[Any, ...], str] = field(default_factory=dict)
    digests: dict[tuple[Any, ...], str] = field(default_factory=dict)


class Contents:
    """Measures the tensors of a step and optionally copies them to the host.

    Args:
        meter: Measures statistics.
        keeps_tensors: Whether tensors are copied.
        sample: Maximum number of elements copied per tensor, evenly spaced; 0 for all.
        max_bytes: Maximum size of the copies; further tensors are counted but not copied, so that
            the total size is known.
        digests: Whether tensors are hashed, each as soon as it is used.

    Attributes:
        tensors: The copies by name.
        views: Tensors whose elements are in another copy, in another shape or order.
        size: Size of all copies in bytes, including those that exceeded the limit.
    """

    def __init__(
        self, meter: Meter, *, keeps_tensors: bool, sample: int, max_bytes: float, digests: bool
    ) -> None:
        self._meter, self._digests = meter, digests
        self._keeps_tensors, self._sample, self._max_bytes = keeps_tensors, sample, max_bytes
        self._facts: dict[int, _Facts] = {}
        self.tensors: dict[str, Tensor] = {}
        self.views: dict[str, View] = {}
        self.size = 0

    def record(
        self, role: Role, name: str, tensor: Tensor, *, is_written: bool = False
    ) -> RecordedValue:
        """Measure a tensor in its current state, unless already done.

        Args:
            role: Its role in the call.
            name: Its name in the call.
            tensor: The tensor.
            is_written: Whether the call has written to it, so that autograd will raise its version.
        """
        row: int | None = None
        copy: str | None = None
        digest: str | None = None
        if _is_plain(tensor):
            facts = self._facts_of(tensor)
            if not facts.is_blank:
                version = _version(tensor) + is_written
                row = self._row(tensor, facts, version)
                copy = self._copy(tensor, facts, version) if self._keeps_tensors else None
                digest = self._digest(tensor, facts, version) if self._digests else None
        dtype, shape = dtype_name(tensor.dtype), tuple(tensor.shape)
        return RecordedValue(role, name, dtype, shape, row, copy, digest)

    def copied(self, source: Tensor, target: Tensor, *, is_written: bool) -> None:
        """Record that an op has copied a tensor, unless it was cast or changed its shape.

        Args:
            source: Source of the elements; already measured.
            target: The copy.
            is_written: As in `record`.
        """
        if (
            source.dtype == target.dtype
            and source.shape == target.shape
            and _is_plain(source)
            and _is_plain(target)
            and not self._facts_of(source).is_blank
        ):
            row = self._facts_of(source).rows.get(_elements(source, _version(source)))
            if row is not None:
                key = _elements(target, _version(target) + is_written)
                self._facts_of(target).rows[key] = row

    def changed(self, tensor: Tensor) -> None:
        """Discard the cache of a tensor, because an op has written to it."""
        if _is_plain(tensor):
            self._facts.pop(tensor.untyped_storage()._cdata, None)

    def blank(self, tensor: Tensor) -> None:
        """Record that a tensor is uninitialised."""
        if _is_plain(tensor):
            self._facts_of(tensor).is_blank = True

    def forget(self) -> None:
        """Discard all caches, because something else may have changed the tensors."""
        self._facts.clear()

    def clear(self) -> None:
        """Forget the step."""
        self._facts.clear()
        self.tensors, self.views, self.size = {}, {}, 0

    def _facts_of(self, tensor: Tensor) -> _Facts:
        storage = tensor.untyped_storage()
        facts = self._facts.get(storage._cdata)
        if facts is None:
            facts = self._facts[storage._cdata] = _Facts(StorageWeakRef(storage))
        return facts

    def _row(self, tensor: Tensor, facts: _Facts, version: int) -> int:
        key = _elements(tensor, version)
        row = facts.rows.get(key)
        if row is None:
            with unrecorded():
                row = facts.rows[key] = self._meter.measure(tensor)
        return row

    def _digest(self, tensor: Tensor, facts: _Facts, version: int) -> str:
        key = _elements(tensor, version)
        if not tensor.is_contiguous():
            key = (*key, tuple(tensor.shape), tensor.stride())
        digest = facts.digests.get(key)
        if digest is None:
            with unrecorded():
                digest = facts.digests[key] = digest_of(tensor)
        return digest

    def _copy(self, tensor: Tensor, facts: _Facts, version: int) -> str | None:
        shape, stride = tuple(tensor.shape), tensor.stride()
        key = (tensor.storage_offset(), tensor.dtype, version, shape, stride)
        name = facts.copies.get(key)
        if name is not None or tensor.dtype not in STORABLE:
            return name
        name = facts.copies[key] = f"{len(self.tensors) + len(self.views):06d}"
        is_sampled = 0 < self._sample < tensor.numel()
        elements = _elements(tensor, version)
        base = facts.bases.setdefault(elements, name)
        if base != name and not is_sampled and len(elements) == _DENSE:
            self.views[name] = View(base, shape, stride)
            return name
        number = self._sample if is_sampled else tensor.numel()
        self.size += number * tensor.element_size()
        with unrecorded():
            if self.size > self._max_bytes:
                tensor = tensor.new_empty(0)
            elif is_sampled:
                indices = torch.arange(number, device=tensor.device) * tensor.numel() // number
                tensor = tensor.reshape(-1)[indices]
            elif len(elements) == _DENSE and not tensor.is_contiguous():
                # Store the elements in memory order, so that other tensors can be views of them.
                self.views[name] = View(f"{name}.flat", shape, stride)
                facts.bases[elements] = name = f"{name}.flat"
                tensor = tensor.as_strided((number,), (1,))
            self.tensors[name] = tensor.to("cpu", memory_format=torch.contiguous_format, copy=True)
        return facts.copies[key]


_DENSE: Final = 4
"""Length of the `_elements` key of a dense tensor."""


def _elements(tensor: Tensor, version: int) -> tuple[Any, ...]:
    """Return a key that tensors with the same elements share, regardless of their shapes."""
    if tensor.is_contiguous() or is_dense(tensor):
        return tensor.storage_offset(), tensor.dtype, version, tensor.numel()
    return tensor.storage_offset(), tensor.dtype, version, tensor.shape, tensor.stride()


def _is_plain(tensor: Tensor) -> bool:
    """Whether a tensor's elements are in a storage: not sparse, quantized, nested or meta."""
    return (
        type(tensor) in _PLAIN
        and tensor.layout is torch.strided
        and not tensor.is_meta
        and not tensor.is_quantized
        and not tensor.is_nested
    )


def _version(tensor: Tensor) -> int:
    """Return the version counter, which autograd raises on each write; -1 for inference tensors."""
    return -1 if tensor.is_inference() else tensor._version


_PLAIN: Final = (Tensor, torch.nn.Parameter)
