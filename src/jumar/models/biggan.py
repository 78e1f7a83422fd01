"""BigGAN for 128 x 128 images, as written by taki0112 in TensorFlow.

Paper: Brock, Donahue, Simonyan, "Large Scale GAN Training for High Fidelity Natural Image
Synthesis", arXiv 1809.11096. Original: taki0112/BigGAN-Tensorflow, `BigGAN_128.py` and `ops.py`
(MIT), with which the parity tests compare. It differs from the paper: no classes; transposed
convolutions instead of nearest neighbours, also in the skip; batch norm in the discriminator, even
on the raw image; weights from a truncated normal with a standard deviation of 0.02; gains of the
conditional batch norms without the "1 +".

`torch.nn.BatchNorm2d` replaces `tf.layers.batch_normalization`, whose fused form also averages the
unbiased variance.
"""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jumar.models.conditional_batch_norm import EPSILON, MOMENTUM, ConditionalBatchNorm2d
from jumar.models.initializers import fill_layers_, truncated_normal_
from jumar.models.spectral_norm import (
    SpectralConv2d,
    SpectralConvTranspose2d,
    SpectralLayer,
    SpectralLinear,
)

IMAGE_SIZE = 128
SMALLEST_WIDTH = 8
"""Below this, the discriminator's attention would have no channels."""
INITIAL_STD = 0.02
_PARTS = 6


class BigGan(nn.Module):
    """Both networks.

    Args:
        width: Channels at full resolution (`ch`), at least 8; the original has 96.
        latent: Length of the latent vector (`z_dim`): 128, or a multiple of 6.
        gain_starts_at: Initial value of the gains of the conditional batch norms. With the
            original's 0 a new generator starts as its chain of skips; the paper's is 1.
        moves_in_evaluation: See `SpectralLayer`.
        fused_attention: See `SelfAttention`.
        discriminator_norms: See `Discriminator`.

    Raises:
        ValueError: The architecture does not allow this width or length.
    """

    def __init__(
        self,
        *,
        width: int = 96,
        latent: int = 128,
        gain_starts_at: float = 0.0,
        moves_in_evaluation: bool = False,
        fused_attention: bool = True,
        discriminator_norms: bool = True,
    ) -> None:
        super().__init__()
        self.generator = Generator(width=width, latent=latent)
        self.discriminator = Discriminator(width=width, norms=discriminator_norms)
        self.reset_parameters(gain_starts_at)
        for module in self.modules():
            if isinstance(module, SpectralLayer):
                module.moves_in_evaluation = moves_in_evaluation
            if isinstance(module, SelfAttention):
                module.fused = fused_attention

    def reset_parameters(self, gain_starts_at: float = 0.0) -> None:
        """Draw the weights as the original does."""
        fill_layers_(self, partial(truncated_normal_, std=INITIAL_STD))
        # Afterwards, because the gains' dense layers are among the modules above.
        for module in self.modules():
            if isinstance(module, ConditionalBatchNorm2d):
                nn.init.constant_(module.gain.bias, gain_starts_at)

    def forward(self, latent: Tensor) -> Tensor:
        """The generator's images, see `Generator.forward`."""
        return self.generator(latent)


