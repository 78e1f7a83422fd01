"""Dropout whose mask is determined by key, sample row and feature.

`nn.Dropout` draws from a stateful generator; see `jumar.models.keyed_random` for why that is not
good enough.
"""

import math

import torch

from jumar.models.keyed_random import Keyed, RandomPosition, keyed_bits, keyed_token_bits

_BITS32 = 0xFFFFFFFF


class _Dropout(Keyed):
    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"the probability of dropping must be in [0, 1), not {p}")
        self.p = p

    def extra_repr(self) -> str:
        return f"p={self.p}"


class KeyedDropout(_Dropout):
    """Dropout with a mask from `set_random_position`; the identity in evaluation.

    Features are kept with probability 1 - p and divided by it. Works on [N, ...]; the first
    axis is the sample.

    Args:
        p: Probability of dropping a feature, at least 0 and below 1.
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training or self.p == 0:
            return x
        return x * keyed_mask(x, self.p, self.known_position())


class KeyedTokenDropout(_Dropout):
    """Dropout of tokens [tokens, features], whose mask does not depend on padding.

    Args:
        p: Probability of dropping a feature, at least 0 and below 1.
    """

    def forward(self, x: torch.Tensor, samples: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Drop features.

        Args:
            x: [tokens, features].
            samples: int [tokens], the row of each token's sample in the batch.
            places: int [tokens], different for each token of a sample.
        """
        if not self.training or self.p == 0:
            return x
        bits = keyed_token_bits(samples, places, x.shape[1], self.known_position())
        return x * _mask(bits, self.p, x.dtype)


def keyed_mask(x: torch.Tensor, p: float, position: RandomPosition) -> torch.Tensor:
    """The mask of a batch: 0 where a feature is dropped, 1 / (1 - p) elsewhere.

    Args:
        x: The batch [N, ...], for its shape, dtype and device.
        p: Probability of dropping, in [0, 1).
        position: The batch's position.
    """
    bits = keyed_bits(x.shape[0], math.prod(x.shape[1:]), position, x.device)
    return _mask(bits, p, x.dtype).view(x.shape)


def _mask(bits: torch.Tensor, p: float, dtype: torch.dtype) -> torch.Tensor:
    # The comparison is signed, so the p * 2**32 lowest of the numbers start at -2**31; a
    # threshold of 2**31, for a p next to 1, would not be an int32.
    is_kept = bits >= min(round(p * 2**32), _BITS32) - 2**31
    return is_kept.to(dtype).mul_(1 / (1 - p))
