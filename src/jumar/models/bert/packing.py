"""Tokens without padding: those of all samples of a batch in one row.

A layer that treats each token by itself (dense, layer norm, activation, dropout) then computes
nothing for padding; only attention, which needs the samples apart, sees them as rows of their own.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from jumar.models.export_mode import in_export_mode


@dataclass(frozen=True, eq=False)
class Packing:
    """Where the tokens of a batch are.

    Attributes:
        mask: bool [samples, length], whether there is a token; length is the longest sample's.
        places: int64 [tokens], position of each token in the flattened [samples * length]; None
            where padding is kept or there is none.
        is_full: Whether no sample is padded.
    """

    mask: Tensor
    places: Tensor | None
    is_full: bool

    @property
    def samples(self) -> int:
        """Samples of the batch."""
        return self.mask.shape[0]

    @property
    def length(self) -> int:
        """Tokens of the longest sample."""
        return self.mask.shape[1]

    def pack(self, x: Tensor) -> Tensor:
        """[samples, length, ...] as [tokens, ...]."""
        flat = x.flatten(0, 1)
        return flat if self.places is None else flat.index_select(0, self.places)

    def unpack(self, x: Tensor) -> Tensor:
        """[tokens, ...] as [samples, length, ...], padded with zeros."""
        if self.places is not None:
            padded = x.new_zeros(self.samples * self.length, *x.shape[1:])
            x = padded.index_copy(0, self.places, x)
        return x.unflatten(0, (self.samples, self.length))

    def rows(self) -> Tensor:
        """int64 [tokens], the sample of each token."""
        return self._all_places() // self.length

    def positions(self) -> Tensor:
        """int64 [tokens], the position of each token in its sample."""
        if self.places is None:
            return torch.arange(self.length, device=self.mask.device).repeat(self.samples)
        return self.places % self.length

    def at(self, positions: Tensor) -> Tensor:
        """Indices into the packed tokens.

        Args:
            positions: int64 [samples, n], positions in each sample. Those of padding give an index
                of some other token.

        Returns:
            int64 [samples * n].
        """
        first = torch.arange(self.samples, device=positions.device)[:, None] * self.length
        flat = (first + positions).flatten()
        if self.places is None:
            return flat
        return (self.mask.flatten().cumsum(0) - 1).clamp_min(0).index_select(0, flat)

    def _all_places(self) -> Tensor:
        if self.places is not None:
            return self.places
        return torch.arange(self.samples * self.length, device=self.mask.device)


def packing_of(mask: Tensor, *, unpadded: bool = True) -> Packing:
    """How to pack a batch.

    Args:
        mask: [samples, length], not 0 where there is a token. Each sample begins with one, and
            has no gap.
        unpadded: Whether to leave out padding. Without, padding is computed up to the end of the
            longest sample, which costs a device no wait for the number of tokens; in export mode,
            up to the end of the mask.
    """
    present = mask != 0
    if in_export_mode():
        return Packing(mask=present, places=None, is_full=False)
    lengths = present.sum(dim=1)
    # Read at once: each value read from a device waits for it.
    shortest, longest = torch.stack(lengths.aminmax()).tolist()
    present = present[:, :longest]
    is_full = longest == shortest
    if is_full or not unpadded:
        return Packing(mask=present, places=None, is_full=is_full)
    return Packing(mask=present, places=present.flatten().nonzero().squeeze(1), is_full=is_full)
