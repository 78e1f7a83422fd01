"""The gated PixelCNN that learns which codes of a VQ-VAE occur next to each other.

Paper: A. van den Oord et al., "Conditional Image Generation with PixelCNN Decoders",
arXiv 1606.05328. Original: the `PixelCNN` of hiwonjoon/tf-vqvae and Ascend's contrib/graph/vq-vae,
on the layers of anantzoid/Conditional-PixelCNN-decoder of July 2017 (no licence is stated, so only
their facts are used).

Differences of the original from the paper:

- The vertical stack sees the codes to the left in its own row too, so there is a blind spot.
- The 1x1 convolutions of the first layer have the mask that hides the position itself, and so
  output only their bias: the first layer of the horizontal stack has no effect, and information
  about the image reaches the output through the vertical stack from the second layer on.
- The 1x1 convolutions are followed by a ReLU, even before the residual sum.

Only the unmasked parts of the kernels are computed. The `state_dict` contains whole kernels, so
that checkpoints of the original can be loaded.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jumar.models.tf_layout import (
    TfNames,
    TfVariable,
    convolution_kernel,
    convolution_variables,
    unchanged,
)

TF_SCOPE = "pixelcnn"


class MaskedConv2d(nn.Module):
    """A size-preserving convolution that sees only what precedes a position in reading order.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        height: Height of the kernel, odd.
        width: Width of the kernel, odd.
        sees_itself: Whether the position itself is seen (mask B) or not (mask A).
        bias: Whether a bias is added.
    """

    mask: Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        height: int,
        width: int,
        *,
        sees_itself: bool,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels, height, width))
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None
        nn.init.xavier_uniform_(self.weight)
        mask = torch.ones(height // 2 + 1, width)
        mask[-1, width // 2 + int(sees_itself) :] = 0
        self.register_buffer("mask", mask, persistent=False)

    def masked_weight(self) -> Tensor:
        """The rows of the kernel down to the middle one, [out, in, height // 2 + 1, width]."""
        return self.weight[:, :, : self.mask.shape[0]] * self.mask

    def forward(self, x: Tensor) -> Tensor:
        kernel = self.masked_weight()
        return F.conv2d(padded(x, kernel), kernel, self.bias)


def padded(x: Tensor, kernel: Tensor) -> Tensor:
    """The input padded with zeros such that a kernel whose last row is the position's own keeps the
    size.

    Args:
        x: [N, in, height, width].
        kernel: [out, in, rows, columns], columns odd.
    """
    rows, columns = kernel.shape[2:]
    return F.pad(x, (columns // 2, columns // 2, rows - 1, 0))


class GatedConv2d(nn.Module):
    """tanh of one masked convolution times the sigmoid of another.

    Args:
        in_channels: Channels of the input.
        maps: Channels of the output.
        height: Height of the kernel.
        width: Width of the kernel.
        sees_itself: See `MaskedConv2d`.
        classes: Number of classes, each with its own pair of biases; 0 for a single pair.
    """

    def __init__(
        self,
        in_channels: int,
        maps: int,
        height: int,
        width: int,
        *,
        sees_itself: bool,
        classes: int,
    ) -> None:
        super().__init__()

        def convolution() -> MaskedConv2d:
            return MaskedConv2d(
                in_channels, maps, height, width, sees_itself=sees_itself, bias=False
            )

        self.value = convolution()
        self.gate = convolution()
        shape = (classes, maps) if classes else (maps,)
        self.value_bias = nn.Parameter(torch.zeros(shape))
        self.gate_bias = nn.Parameter(torch.zeros(shape))
        if classes:
            nn.init.xavier_uniform_(self.value_bias)
            nn.init.xavier_uniform_(self.gate_bias)

    def forward(self, x: Tensor, labels: Tensor | None, added: Tensor | None = None) -> Tensor:
        """The gated maps, [N, maps, h, w].

        Args:
            x: [N, in, h, w].
            labels: int64 [N]; None without classes.
            added: [N, maps, h, w], added before both non-linearities.
        """
        kernel = self.kernel()
        return self.gated(padded(x, kernel), kernel, labels, added)

    def kernel(self) -> Tensor:
        """Both masked kernels, [2 * maps, in, height // 2 + 1, width]."""
        return torch.cat([self.value.masked_weight(), self.gate.masked_weight()])

    def gated(
        self, x: Tensor, kernel: Tensor, labels: Tensor | None, added: Tensor | None
    ) -> Tensor:
        """Like `forward`, for an input that is already padded and a kernel that is computed."""
        biases = torch.cat([self.value_bias, self.gate_bias], dim=-1)
        if labels is None:
            value_and_gate = F.conv2d(x, kernel, biases)
        else:
            value_and_gate = F.conv2d(x, kernel)
            value_and_gate = (
                value_and_gate
                + F.embedding(labels, biases).to(value_and_gate.dtype)[:, :, None, None]
            )
        value, gate = value_and_gate.chunk(2, dim=1)
        if added is not None:
            value, gate = value + added, gate + added
        return torch.tanh(value) * torch.sigmoid(gate)


class PixelCNNLayer(nn.Module):
    """One layer of both stacks.

    Args:
        in_channels: Channels of the input; the width of a code in the first layer.
        maps: Channels of the output.
        classes: See `GatedConv2d`.
        first: Whether this is the first layer: 7x7 instead of 3x3, the position itself hidden,
            and no residual sum.
    """

    def __init__(self, in_channels: int, maps: int, *, classes: int, first: bool) -> None:
        super().__init__()
        size, sees = (7, False) if first else (3, True)
        self.vertical = GatedConv2d(
            in_channels, maps, size, size, sees_itself=sees, classes=classes
        )
        self.across = MaskedConv2d(maps, maps, 1, 1, sees_itself=sees)
        self.horizontal = GatedConv2d(in_channels, maps, 1, size, sees_itself=sees, classes=classes)
        self.onward = MaskedConv2d(maps, maps, 1, 1, sees_itself=sees)
        self.residual = not first

    def forward(
        self, vertical: Tensor, horizontal: Tensor, labels: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Both stacks after this layer, [N, maps, h, w]."""
        vertical = self.vertical(vertical, labels)
        across = torch.relu(self.across(vertical))
        onward = torch.relu(self.onward(self.horizontal(horizontal, labels, across)))
        return vertical, onward + horizontal if self.residual else onward


class PixelCNN(nn.Module):
    """Logits for each code, given the preceding codes in reading order.

    Args:
        codes: Size of the codebook (K).
        width: Length of a code's vector (D), the input's channels.
        layers: Layers of both stacks.
        maps: Channels of each stack.
        classes: Number of classes to condition on; 0 for none.
    """

    def __init__(
        self, *, codes: int, width: int, layers: int = 18, maps: int = 256, classes: int = 0
    ) -> None:
        super().__init__()
        self.codes = codes
        self.classes = classes
        self.layers = nn.ModuleList(
            PixelCNNLayer(maps if number else width, maps, classes=classes, first=number == 0)
            for number in range(layers)
        )
        self.hidden = MaskedConv2d(maps, maps, 1, 1, sees_itself=True)
        self.logits = MaskedConv2d(maps, codes, 1, 1, sees_itself=True)

    def forward(self, vectors: Tensor, labels: Tensor | None = None) -> Tensor:
        """Logits [N, codes, h, w].

        Args:
            vectors: The codes' vectors [N, width, h, w].
            labels: int64 [N]; required if the model has classes, otherwise ignored.
        """
        labels = labels if self.classes else None
        vertical = horizontal = vectors
        for layer in self.layers:
            vertical, horizontal = layer(vertical, horizontal, labels)
        return self.logits(torch.relu(self.hidden(horizontal)))


def tf_variables(model: PixelCNN) -> list[TfVariable]:
    """The variables of the original in graph order, with their names here."""
    variables: list[TfVariable] = []
    for number in range(len(model.layers)):
        name = f"layers.{number}"
        for stack in ("vertical", "horizontal"):
            scope = f"{TF_SCOPE}/{stack[0]}_stack"
            pointwise = "across" if stack == "vertical" else "onward"
            variables += _gated(f"{scope}{number}", f"{name}.{stack}", model.classes)
            variables += _plain(f"{scope}_1{number}", f"{name}.{pointwise}")
    variables += _plain(f"{TF_SCOPE}/fc_1", "hidden")
    return variables + _plain(f"{TF_SCOPE}/fc_2", "logits")


def tf_names(model: PixelCNN) -> TfNames:
    """The names in the original's checkpoints, which contain the prior without the codebook."""
    return TfNames(
        variables=tf_variables(model),
        averages="none",
        ignored=[r"/Adam(_1)?$", r"beta[12]_power", r"^(.*/)?(Variable|global_step)$"],
    )


def _gated(scope: str, name: str, classes: int) -> list[TfVariable]:
    """A gated layer: the original calls the value `v` and the gate `h` in both stacks."""
    bias = "V" if classes else "b"
    parts = (("v", "value"), ("h", "gate"))
    kernels = [
        convolution_kernel(f"{scope}/{tf_part}_W", f"{name}.{part}.weight")
        for tf_part, part in parts
    ]
    biases = [
        unchanged(f"{scope}/{tf_part}_{bias}", f"{name}.{part}_bias") for tf_part, part in parts
    ]
    return kernels + biases


def _plain(scope: str, name: str) -> list[TfVariable]:
    return convolution_variables(scope, name, bias=True, parts=("W", "b"))
