"""VQ-VAE as the Ascend ModelZoo trained it in TensorFlow 1.15: images as grids of codes.

Paper: A. van den Oord, O. Vinyals, K. Kavukcuoglu, "Neural Discrete Representation Learning",
arXiv 1711.00937. Original: hiwonjoon/tf-vqvae, from which Ascend's contrib/graph/vq-vae comes
(no licence is stated, so only its facts are used). Three networks were published: for MNIST
without residual blocks, for CIFAR-10 and for ImageNet; only the last has a ReLU between the
decoder's residual blocks and its first transposed convolution.

Unlike in the original, the squared distance to a code is computed directly and not as the square of
a norm, whose gradient is NaN if a feature equals a code exactly.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from jumar.models.export_mode import in_export_mode, without_autocast
from jumar.models.initializers import truncated_normal_
from jumar.models.same_padding import SameConv2d
from jumar.models.tf_layout import TfNames, TfVariable, convolution_variables, unchanged

VARIANTS = ("mnist", "cifar10", "imagenet")
TF_SCOPE = "train"
"""The prefix that the original adds to its graph's names when it writes a checkpoint."""

_INITIAL_STD = 0.02
_MAX_DISTANCES = 2**24
"""Distances computed at once, 64 MiB. A 512 px image has 16,384 positions: for a batch of images
and thousands of codes, all distances would not fit into memory."""


class Quantized(NamedTuple):
    """The result for a batch of images.

    Attributes:
        reconstruction: [N, channels, height, width], 0 to 1.
        features: The encoder's output [N, D, h, w].
        chosen: The vectors of the nearest codes, float32 [N, D, h, w].
        codes: The indices of the nearest codes, int64 [N, h, w].
    """

    reconstruction: Tensor
    features: Tensor
    chosen: Tensor
    codes: Tensor


class Residual(nn.Module):
    """Adds the output of ReLU, 3x3, ReLU, 1x1 to its input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.wide = SameConv2d(channels, channels, 3)
        self.pointwise = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.pointwise(torch.relu(self.wide(torch.relu(x))))


class VQVAE(nn.Module):
    """Encoder, codebook and decoder.

    Takes images [N, channels, height, width] from 0 to 1 whose sides are multiples of `shrinking`.

    Args:
        variant: One of `VARIANTS`. `mnist` is for grey images and downsamples them by 8; the others
            are for colour images and downsample by 4.
        codes: Vectors in the codebook (K).
        width: Length of a code and channels of the encoder's output (D); a multiple of 4.

    Raises:
        ValueError: The variant is unknown, or the width is not a multiple of 4.
    """

    def __init__(self, *, variant: str, codes: int, width: int) -> None:
        super().__init__()
        if variant not in VARIANTS:
            raise ValueError(f"the variant must be one of {', '.join(VARIANTS)}, not {variant!r}")
        if width % 4:
            raise ValueError(f"the width of a code must be a multiple of 4, not {width}")
        self.variant = variant
        self.channels = 1 if variant == "mnist" else 3
        self.shrinking = 8 if variant == "mnist" else 4
        self.encoder = nn.Sequential(OrderedDict(_encoder_layers(variant, width)))
        self.decoder = nn.Sequential(OrderedDict(_decoder_layers(variant, width)))
        self.codebook = nn.Parameter(torch.empty(codes, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights as the original does: with a standard deviation of 0.02, truncated at
        two deviations except in transposed convolutions, and with biases of zero.
        """
        for module in self.modules():
            if isinstance(module, nn.ConvTranspose2d):
                nn.init.normal_(module.weight, std=_INITIAL_STD)
            elif isinstance(module, nn.Conv2d):
                truncated_normal_(module.weight, _INITIAL_STD)
            if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)) and module.bias is not None:
                nn.init.zeros_(module.bias)
        truncated_normal_(self.codebook, _INITIAL_STD)

    def forward(self, images: Tensor) -> Quantized:
        """Encode, choose the nearest codes, and decode them.

        The gradient of the reconstruction passes straight through the choice of codes: it reaches
        the encoder but not the codebook.
        """
        features = self.encode(images)
        codes = self.nearest(features)
        chosen = self.vectors(codes)
        # The difference is zero and its gradient one, so the decoder sees the codes exactly;
        # features + (chosen - features) would round.
        wide = features.float()
        straight_through = chosen.detach() + (wide - wide.detach())
        return Quantized(self.decode(straight_through), features, chosen, codes)

    def encode(self, images: Tensor) -> Tensor:
        """The vectors [N, D, h, w] to be replaced by codes."""
        return self.encoder(images)

    def decode(self, vectors: Tensor) -> Tensor:
        """Images [N, channels, height, width] from 0 to 1, decoded from vectors [N, D, h, w]."""
        return torch.sigmoid(self.decoder(vectors))

    def nearest(self, features: Tensor) -> Tensor:
        """The indices of the nearest codes, int64 [N, h, w], computed in float32."""
        return nearest_codes(features, self.codebook)

    def vectors(self, codes: Tensor) -> Tensor:
        """The vectors [N, D, h, w] of codes [N, h, w], in the codebook's dtype."""
        return nn.functional.embedding(codes, self.codebook).permute(0, 3, 1, 2)


def nearest_codes(features: Tensor, codebook: Tensor) -> Tensor:
    """For each position, the index of the code with the smallest Euclidean distance.

    Args:
        features: [N, D, h, w] of any floating-point dtype.
        codebook: [K, D].

    Returns:
        int64 [N, h, w]; any one of equally near codes.
    """
    indices = _nearest_rows(_positions(features), codebook)
    return indices.view(features.shape[0], *features.shape[2:])


