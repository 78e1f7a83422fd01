"""Whether a written file computes what the network computes: on real inputs, in two batches."""

import copy
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jumar.ground.errors import UserError
from jumar.runs.exporting.network import Exportable

Array = NDArray[np.generic]
Runner = Callable[[Sequence[tuple[Array, ...]]], list[list[Array]]]
"""Runs a file on inputs, one batch after the other; the outputs of each."""

_TIMES_OWN = 4
"""How much further from float64 a file may be than the network's own float32."""
_MOST_OTHER_CODES = 1e-3
"""Fraction of codes that may differ, since two may be equally near."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The difference between a file's output and the network's, on one batch.

    Attributes:
        output: Its name.
        shape: Its shape.
        difference: Largest absolute difference; of whole numbers the share that differs. From
            float64 where `rounding` is given.
        allowed: The largest that is accepted.
        largest: The largest magnitude of the network's own output.
        is_whole: Whether the output is whole numbers.
        rounding: How far the network in float32 is from itself in float64; None where the
            tolerance was enough.
    """

    output: str
    shape: tuple[int, ...]
    difference: float
    allowed: float
    largest: float
    is_whole: bool = False
    rounding: float | None = None

    @property
    def is_close(self) -> bool:
        """Whether the difference is accepted; a NaN never is."""
        return self.difference <= self.allowed

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape))
        if self.is_whole:
            share, most = 100 * self.difference, 100 * self.allowed
            return (
                f"  {self.output} {shape}: {share:.2g} % of the numbers differ, allowed {most:g} %"
            )
        text = (
            f"  {self.output} {shape}: largest difference {self.difference:.2g} "
            f"of values up to {self.largest:.3g}, allowed {self.allowed:.2g}"
        )
        if self.rounding is None:
            return text
        return f"{text} (from float64, of which the network itself is {self.rounding:.2g} away)"


def batches_to_check(exportable: Exportable, real: tuple[Tensor, ...]) -> list[tuple[Tensor, ...]]:
    """Batches of two sizes, and one of other lengths if the network accepts them.

    Args:
        exportable: The network.
        real: Inputs of the run's data; empty where there are none.
    """
    axes = exportable.axes
    first = real or exportable.sample(**({"batch": 3} if "batch" in axes else {}))
    batches = [first]
    if "batch" in axes:
        batches.append(tuple(tensor[:1] for tensor in first))
    others = {name: axis.other for name, axis in axes.items() if name != "batch"}
    if others or "batch" not in axes:
        batches.append(exportable.sample(**others))
    return batches


def compare(
    exportable: Exportable, batches: Sequence[tuple[Tensor, ...]], run: Runner
) -> list[Comparison]:
    """Run a file and the network on batches.

    Args:
        exportable: The network without a file.
        batches: Its inputs.
        run: Runs the file.

    Raises:
        UserError: Any output is further from the network's than the tolerance.
    """
    outputs = run([tuple(tensor.numpy() for tensor in batch) for batch in batches])
    comparisons: list[Comparison] = []
    for batch, given in zip(batches, outputs, strict=True):
        expected = outputs_of(exportable.network, batch)
        of_batch = [
            _compared(port.name, reference, other, exportable.tolerance)
            for port, reference, other in zip(exportable.outputs, expected, given, strict=True)
        ]
        if not all(each.is_close for each in of_batch):
            exact = _in_float64(exportable.network, batch)
            of_batch = [
                each
                if each.is_close or each.is_whole
                else _beside_float64(each, reference, other, true)
                for each, reference, other, true in zip(
                    of_batch, expected, given, exact, strict=True
                )
            ]
        comparisons += of_batch
    if not all(each.is_close for each in comparisons):
        raise UserError(
            "the file does not compute what the network computes, and was not kept",
            where="check",
            todo="\n".join(str(each).strip() for each in comparisons)
            + f"\nPyTorch {torch.__version__} on {platform.machine()}; another release of the "
            "exporting packages may do better.",
        )
    return comparisons


def _in_float64(network: nn.Module, batch: tuple[Tensor, ...]) -> list[Tensor]:
    doubled = tuple(each.double() if each.is_floating_point() else each for each in batch)
    return outputs_of(copy.deepcopy(network).double(), doubled)


def _beside_float64(
    compared: Comparison, expected: Tensor, other: Array, exact: Tensor
) -> Comparison:
    """Compare an output with float64, if float32 alone loses more than the tolerance.

    A network whose values grow over many layers, such as one that has hardly been trained, differs
    between any two orders of summation; a file may lose a few times what the network loses itself.
    """
    true = exact.double().numpy()
    own = float(np.abs(expected.double().numpy() - true).max(initial=0))
    without_padding = other[tuple(map(slice, true.shape))]
    difference = float(np.abs(without_padding.astype(np.float64) - true).max(initial=0))
    return replace(compared, difference=difference, allowed=_TIMES_OWN * own, rounding=own)


def outputs_of(network: nn.Module, inputs: tuple[Tensor, ...]) -> list[Tensor]:
    """The outputs of a network."""
    with torch.no_grad():
        outputs = network(*inputs)
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def _compared(name: str, mine: Tensor, other: Array, tolerance: float) -> Comparison:
    expected, given = mine.numpy(), other
    for axis, length in enumerate(expected.shape):
        # The network leaves out padding at the end of the longest sample; a file gives 0 there.
        surplus = np.take(given, np.arange(length, given.shape[axis]), axis=axis)
        if given.shape[axis] < length or surplus.any():
            shape, wanted = list(other.shape), list(expected.shape)
            raise UserError(f"the file's '{name}' is {shape} instead of {wanted}", where="check")
        given = np.take(given, np.arange(length), axis=axis)
    largest = float(np.abs(expected.astype(np.float64)).max(initial=0))
    if not mine.is_floating_point():
        difference, allowed = float((expected != given).mean()), _MOST_OTHER_CODES
    else:
        both = expected.astype(np.float64), given.astype(np.float64)
        difference = float(np.abs(both[0] - both[1]).max(initial=0))
        allowed = tolerance * max(largest, 1e-6)
    return Comparison(
        output=name,
        shape=tuple(expected.shape),
        difference=difference,
        allowed=allowed,
        largest=largest,
        is_whole=not mine.is_floating_point(),
    )
