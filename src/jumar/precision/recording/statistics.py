"""Measure statistics of tensors, in as few passes over their elements as possible.

On the host, results can be read at once, so later passes depend on earlier ones: if the largest
magnitude is below float16's largest number, larger elements are not counted. NumPy computes
extremes and counts in two thirds of torch's time, but torch computes sums faster. On other devices,
nothing is read before `Meter.read`, which waits for the device once.
"""

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from jumar.precision.dumps.dump import Statistics

LARGEST: Final = 65504.0
NORMAL: Final = 2.0**-14
SUBNORMAL: Final = 2.0**-24
_BLOCK: Final = 1 << 17
"""Number of elements per block, so that a block stays in the cache for all passes."""
_ROW: Final = 256
"""Number of elements whose squares are added one by one, in several lanes."""
_DOT_ROWS: Final = getattr(np, "vecdot", None)
"""Available since NumPy 2.0; torch's pairwise sum of products is half as fast."""
_MIN_SQUARES: Final = 1e-30
"""Smaller sums of squares may have underflowed in float32."""
_EXACT: Final = (torch.float32, torch.float64)


class Meter:
    """Measures tensors on their device.

    Args:
        counts: Whether zeros and elements outside float16's range are counted too, which doubles
            the number of passes. NaN and infinities are always excluded from the other statistics.
    """

    def __init__(self, *, counts: bool) -> None:
        self._counts = counts
        self._rows: list[Statistics | _Pending] = []
        # Memory that all blocks reuse.
        self._float32 = torch.empty(_BLOCK)
        self._squares = torch.empty(_BLOCK)
        self._magnitudes: dict[Any, _Array] = {}
        self._mask = np.empty(_BLOCK, np.bool_)

    def measure(self, tensor: Tensor) -> int:
        """Measure a tensor in its current state and return the number of its row."""
        if tensor.is_complex():
            tensor = torch.view_as_real(tensor)
        if tensor.numel() == 0:
            self._rows.append(Statistics(count=0))
        elif tensor.device.type == "cpu":
            self._rows.append(self._on_host(tensor))
        else:
            self._rows.append(_Pending(tensor, self._counts))
        return len(self._rows) - 1

    def read(self) -> list[Statistics]:
        """Return the statistics of all rows; only this method waits for a device."""
        pending = [row for row in self._rows if isinstance(row, _Pending)]
        results = _read_together(pending)
        return [
            row.statistics(*next(results)) if isinstance(row, _Pending) else row
            for row in self._rows
        ]

    def clear(self) -> None:
        """Forget all rows."""
        self._rows.clear()

    def _on_host(self, tensor: Tensor) -> Statistics:
        flat = _flat(tensor)
        if flat.is_neg():
            flat = flat.resolve_neg()
        total = _Total()
        for block in flat.split(_BLOCK) if flat.numel() > _BLOCK else (flat,):
            numbers = self._exact(block)
            array = numbers.numpy()
            low, high = float(np.minimum.reduce(array)), float(np.maximum.reduce(array))
            if math.isfinite(low) and math.isfinite(high):
                self._add(numbers, array, low, high, total)
                continue
            finite = numbers[torch.isfinite(numbers)]
            missing = numbers.numel() - finite.numel()
            nan = int(torch.count_nonzero(torch.isnan(numbers)))
            total.nan += nan
            total.inf += missing - nan
            if finite.numel():
                low, high = finite.amin().item(), finite.amax().item()
                self._add(finite, finite.numpy(), low, high, total)
        return total.statistics(tensor.numel(), counts=self._counts)

    def _exact(self, block: Tensor) -> Tensor:
        """Convert a block to a dtype in which torch computes fast, without rounding."""
        if block.dtype in _EXACT:
            return block
        if not block.is_floating_point():
            return block.double()
        return self._float32[: block.numel()].copy_(block)

    def _add(
        self, numbers: Tensor, array: "_Array", low: float, high: float, total: "_Total"
    ) -> None:
        total.min, total.max = min(total.min, low), max(total.max, high)
        largest = max(-low, high)
        block_sum, squares = numbers.sum().item(), self._sum_of_squares(numbers, array)
        if not math.isfinite(block_sum):
            block_sum = numbers.sum(dtype=torch.float64).item()
        if largest and not _MIN_SQUARES < squares < math.inf:
            scaled = numbers.double().div_(largest)
            squares = torch.dot(scaled, scaled).item() * largest * largest
        total.sum += block_sum
        total.squares += squares
        if self._counts:
            self._count(array, low, largest, total)

    def _sum_of_squares(self, numbers: Tensor, array: "_Array") -> float:
        """Return the sum of squares, adding up rows first, so that float32 sums are short.

        For equal elements, as after a dropout, a single dot product in float32 has a relative error
        of 3e-5 that depends on the number of threads, so dumps of the same values would differ.
        """
        if numbers.dtype != torch.float32:
            return torch.dot(numbers, numbers).item()
        if _DOT_ROWS is None:
            return torch.mul(numbers, numbers, out=self._squares[: numbers.numel()]).sum().item()
        end_of_rows = array.size - array.size % _ROW
        rows, rest = array[:end_of_rows].reshape(-1, _ROW), array[end_of_rows:]
        with np.errstate(over="ignore", under="ignore"):  # Such sums are repeated in float64.
            return float(_DOT_ROWS(rows, rows).sum(dtype=np.float64)) + float(_DOT_ROWS(rest, rest))

    def _count(self, array: "_Array", low: float, largest: float, total: "_Total") -> None:
        size = array.size
        magnitudes = array
        if low < 0:
            if array.dtype not in self._magnitudes:
                self._magnitudes[array.dtype] = np.empty(_BLOCK, array.dtype)
            magnitudes = np.abs(array, out=self._magnitudes[array.dtype][:size])
        if largest > LARGEST:
            total.above += self._number(np.greater, magnitudes, LARGEST)
        small = self._number(np.less, magnitudes, NORMAL)
        if small == 0:
            return
        zeros = self._number(np.equal, magnitudes, 0.0)
        total.zeros += zeros
        total.below_normal += small - zeros
        if small > zeros:
            total.below_subnormal += self._number(np.less, magnitudes, SUBNORMAL) - zeros

    def _number(self, relation: np.ufunc, magnitudes: "_Array", limit: float) -> int:
        """Count the magnitudes that satisfy a comparison with a limit."""
        mask = self._mask[: magnitudes.size]
        return int(np.count_nonzero(relation(magnitudes, limit, out=mask)))


