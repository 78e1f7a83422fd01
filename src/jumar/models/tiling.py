"""Running a network in pieces over images that are too large to process at once.

`in_tiles` is for networks with a bounded receptive field: tiles overlap by the receptive field, the
parts affected by the cut are discarded, and the result equals that for the whole image.
`in_patches` is for networks made for one size: overlapping patches are averaged.
"""

from collections.abc import Callable

import torch

Network = Callable[[torch.Tensor], torch.Tensor]
"""Maps [N, channels, height, width] to [N, other channels, height, width]."""


def in_tiles(network: Network, images: torch.Tensor, *, tile: int, radius: int) -> torch.Tensor:
    """The network's output for whole images, with the memory of one tile.

    At the border of the image a tile ends where the image ends, so that the network's own padding
    acts there as it does on the whole image; at an inner cut, the outermost `radius` pixels have
    seen padding instead of the image and are dropped.

    Args:
        network: Convolutions with stride 1, in evaluation mode.
        images: [N, channels, height, width] of any size.
        tile: Side of the part of each tile that is kept, in px.
        radius: How far the receptive field extends to each side, in px.

    Returns:
        [N, other channels, height, width], equal to the untiled result up to float rounding.
    """
    height, width = images.shape[2:]
    if height <= tile and width <= tile:
        return network(images)
    rows: list[torch.Tensor] = []
    for top in range(0, height, tile):
        columns: list[torch.Tensor] = []
        bottom, above = min(top + tile, height), min(top, radius)
        for left in range(0, width, tile):
            right, before = min(left + tile, width), min(left, radius)
            with_border = images[
                :, :, top - above : bottom + radius, left - before : right + radius
            ]
            result = network(with_border)
            columns.append(
                result[:, :, above : above + bottom - top, before : before + right - left]
            )
        rows.append(torch.cat(columns, dim=3))
    return torch.cat(rows, dim=2)


def in_patches(
    network: Network, images: torch.Tensor, *, patch: int, stride: int, batch: int
) -> torch.Tensor:
    """The average of the network's outputs for overlapping patches.

    As in NLRN's original evaluation: patches every `stride` pixels from the top left, and the last
    row and column of patches flush with the border.

    Args:
        network: A network in evaluation mode with equally many input and output channels.
        images: [N, channels, height, width] of any size; if a side is smaller than `patch`, so
            are the patches.
        patch: Side of the patches in px.
        stride: Distance between neighbouring patches in px.
        batch: Patches to process at once.

    Returns:
        float32 of the shape of `images`.

    Raises:
        ValueError: The stride leaves gaps.
    """
    if not 0 < stride <= patch:
        raise ValueError(f"patches of {patch} px every {stride} px leave gaps")
    height, width = images.shape[2:]
    tall, wide = min(patch, height), min(patch, width)
    corners = [
        (number, top, left)
        for number in range(len(images))
        for top in patch_starts(height, tall, stride)
        for left in patch_starts(width, wide, stride)
    ]
    total = torch.zeros_like(images, dtype=torch.float32)
    counts = total.new_zeros(1, 1, height, width)
    for _, top, left in corners[: len(corners) // max(len(images), 1)]:
        counts[:, :, top : top + tall, left : left + wide] += 1
    for first in range(0, len(corners), batch):
        batch_corners = corners[first : first + batch]
        patches = torch.stack(
            [
                images[number, :, top : top + tall, left : left + wide]
                for number, top, left in batch_corners
            ]
        )
        for (number, top, left), result in zip(batch_corners, network(patches), strict=True):
            total[number, :, top : top + tall, left : left + wide] += result
    return total / counts


def patch_starts(length: int, patch: int, stride: int) -> list[int]:
    """The start positions of patches along one axis: every `stride`, and one flush with the end."""
    return [*range(0, length - patch, stride), length - patch]
