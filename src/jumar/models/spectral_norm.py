"""Layers whose weight is divided by its largest singular value, as in taki0112's BigGAN.

Method: Miyato et al., "Spectral Normalization for Generative Adversarial Networks", arXiv
1802.05957. The singular value is estimated by one power iteration in every forward pass, from a
vector `u` that is kept as a buffer. TensorFlow's kernels are flattened to [-1, last axis] for this.
That axis is the *output* of a convolution or dense layer, but the *input* of a transposed
convolution: in torch's layouts the first axis in every case. `torch.nn.utils.spectral_norm`
flattens a transposed convolution by its second axis and so estimates a different value.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jumar.models.export_mode import without_autocast
from jumar.models.tf_transposed import conv_transpose_same

_SMALLEST_SQUARE = 1e-12
"""As in tf.nn.l2_normalize."""


class SpectralLayer(nn.Module):
    """Base class of the layers here.

    In training every forward pass advances the vector by one power iteration. In evaluation the
    iteration is computed but discarded, so that evaluating a network does not change it; with
    `moves_in_evaluation` it is kept there too, as in the original.

    The vector depends only on the weights so far, so ranks with equal weights have equal vectors.
    If a batch is split, each part is a separate forward pass.
    """

    weight: Tensor
    u: Tensor
    moves_in_evaluation: bool = False
    is_folded: bool = False

    def add_vector(self) -> None:
        """Register `u`, drawn from a unit normal."""
        self.register_buffer("u", torch.randn(self.weight.shape[0]))

    def normalized_weight(self) -> Tensor:
        """The weight divided by the estimate; updates `u` as described at the class."""
        if self.is_folded:
            return self.weight
        # In 16 bits the iteration would lose most of a training step's change to u.
        with without_autocast(self.weight.device.type):
            left, right = power_iteration(self.weight, self.u)
            if self.training or self.moves_in_evaluation:
                with torch.no_grad():
                    self.u.copy_(left)
            sigma = torch.dot(left, torch.mv(as_matrix(self.weight), right))
            return self.weight / sigma

    @torch.no_grad()
    def fold(self) -> None:
        """Divide the weight permanently, in a network that is no longer trained."""
        self.weight.copy_(self.normalized_weight())
        self.is_folded = True


class SpectralConv2d(nn.Conv2d, SpectralLayer):
    """A square convolution with padding kernel // 2 on each side."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel: int, *, stride: int = 1, bias: bool
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel, stride=stride, padding=kernel // 2, bias=bias
        )
        self.add_vector()

    def forward(self, input: Tensor) -> Tensor:
        return F.conv2d(input, self.normalized_weight(), self.bias, self.stride, self.padding)


class SpectralConvTranspose2d(nn.ConvTranspose2d, SpectralLayer):
    """A square transposed convolution with SAME padding and no bias."""

    def __init__(self, in_channels: int, out_channels: int, kernel: int, *, stride: int) -> None:
        super().__init__(in_channels, out_channels, kernel, stride=stride, bias=False)
        self.add_vector()

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        del output_size
        return conv_transpose_same(input, self.normalized_weight(), stride=self.stride[0])


class SpectralLinear(nn.Linear, SpectralLayer):
    """A dense layer with bias."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__(in_features, out_features)
        self.add_vector()

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.normalized_weight(), self.bias)


def as_matrix(weight: Tensor) -> Tensor:
    """A weight as [first axis, all others], with columns in memory order.

    Singular values do not depend on the order of the columns, and a view costs nothing.
    """
    if weight.ndim == 4 and not weight.is_contiguous():
        weight = weight.permute(0, 2, 3, 1)
    return weight.flatten(1)


@torch.no_grad()
def power_iteration(weight: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """One step towards the singular vectors of the largest singular value.

    Args:
        weight: A layer's weight, flattened after its first axis.
        u: The last estimate of the left vector, [first axis]; not changed.

    Returns:
        The left vector [first axis] and the right vector [all others], of length 1.
    """
    matrix = as_matrix(weight)
    right = _unit(torch.mv(matrix.t(), u))
    return _unit(torch.mv(matrix, right)), right


def _unit(vector: Tensor) -> Tensor:
    return vector * vector.square().sum().clamp_min(_SMALLEST_SQUARE).rsqrt()