_Array = np.ndarray[Any, Any]


class _Total:
    """The statistics of the blocks so far."""

    def __init__(self) -> None:
        self.min, self.max = math.inf, -math.inf
        self.sum = self.squares = 0.0
        self.nan = self.inf = self.zeros = self.above = 0
        self.below_normal = self.below_subnormal = 0

    def statistics(self, count: int, *, counts: bool) -> Statistics:
        finite = count - self.nan - self.inf
        if not finite:
            return Statistics(
                count=count,
                nan=self.nan,
                inf=self.inf,
                **dict.fromkeys(_COUNTS, 0) if counts else {},
            )
        return Statistics(
            count=count,
            min=self.min,
            max=self.max,
            mean=self.sum / finite,
            l2=math.sqrt(self.squares),
            nan=self.nan,
            inf=self.inf,
            zeros=self.zeros if counts else None,
            above_fp16=self.above if counts else None,
            below_normal=self.below_normal if counts else None,
            below_subnormal=self.below_subnormal if counts else None,
        )


_COUNTS: Final = ("zeros", "above_fp16", "below_normal", "below_subnormal")


class _Pending:
    """Statistics of a tensor that are still on its device.

    Elements are divided by the largest magnitude before summation, so that sums and squares do not
    overflow or underflow.
    """

    def __init__(self, tensor: Tensor, counts: bool) -> None:
        self.count = tensor.numel()
        numbers = tensor if tensor.dtype in _EXACT else tensor.float()
        finite = torch.isfinite(numbers)
        clean = torch.where(finite, numbers, 0)
        low = torch.where(finite, numbers, math.inf).amin()
        high = torch.where(finite, numbers, -math.inf).amax()
        largest = torch.maximum(-low, high).clamp_min(torch.finfo(clean.dtype).tiny)
        scaled = clean / largest
        self.floats = [low, high, largest, scaled.sum(), torch.linalg.vector_norm(scaled)]
        self.counts = [finite.sum(), torch.isnan(numbers).sum()]
        if counts:
            magnitudes = clean.abs()
            self.counts += [
                (numbers == 0).sum(),
                (magnitudes > LARGEST).sum(),
                (finite & (magnitudes < NORMAL)).sum(),
                (finite & (magnitudes < SUBNORMAL)).sum(),
            ]

    def statistics(self, floats: list[float], counts: list[int]) -> Statistics:
        """Return the statistics, given the values that were read from the device."""
        low, high, largest, total, norm = floats
        finite, nan, *rest = counts
        row = _Total()
        row.nan, row.inf = nan, self.count - finite - nan
        if finite:
            row.min, row.max = low, high
            row.sum, row.squares = total * largest, (norm * largest) ** 2
        if rest:
            row.zeros, row.above, normal, subnormal = rest
            row.below_normal, row.below_subnormal = normal - row.zeros, subnormal - row.zeros
        return row.statistics(self.count, counts=bool(rest))


def _read_together(pending: list[_Pending]) -> Iterator[tuple[list[float], list[int]]]:
    """Yield floats and counts of all rows, with one copy to the host per device and dtype."""
    values: dict[int, float] = {}
    groups: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
    for row in pending:
        for tensor in (*row.floats, *row.counts):
            groups.setdefault((tensor.device, tensor.dtype), []).append(tensor)
    for tensors in groups.values():
        values |= zip(map(id, tensors), torch.stack(tensors).tolist(), strict=True)
    for row in pending:
        yield (
            [values[id(number)] for number in row.floats],
            [int(values[id(number)]) for number in row.counts],
        )


def _flat(tensor: Tensor) -> Tensor:
    """Return the elements as one axis, in any order; a view if they are dense."""
    if tensor.is_contiguous():
        return tensor.view(-1)
    if is_dense(tensor):
        return tensor.as_strided((tensor.numel(),), (1,))
    return tensor.reshape(-1)


def is_dense(tensor: Tensor) -> bool:
    """Whether the elements fill a range of memory without gaps, in any order of axes."""
    dense_stride = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1:
            if stride != dense_stride:
                return False
            dense_stride *= size
    return True