def vq_losses(images: Tensor, quantized: Quantized) -> Mapping[str, Tensor]:
    """The three terms of the loss, in float32.

    `recon` is the mean squared error over pixels and channels, `vq` the mean squared distance of
    a position's feature to its code (trains only the codebook), `commit` the same value (trains
    only the encoder).
    """
    features, chosen = quantized.features.float(), quantized.chosen.float()
    return {
        "recon": (quantized.reconstruction.float() - images.float()).square().mean(),
        "vq": (features.detach() - chosen).square().sum(dim=1).mean(),
        "commit": (features - chosen.detach()).square().sum(dim=1).mean(),
    }


def unused_pull(features: Tensor, codebook: Tensor) -> Tensor:
    """Mean squared distance of each code to its nearest feature in the batch.

    Its gradient reaches only the codebook, and pulls unused codes towards the features. The
    original has no such term: a code that is never the nearest one never changes.

    Args:
        features: [N, D, h, w].
        codebook: [K, D].
    """
    positions = _positions(features.detach())
    nearest = positions[_nearest_rows(codebook, positions)]
    return (codebook.float() - nearest).square().sum(dim=1).mean()


def tf_variables(model: VQVAE) -> list[TfVariable]:
    """The variables of the original in graph order, with their names here."""
    variables: list[TfVariable] = []
    for part, layers, scope in (
        ("encoder", model.encoder, "params/enc"),
        ("decoder", model.decoder, "params/dec"),
    ):
        for name, layer in layers.named_children():
            if isinstance(layer, Residual):
                variables += _convolution(f"{scope}/{name}_3", f"{part}.{name}.wide")
                variables += _convolution(f"{scope}/{name}_1", f"{part}.{name}.pointwise")
            elif not isinstance(layer, nn.ReLU):
                variables += _convolution(f"{scope}/{name}", f"{part}.{name}")
    codebook = unchanged("params/embed/embed", "codebook")
    return [*variables, codebook]


def tf_names(model: VQVAE) -> TfNames:
    """The names in the original's checkpoints: its graph's names, prefixed with `train/`."""
    return TfNames(
        variables=[
            TfVariable(tf_name=f"{TF_SCOPE}/{v.tf_name}", name=v.name, layout=v.layout)
            for v in tf_variables(model)
        ],
        averages="none",
        renamings=[(r"^(?:[^/]+/)?params/", f"{TF_SCOPE}/params/")],
        ignored=[r"/Adam(_1)?$", r"beta[12]_power", r"^(.*/)?(Variable|global_step)$"],
    )


def _positions(features: Tensor) -> Tensor:
    """Reshape [N, D, h, w] to float32 [N * h * w, D]."""
    return features.float().permute(0, 2, 3, 1).flatten(0, 2)


@torch.no_grad()
def _nearest_rows(rows: Tensor, candidates: Tensor) -> Tensor:
    """For each of the rows [R, D], the index of the nearest candidate [M, D], as int64 [R]."""
    rows, candidates = rows.float(), candidates.float()
    # In mixed precision the product would have only eight bits, and neighbouring codes would be
    # confused with each other.
    with without_autocast(rows.device.type):
        half = 0.5 * candidates.square().sum(dim=1)
        if in_export_mode():
            return (half - rows @ candidates.T).argmin(dim=1)
        part = max(1, _MAX_DISTANCES // len(candidates))
        # The square of the row is the same for all candidates. Omitting it avoids adding a large
        # number to the small differences that matter.
        return torch.cat(
            [(half - chunk @ candidates.T).argmin(dim=1) for chunk in rows.split(part)]
        )


def _encoder_layers(variant: str, width: int) -> Iterator[tuple[str, nn.Module]]:
    """Layers with the original's names; each convolution halves the image."""
    for number, (before, after) in enumerate(pairwise(_widths(variant, width)), start=1):
        yield f"conv2d_{number}", SameConv2d(before, after, 4, stride=2)
        yield f"relu_{number}", nn.ReLU()
    yield from _residual_layers(variant, width)


def _decoder_layers(variant: str, width: int) -> Iterator[tuple[str, nn.Module]]:
    """Like `_encoder_layers`; each transposed convolution doubles the image."""
    yield from _residual_layers(variant, width)
    widths = reversed(_widths(variant, width))
    for number, (before, after) in enumerate(pairwise(widths), start=1):
        if number > 1 or variant == "imagenet":
            yield f"relu_{number}", nn.ReLU()
        # From N to 2N pixels, TensorFlow's SAME cuts one off each side.
        yield f"tconv2d_{number}", nn.ConvTranspose2d(before, after, 4, stride=2, padding=1)


def _widths(variant: str, width: int) -> Sequence[int]:
    """Channels from the image to the codes."""
    return {
        "mnist": (1, width // 4, width // 2, width),
        "cifar10": (3, width, width),
        "imagenet": (3, width // 2, width),
    }[variant]


def _residual_layers(variant: str, width: int) -> Iterator[tuple[str, nn.Module]]:
    for number in {"mnist": (), "cifar10": (1, 2), "imagenet": (0, 1, 2, 3)}[variant]:
        yield f"res_{number}", Residual(width)


def _convolution(tf_name: str, name: str) -> list[TfVariable]:
    """The variables of a convolution, transposed or not."""
    return convolution_variables(tf_name, name, bias=True, parts=("w", "b"))
