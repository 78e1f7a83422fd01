"""Packing the tokens of all samples of a batch into one row without padding.

A layer that processes each token separately (dense, layer norm, activation, dropout) then computes
nothing for padding; only attention, which must not mix samples, gets them in separate rows.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from jumar.models.export_mode import in_export_mode


@dataclass(frozen=True, eq=False)
class Packing:
    """The positions of the tokens of a batch.

    Attributes:
        mask: bool [samples, length], whether there is a token; length is the longest sample's.
        indices: int64 [tokens], index of each token in the flattened [samples * length]; None if
            padding is kept or there is none.
        is_full: Whether no sample is padded.
    """

    mask: Tensor
    indices: Tensor | None
    is_full: bool

    @property
    def samples(self) -> int:
        """Number of samples in the batch."""
        return self.mask.shape[0]

    @property
    def length(self) -> int:
        """Number of tokens of the longest sample."""
        return self.mask.shape[1]

    def pack(self, x: Tensor) -> Tensor:
        """Pack [samples, length, ...] into [tokens, ...]."""
        flat = x.flatten(0, 1)
        return flat if self.indices is None else flat.index_select(0, self.indices)

    def unpack(self, x: Tensor) -> Tensor:
        """Unpack [tokens, ...] into [samples, length, ...], padded with zeros."""
        if self.indices is not None:
            padded = x.new_zeros(self.samples * self.length, *x.shape[1:])
            x = padded.index_copy(0, self.indices, x)
        return x.unflatten(0, (self.samples, self.length))

    def rows(self) -> Tensor:
        """int64 [tokens], the sample of each token."""
        return self._all_indices() // self.length

    def positions(self) -> Tensor:
        """int64 [tokens], the position of each token in its sample."""
        if self.indices is None:
            return torch.arange(self.length, device=self.mask.device).repeat(self.samples)
        return self.indices % self.length

    def at(self, positions: Tensor) -> Tensor:
        """Indices into the packed tokens.

        Args:
            positions: int64 [samples, n], positions in each sample. For padding, the index is that
                of some other token.

        Returns:
            int64 [samples * n].
        """
        first = torch.arange(self.samples, device=positions.device)[:, None] * self.length
        flat = (first + positions).flatten()
        if self.indices is None:
            return flat
        return (self.mask.flatten().cumsum(0) - 1).clamp_min(0).index_select(0, flat)

    def _all_indices(self) -> Tensor:
        if self.indices is not None:
            return self.indices
        return torch.arange(self.samples * self.length, device=self.mask.device)


def packing_of(mask: Tensor, *, unpadded: bool = True) -> Packing:
    """How to pack a batch.

    Args:
        mask: [samples, length], non-zero for tokens. Each sample begins with a token and has no
            gaps.
        unpadded: Whether to leave out padding. Otherwise padding is computed up to the end of the
            longest sample, without waiting for the device to count the tokens. In export mode, it
            is computed up to the end of the mask.
    """
    present = mask != 0
    if in_export_mode():
        return Packing(mask=present, indices=None, is_full=False)
    lengths = present.sum(dim=1)
    # Both in one transfer, because each read waits for the device.
    shortest, longest = torch.stack(lengths.aminmax()).tolist()
    present = present[:, :longest]
    is_full = longest == shortest
    if is_full or not unpadded:
        return Packing(mask=present, indices=None, is_full=is_full)
    return Packing(mask=present, indices=present.flatten().nonzero().squeeze(1), is_full=is_full)
