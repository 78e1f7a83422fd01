"""Inception v3 as the Frechet Inception distance (FID) uses it.

C. Szegedy et al., "Rethinking the Inception Architecture for Computer Vision" (2015). The FID of
the literature is measured with one particular network, TensorFlow's graph of 2015-12-05, whose
weights pytorch-fid (M. Seitzer) converted to PyTorch as `pt_inception-2015-12-05-6726825d.pth`.
The weights have the names of torchvision's `inception_v3`, from which the network differs:

- mean pools divide by the number of values inside the image, not by nine;
- the last block (`Mixed_7c`) uses max pooling where the paper and the previous block use the mean;
- there are no auxiliary logits, and the 1,008 logits (`fc`) are left out as the features do not
  need them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SIDE = 299

_Pool = Literal["none", "mean", "max", "halve"]


@dataclass(frozen=True)
class _Layer:
    """A convolution of a branch; stride 1 keeps the size, and stride 2 has no padding."""

    name: str
    channels: int
    kernel: tuple[int, int] = (1, 1)
    stride: int = 1


@dataclass(frozen=True, kw_only=True)
class _Branch:
    """A pool, then a chain of convolutions, then possibly two in parallel."""

    chain: Sequence[_Layer] = ()
    fork: Sequence[_Layer] = ()
    pool: _Pool = "none"


class ConvolutionUnit(nn.Module):
    """Convolution without bias, batch norm, ReLU."""

    def __init__(
        self,
        in_channels: int,
        channels: int,
        kernel: tuple[int, int],
        *,
        stride: int = 1,
        padded: bool = False,
    ) -> None:
        super().__init__()
        padding = (kernel[0] // 2, kernel[1] // 2) if padded else 0
        self.conv = nn.Conv2d(
            in_channels, channels, kernel, stride=stride, padding=padding, bias=False
        )
        self.bn = nn.BatchNorm2d(channels, eps=1e-3)

    def forward(self, images: Tensor) -> Tensor:
        return F.relu(self.bn(self.conv(images)))


class InceptionBlock(nn.Module):
    """Parallel branches whose channels are concatenated."""

    def __init__(self, in_channels: int, branches: Sequence[_Branch]) -> None:
        super().__init__()
        self.branches = tuple(branches)
        self.channels = 0
        for branch in branches:
            channels = in_channels
            for layer in branch.chain:
                self.add_module(layer.name, _unit(channels, layer))
                channels = layer.channels
            for layer in branch.fork:
                self.add_module(layer.name, _unit(channels, layer))
            self.channels += sum(layer.channels for layer in branch.fork) or channels

    def forward(self, images: Tensor) -> Tensor:
        return torch.cat([part for b in self.branches for part in self._parts(b, images)], dim=1)

    def _parts(self, branch: _Branch, images: Tensor) -> list[Tensor]:
        values = _pooled(images, branch.pool)
        for layer in branch.chain:
            values = self.get_submodule(layer.name)(values)
        return [self.get_submodule(layer.name)(values) for layer in branch.fork] or [values]


class FidInception(nn.Module):
    """Maps [N, 3, 299, 299] in -1..1 to the 2,048 features [N, 2048] before the logits."""

    def __init__(self) -> None:
        super().__init__()
        self.Conv2d_1a_3x3 = ConvolutionUnit(3, 32, (3, 3), stride=2)
        self.Conv2d_2a_3x3 = ConvolutionUnit(32, 32, (3, 3))
        self.Conv2d_2b_3x3 = ConvolutionUnit(32, 64, (3, 3), padded=True)
        self.Conv2d_3b_1x1 = ConvolutionUnit(64, 80, (1, 1))
        self.Conv2d_4a_3x3 = ConvolutionUnit(80, 192, (3, 3))
        self.blocks: list[str] = []
        channels = 192
        for name, branches in _blocks().items():
            block = InceptionBlock(channels, branches)
            self.add_module(name, block)
            self.blocks.append(name)
            channels = block.channels

    def forward(self, images: Tensor) -> Tensor:
        values = self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(images)))
        values = F.max_pool2d(values, 3, stride=2)
        values = self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(values))
        values = F.max_pool2d(values, 3, stride=2)
        for name in self.blocks:
            values = self.get_submodule(name)(values)
        return values.mean(dim=(2, 3))


def inception_features(network: nn.Module, images: Tensor) -> Tensor:
    """The features whose mean and covariance FID compares.

    Images are resized to 299 x 299 as in pytorch-fid: bilinear between pixel centres, without
    antialiasing. They are computed in float32 in every precision mode, because a distance that
    compares networks must not depend on it.

    Args:
        network: `FidInception` in evaluation mode.
        images: [N, 3, height, width] in -1..1. FID is defined for stored images: round to the 256
            values of a byte for comparable scores.

    Returns:
        float32 [N, 2048], without gradients.
    """
    with torch.no_grad(), torch.autocast(images.device.type, enabled=False):
        resized = F.interpolate(
            images.to(torch.float32), size=(SIDE, SIDE), mode="bilinear", align_corners=False
        )
        return network(resized)


def _unit(in_channels: int, layer: _Layer) -> ConvolutionUnit:
    return ConvolutionUnit(
        in_channels,
        layer.channels,
        layer.kernel,
        stride=layer.stride,
        padded=layer.stride == 1,
    )


def _pooled(images: Tensor, pool: _Pool) -> Tensor:
    if pool == "mean":
        return F.avg_pool2d(images, 3, stride=1, padding=1, count_include_pad=False)
    if pool == "max":
        return F.max_pool2d(images, 3, stride=1, padding=1)
    return F.max_pool2d(images, 3, stride=2) if pool == "halve" else images


def _blocks() -> dict[str, Sequence[_Branch]]:
    """All blocks in the order of computation: 35 x 35, 17 x 17, then 8 x 8 positions."""
    return {
        "Mixed_5b": _block_35(pool_channels=32),
        "Mixed_5c": _block_35(pool_channels=64),
        "Mixed_5d": _block_35(pool_channels=64),
        "Mixed_6a": _to_17(),
        "Mixed_6b": _block_17(inner=128),
        "Mixed_6c": _block_17(inner=160),
        "Mixed_6d": _block_17(inner=160),
        "Mixed_6e": _block_17(inner=192),
        "Mixed_7a": _to_8(),
        "Mixed_7b": _block_8(pool="mean"),
        "Mixed_7c": _block_8(pool="max"),
    }


def _block_35(*, pool_channels: int) -> Sequence[_Branch]:
    return (
        _Branch(chain=[_Layer("branch1x1", 64)]),
        _Branch(chain=[_Layer("branch5x5_1", 48), _Layer("branch5x5_2", 64, (5, 5))]),
        _Branch(
            chain=[
                _Layer("branch3x3dbl_1", 64),
                _Layer("branch3x3dbl_2", 96, (3, 3)),
                _Layer("branch3x3dbl_3", 96, (3, 3)),
            ]
        ),
        _Branch(pool="mean", chain=[_Layer("branch_pool", pool_channels)]),
    )


def _to_17() -> Sequence[_Branch]:
    return (
        _Branch(chain=[_Layer("branch3x3", 384, (3, 3), stride=2)]),
        _Branch(
            chain=[
                _Layer("branch3x3dbl_1", 64),
                _Layer("branch3x3dbl_2", 96, (3, 3)),
                _Layer("branch3x3dbl_3", 96, (3, 3), stride=2),
            ]
        ),
        _Branch(pool="halve"),
    )


def _block_17(*, inner: int) -> Sequence[_Branch]:
    return (
        _Branch(chain=[_Layer("branch1x1", 192)]),
        _Branch(
            chain=[
                _Layer("branch7x7_1", inner),
                _Layer("branch7x7_2", inner, (1, 7)),
                _Layer("branch7x7_3", 192, (7, 1)),
            ]
        ),
        _Branch(
            chain=[
                _Layer("branch7x7dbl_1", inner),
                _Layer("branch7x7dbl_2", inner, (7, 1)),
                _Layer("branch7x7dbl_3", inner, (1, 7)),
                _Layer("branch7x7dbl_4", inner, (7, 1)),
                _Layer("branch7x7dbl_5", 192, (1, 7)),
            ]
        ),
        _Branch(pool="mean", chain=[_Layer("branch_pool", 192)]),
    )


def _to_8() -> Sequence[_Branch]:
    return (
        _Branch(chain=[_Layer("branch3x3_1", 192), _Layer("branch3x3_2", 320, (3, 3), stride=2)]),
        _Branch(
            chain=[
                _Layer("branch7x7x3_1", 192),
                _Layer("branch7x7x3_2", 192, (1, 7)),
                _Layer("branch7x7x3_3", 192, (7, 1)),
                _Layer("branch7x7x3_4", 192, (3, 3), stride=2),
            ]
        ),
        _Branch(pool="halve"),
    )


def _block_8(*, pool: _Pool) -> Sequence[_Branch]:
    return (
        _Branch(chain=[_Layer("branch1x1", 320)]),
        _Branch(
            chain=[_Layer("branch3x3_1", 384)],
            fork=[
                _Layer("branch3x3_2a", 384, (1, 3)),
                _Layer("branch3x3_2b", 384, (3, 1)),
            ],
        ),
        _Branch(
            chain=[_Layer("branch3x3dbl_1", 448), _Layer("branch3x3dbl_2", 384, (3, 3))],
            fork=[
                _Layer("branch3x3dbl_3a", 384, (1, 3)),
                _Layer("branch3x3dbl_3b", 384, (3, 1)),
            ],
        ),
        _Branch(pool=pool, chain=[_Layer("branch_pool", 192)]),
    )
