"""Batch norm whose scale and shift are computed from a vector per sample."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

EPSILON = 1e-5
MOMENTUM = 0.1
"""Share of the new value in the running statistics; TensorFlow's decay is 1 minus this."""


class ConditionalBatchNorm2d(nn.Module):
    """y = normalised(x) * gain(z) + shift(z), with gain and shift one dense layer each.

    As in taki0112's BigGAN: no 1 is added to the gain, and the running variance averages the
    biased variance, where torch's batch norms use the unbiased one.

    Args:
        channels: Channels of the images.
        condition: Length of the vector.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int, condition: int) -> None:
        super().__init__()
        self.gain = nn.Linear(condition, channels)
        self.shift = nn.Linear(condition, channels)
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        """Images [N, channels, H, W] and vectors [N, condition]."""
        gain = self.gain(condition)[:, :, None, None]
        shift = self.shift(condition)[:, :, None, None]
        if self.training:
            return self._normalized(x) * gain + shift
        # One pass over the images instead of two.
        gain = gain * (self.running_var + EPSILON).rsqrt()[:, None, None]
        return x * gain + (shift - self.running_mean[:, None, None] * gain)

    def _normalized(self, x: Tensor) -> Tensor:
        mean, variance = torch.zeros_like(self.running_mean), torch.zeros_like(self.running_var)
        normalized = F.batch_norm(x, mean, variance, training=True, momentum=1.0, eps=EPSILON)
        count = x.numel() // x.shape[1]
        # Statistics stay float32 even if a precision mode computes everything else in 16 bits.
        with torch.no_grad(), torch.autocast(x.device.type, enabled=False):
            self.running_mean.lerp_(mean, MOMENTUM)
            # In place, because some precision modes would compute the product in 16 bits; on a
            # copy, because the backward pass needs the variance itself.
            self.running_var.lerp_(variance.clone().mul_((count - 1) / count), MOMENTUM)
        return normalized
