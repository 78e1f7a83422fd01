"""Sampling grids of codes from a PixelCNN, one position at a time.

A position depends only on the window of each layer's kernels, so each layer computes just that
position and stores its input for later ones. A whole image then costs about as much as one forward
pass, instead of one per position.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from jumar.models.keyed_random import keyed_uniform, random_position
from jumar.models.pixelcnn import GatedConv2d, PixelCNN, PixelCNNLayer


@torch.no_grad()
def sample_codes(
    model: PixelCNN,
    codebook: Tensor,
    *,
    rows: int,
    height: int,
    width: int,
    seed: int,
    first_row: int = 0,
    labels: Tensor | None = None,
    temperature: float = 1.0,
) -> Tensor:
    """Draw grids of codes for several images at once.

    Apart from the rounding of the device's kernels, an image does not depend on how many are drawn
    at once: its random numbers derive from the seed, the image's number and the position.

    Args:
        model: The model, on the codebook's device.
        codebook: [K, D].
        rows: Number of images.
        height: Rows of codes per image.
        width: Columns of codes per image.
        seed: Determines the images, together with `first_row`.
        first_row: Number of the first image.
        labels: int64 [rows], for a model with classes.
        temperature: Divides the logits; above 0, and below 1 for more likely images.

    Returns:
        int64 [rows, height, width].
    """
    device = codebook.device
    codes = torch.zeros((rows, height, width), dtype=torch.int64, device=device)
    stepwise = _Stepwise(model, codebook, rows=rows, height=height, width=width, labels=labels)
    for y in range(height):
        for x in range(width):
            logits = stepwise.logits(y, x).float() / temperature
            position = random_position((seed << 32) + y * width + x, first_row)
            uniform = keyed_uniform(rows, logits.shape[1], position, device)
            # The argmax of the logits plus Gumbel noise is a sample from their softmax.
            samples = (logits - torch.log(-torch.log(uniform))).argmax(dim=1)
            codes[:, y, x] = samples
            stepwise.store(y, x, F.embedding(samples, codebook))
    return codes


class _Inputs:
    """The inputs of a gated layer so far, including the border covered by its kernel.

    Args:
        layer: The layer.
        rows: Number of images.
        height: Rows of positions.
        width: Columns of positions.
        like: A tensor with the dtype and device to use.
    """

    def __init__(
        self, layer: GatedConv2d, rows: int, height: int, width: int, like: Tensor
    ) -> None:
        self.layer = layer
        self.kernel = layer.kernel()
        channels, self._rows, self._columns = self.kernel.shape[1:]
        self._maps = like.new_zeros(
            (rows, channels, height + self._rows - 1, width + self._columns - 1)
        )

    def store(self, y: int, x: int, values: Tensor) -> None:
        """Store the input at a position, [rows, channels]."""
        self._maps[:, :, y + self._rows - 1, x + self._columns // 2] = values

    def output(self, y: int, x: int, labels: Tensor | None, added: Tensor | None = None) -> Tensor:
        """The layer's output at a position, [rows, maps, 1, 1]; later inputs are 0 and masked."""
        window = self._maps[:, :, y : y + self._rows, x : x + self._columns]
        return self.layer.gated(window, self.kernel, labels, added)


class _Stepwise:
    """The PixelCNN, position by position in reading order."""

    def __init__(
        self,
        model: PixelCNN,
        codebook: Tensor,
        *,
        rows: int,
        height: int,
        width: int,
        labels: Tensor | None,
    ) -> None:
        self._model = model
        self._labels = labels if model.classes else None
        self._layers: list[tuple[PixelCNNLayer, _Inputs, _Inputs]] = []
        for layer in model.layers:
            assert isinstance(layer, PixelCNNLayer)
            vertical, horizontal = (
                _Inputs(part, rows, height, width, codebook)
                for part in (layer.vertical, layer.horizontal)
            )
            self._layers.append((layer, vertical, horizontal))

    def store(self, y: int, x: int, vectors: Tensor) -> None:
        """Store the vectors [rows, D] of the codes drawn at a position."""
        _, vertical, horizontal = self._layers[0]
        vertical.store(y, x, vectors)
        horizontal.store(y, x, vectors)

    def logits(self, y: int, x: int) -> Tensor:
        """Logits [rows, codes] of a position, once all earlier ones have been drawn."""
        # The first layer's input is already stored, and its result has no residual sum.
        above = onward = torch.empty(0)
        for number, (layer, vertical, horizontal) in enumerate(self._layers):
            if number:
                vertical.store(y, x, above)
                horizontal.store(y, x, onward)
            lower = vertical.output(y, x, self._labels)
            across = torch.relu(layer.across(lower))
            right = horizontal.output(y, x, self._labels, across)
            out = torch.relu(layer.onward(right))[:, :, 0, 0]
            above, onward = lower[:, :, 0, 0], out + onward if layer.residual else out
        hidden = torch.relu(self._model.hidden(onward[:, :, None, None]))
        return self._model.logits(hidden)[:, :, 0, 0]