class Generator(nn.Module):
    """Generates images from latent vectors; 99,832,561 parameters at a width of 96.

    Args:
        width: See `BigGan`.
        latent: See `BigGan`.
    """

    def __init__(self, *, width: int, latent: int) -> None:
        super().__init__()
        check_width(width)
        self.parts = latent_parts(latent)
        self.first_channels = 16 * width
        self.dense = SpectralLinear(self.parts[0], 16 * self.first_channels)
        channels = [16 * width, 16 * width, 8 * width, 4 * width, 2 * width, width]
        self.up = nn.ModuleList(
            UpBlock(inner, outer, part)
            for inner, outer, part in zip(channels, channels[1:], self.parts[1:], strict=False)
        )
        self.attention = SelfAttention(2 * width)
        self.norm = nn.BatchNorm2d(width, eps=EPSILON, momentum=MOMENTUM)
        self.out = SpectralConv2d(width, 3, 3, bias=False)

    def forward(self, latent: Tensor) -> Tensor:
        """Generate images [N, 3, 128, 128] between -1 and 1 from vectors [N, latent]."""
        first, *conditions = latent.split(self.parts, dim=1)
        # In the order (height, width, channels) of the original. Contiguous again, because the
        # weights after it determine the memory format.
        x = self.dense(first).reshape(-1, 4, 4, self.first_channels).permute(0, 3, 1, 2)
        x = x.contiguous()
        for number, (block, condition) in enumerate(zip(self.up, conditions, strict=True)):
            if number == 4:
                x = self.attention(x)
            x = block(x, condition)
        x = self.out(F.relu(self.norm(x), inplace=True))
        # In 16 bits, neighbouring levels of bright and of dark pixels would become equal.
        return torch.tanh(x.to(torch.promote_types(x.dtype, torch.float32)))


class Discriminator(nn.Module):
    """Scores how real images look; 98,985,584 parameters at a width of 96.

    Args:
        width: See `BigGan`.
        norms: Whether to have batch norms, as in the original but not in the paper. They hide a
            batch's mean brightness and contrast, and in training no image is scored in isolation.

    Attributes:
        norms: The argument of this name.
    """

    def __init__(self, *, width: int, norms: bool = True) -> None:
        super().__init__()
        check_width(width)
        self.norms = norms
        channels = [3, width, 2 * width, 4 * width, 8 * width, 16 * width]
        self.down = nn.ModuleList(
            DownBlock(inner, outer, norms=norms, of_images=number == 0)
            for number, (inner, outer) in enumerate(pairwise(channels))
        )
        self.attention = SelfAttention(width)
        self.block = ResidualBlock(channels[-1], norms=norms)
        self.out = SpectralLinear(channels[-1], 1)

    def forward(self, images: Tensor) -> Tensor:
        """Logits [N, 1] for images [N, 3, 128, 128]."""
        x = images
        for number, block in enumerate(self.down):
            if number == 1:
                x = self.attention(x)
            x = block(x)
        x = F.relu(self.block(x), inplace=True)
        return self.out(x.sum((2, 3)))


class UpBlock(nn.Module):
    """Doubles the size: two conditional batch norms and transposed convolutions, and a skip."""

    def __init__(self, inner: int, outer: int, condition: int) -> None:
        super().__init__()
        self.norm1 = ConditionalBatchNorm2d(inner, condition)
        self.conv1 = SpectralConvTranspose2d(inner, outer, 3, stride=2)
        self.norm2 = ConditionalBatchNorm2d(outer, condition)
        self.conv2 = SpectralConvTranspose2d(outer, outer, 3, stride=1)
        self.skip = SpectralConvTranspose2d(inner, outer, 3, stride=2)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        y = self.conv1(F.relu(self.norm1(x, condition), inplace=True))
        y = self.conv2(F.relu(self.norm2(y, condition), inplace=True))
        return y + self.skip(x)


class DownBlock(nn.Module):
    """Halves the size: two batch norms, ReLUs and convolutions, and a skip.

    Args:
        inner: Channels of the input.
        outer: Channels of the output.
        norms: Whether there are batch norms.
        of_images: Whether the input is an image. Then, without a norm, there is no ReLU on it,
            which would remove its dark half.
    """

    def __init__(self, inner: int, outer: int, *, norms: bool, of_images: bool) -> None:
        super().__init__()
        self.norm1 = _norm(inner, norms)
        self.conv1 = SpectralConv2d(inner, outer, 3, stride=2, bias=False)
        self.norm2 = _norm(outer, norms)
        self.conv2 = SpectralConv2d(outer, outer, 3, bias=False)
        self.skip = SpectralConv2d(inner, outer, 3, stride=2, bias=False)
        self.of_bare_images = of_images and not norms

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(x if self.of_bare_images else _activated(self.norm1, x))
        y = self.conv2(_activated(self.norm2, y))
        return y + self.skip(x)


