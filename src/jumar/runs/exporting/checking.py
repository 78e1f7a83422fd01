"""Check that a written file computes the same as the network, on real inputs in two batches."""

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
"""Runs a file on batches of inputs, in order, and returns the outputs of each."""

_MAX_ROUNDING_RATIO = 4
"""Largest ratio of a file's difference from float64 to that of the network in float32."""
_MAX_OTHER_CODES = 1e-3
"""Largest fraction of codes that may differ, since two codebook vectors may be equally near."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The difference between a file's output and the network's, on one batch.

    Attributes:
        output: Name of the output.
        shape: Shape of the output.
        difference: Largest absolute difference, from float64 if `rounding` is set; for integers,
            the fraction that differs.
        allowed: The largest accepted difference.
        largest: The largest magnitude of the network's own output.
        is_whole: Whether the output consists of integers.
        rounding: Largest difference between the network in float32 and in float64; None if the
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
        """Whether the difference is accepted; NaN never is."""
        return self.difference <= self.allowed

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape))
        if self.is_whole:
            percent, allowed = 100 * self.difference, 100 * self.allowed
            return (
                f"  {self.output} {shape}: {percent:.2g} % of the codes differ, "
                f"allowed {allowed:g} %"
            )
        text = (
            f"  {self.output} {shape}: largest difference {self.difference:.2g} "
            f"of values up to {self.largest:.3g}, allowed {self.allowed:.2g}"
        )
        if self.rounding is None:
            return text
        return f"{text} (from float64; {self.rounding:.2g} for the network itself)"


def batches_to_check(exportable: Exportable, real: tuple[Tensor, ...]) -> list[tuple[Tensor, ...]]:
    """Return batches of two sizes, and one of other lengths if the network accepts them.

    Args:
        exportable: The network.
        real: Inputs from the run's data; empty if there are none.
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
    """Run a file and the network on the same batches and compare their outputs.

    Args:
        exportable: The network to compare with.
        batches: Its inputs.
        run: Runs the file.

    Raises:
        UserError: An output differs from the network's by more than the tolerance.
    """
    outputs = run([tuple(tensor.numpy() for tensor in batch) for batch in batches])
    comparisons: list[Comparison] = []
    for batch, actual in zip(batches, outputs, strict=True):
        expected = outputs_of(exportable.network, batch)
        of_batch = [
            _compared(port.name, reference, output, exportable.tolerance)
            for port, reference, output in zip(exportable.outputs, expected, actual, strict=True)
        ]
        if not all(comparison.is_close for comparison in of_batch):
            exact = _in_float64(exportable.network, batch)
            of_batch = [
                comparison
                if comparison.is_close or comparison.is_whole
                else _compared_in_float64(comparison, reference, output, exact_output)
                for comparison, reference, output, exact_output in zip(
                    of_batch, expected, actual, exact, strict=True
                )
            ]
        comparisons += of_batch
    if not all(comparison.is_close for comparison in comparisons):
        raise UserError(
            "the file does not compute the same as the network, and was not kept",
            where="check",
            todo="\n".join(str(comparison).strip() for comparison in comparisons)
            + f"\nPyTorch {torch.__version__} on {platform.machine()}; another release of the "
            "exporting packages may do better.",
        )
    return comparisons


def _in_float64(network: nn.Module, batch: tuple[Tensor, ...]) -> list[Tensor]:
    inputs = tuple(tensor.double() if tensor.is_floating_point() else tensor for tensor in batch)
    return outputs_of(copy.deepcopy(network).double(), inputs)


def _compared_in_float64(
    comparison: Comparison, expected: Tensor, output: Array, exact: Tensor
) -> Comparison:
    """Compare an output with the network in float64, relative to the network's own rounding.

    If values grow over many layers, as in a network that has hardly been trained, any two orders of
    summation differ by more than the tolerance.
    """
    true = exact.double().numpy()
    rounding = float(np.abs(expected.double().numpy() - true).max(initial=0))
    without_padding = output[tuple(map(slice, true.shape))]
    difference = float(np.abs(without_padding.astype(np.float64) - true).max(initial=0))
    return replace(
        comparison, difference=difference, allowed=_MAX_ROUNDING_RATIO * rounding, rounding=rounding
    )


def outputs_of(network: nn.Module, inputs: tuple[Tensor, ...]) -> list[Tensor]:
    """Return the outputs of a network as a list."""
    with torch.no_grad():
        outputs = network(*inputs)
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def _compared(name: str, reference: Tensor, output: Array, tolerance: float) -> Comparison:
    expected, actual = reference.numpy(), output
    for axis, length in enumerate(expected.shape):
        # The network omits padding beyond the longest sample; a file outputs zeros there.
        surplus = np.take(actual, np.arange(length, actual.shape[axis]), axis=axis)
        if actual.shape[axis] < length or surplus.any():
            shape, expected_shape = list(output.shape), list(expected.shape)
            raise UserError(
                f"the file's '{name}' is {shape} instead of {expected_shape}", where="check"
            )
        actual = np.take(actual, np.arange(length), axis=axis)
    largest = float(np.abs(expected.astype(np.float64)).max(initial=0))
    if not reference.is_floating_point():
        difference, allowed = float((expected != actual).mean()), _MAX_OTHER_CODES
    else:
        values = expected.astype(np.float64), actual.astype(np.float64)
        difference = float(np.abs(values[0] - values[1]).max(initial=0))
        allowed = tolerance * max(largest, 1e-6)
    return Comparison(
        output=name,
        shape=tuple(expected.shape),
        difference=difference,
        allowed=allowed,
        largest=largest,
        is_whole=not reference.is_floating_point(),
    )