class ResidualBlock(nn.Module):
    """Two convolutions, each followed by a batch norm, added to the input.

    Args:
        channels: Channels of input and output.
        norms: Whether there are batch norms.
    """

    def __init__(self, channels: int, *, norms: bool) -> None:
        super().__init__()
        self.conv1 = SpectralConv2d(channels, channels, 3, bias=False)
        self.norm1 = _norm(channels, norms)
        self.conv2 = SpectralConv2d(channels, channels, 3, bias=False)
        self.norm2 = _norm(channels, norms)

    def forward(self, x: Tensor) -> Tensor:
        y = _activated(self.norm1, self.conv1(x))
        return self.norm2(self.conv2(y)) + x


class SelfAttention(nn.Module):
    """Each position attends to the 2 x 2 maxima of all positions; added with a gain starting at 0.

    At full resolution the attention weights take 16 MiB per sample, more than the rest of the
    network, and a step on a CPU spends most of its time waiting for them. Fused attention never
    stores them. Its kernels need keys as long as values, hence the padding with zeros.

    Args:
        channels: Channels of the images, at least 8.

    Attributes:
        fused: Whether to use torch's fused attention. If its second derivative is needed, call
            within `sdpa_kernel(SDPBackend.MATH)`, as the gradient penalties do.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.keys = SpectralConv2d(channels, channels // 8, 1, bias=True)
        self.queries = SpectralConv2d(channels, channels // 8, 1, bias=True)
        self.values = SpectralConv2d(channels, channels // 2, 1, bias=True)
        self.out = SpectralConv2d(channels // 2, channels, 1, bias=True)
        self.gain = nn.Parameter(torch.zeros(1))
        self.fused = True

    def forward(self, x: Tensor) -> Tensor:
        keys = F.max_pool2d(self.keys(x), 2).flatten(2).transpose(1, 2)
        queries = self.queries(x).flatten(2).transpose(1, 2)
        values = F.max_pool2d(self.values(x), 2).flatten(2).transpose(1, 2)
        if self.fused:
            padding = (0, values.shape[2] - keys.shape[2])
            attended = F.scaled_dot_product_attention(
                F.pad(queries, padding)[:, None],
                F.pad(keys, padding)[:, None],
                values.contiguous()[:, None],
                scale=1.0,
            )[:, 0]
        else:
            attended = torch.softmax(queries @ keys.transpose(1, 2), dim=-1) @ values
        return x + self.gain * self.out(attended.transpose(1, 2).unflatten(2, x.shape[2:]))


def _norm(channels: int, has_norm: bool) -> nn.Module:
    return nn.BatchNorm2d(channels, eps=EPSILON, momentum=MOMENTUM) if has_norm else nn.Identity()


def _activated(norm: nn.Module, x: Tensor) -> Tensor:
    """Apply the norm and a ReLU, in place only if there is a norm, because a skip may need `x`."""
    return F.relu(norm(x), inplace=not isinstance(norm, nn.Identity))


def latent_parts(latent: int) -> list[int]:
    """The sizes of the latent vector's parts: the dense layer's input, then the blocks' conditions.

    Raises:
        ValueError: The length cannot be split.
    """
    if latent == 128:
        return [20, 20, 20, 20, 20, 28]
    if latent < _PARTS or latent % _PARTS:
        raise ValueError(
            f"a latent vector of {latent} numbers cannot be split into {_PARTS} parts; "
            f"use 128 or a multiple of {_PARTS}"
        )
    return [latent // _PARTS] * _PARTS


def check_width(width: int) -> None:
    """Reject a width that leaves the attention without channels.

    Raises:
        ValueError: The width is too small.
    """
    if width < SMALLEST_WIDTH:
        raise ValueError(f"a width of {width} channels is below {SMALLEST_WIDTH}")


def spectral_layers(network: nn.Module) -> Iterator[tuple[str, SpectralLayer]]:
    """Name and module of every layer with a spectral norm."""
    for name, module in network.named_modules():
        if isinstance(module, SpectralLayer):
            yield name, module
