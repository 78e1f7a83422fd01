import pytest
import torch

from jumar.models.resnet_v1 import IMAGE_MEAN, ResNetV1


def strides(backbone: ResNetV1) -> list[list[int]]:
    return [
        [unit.stride for unit in backbone.get_submodule(f"block{number}")]
        for number in (1, 2, 3, 4)
    ]


@pytest.mark.parametrize(
    ("depth", "units", "channels"),
    [(18, (2, 2, 2, 2), (64, 64, 128, 512)), (50, (3, 4, 6, 3), (64, 256, 512, 2048))],
)
def test_blocks_except_the_last_halve_their_map_in_the_last_unit(
    depth: int, units: tuple[int, ...], channels: tuple[int, ...]
) -> None:
    backbone = ResNetV1(depth).eval()
    assert strides(backbone) == [[1] * (count - 1) + [2] for count in units[:3]] + [[1] * units[3]]
    assert backbone.channels == channels
    with torch.no_grad():
        maps = backbone(torch.zeros(1, 3, 64, 96))
    sizes = [(16, 24), (8, 12), (4, 6), (2, 3)]
    assert [tuple(each.shape[1:]) for each in maps] == [
        (count, *size) for count, size in zip(channels, sizes, strict=True)
    ]


def test_strided_unit_without_a_convolution_in_its_shortcut_takes_every_second_pixel() -> None:
    unit = ResNetV1(18).block1[1].eval()
    assert unit.shortcut is None
    torch.nn.init.zeros_(unit.conv2.norm.weight)
    x = torch.rand(1, 64, 8, 6)
    with torch.no_grad():
        assert torch.equal(unit(x), x[:, :, ::2, ::2])


def test_mean_colour_image_behaves_like_padding() -> None:
    """Zeros are padded after the mean is subtracted, so such an image is as if without border."""
    backbone = ResNetV1(18).eval()
    image = torch.tensor(IMAGE_MEAN).view(1, 3, 1, 1).expand(1, 3, 32, 32)
    with torch.no_grad():
        first = backbone.conv1(image - backbone.image_mean)
    assert (first == first[:, :, :1, :1]).all()


def test_unknown_depth_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="18 or 50 layers, not 34"):
        ResNetV1(34)


def test_running_statistics_use_slims_momentum() -> None:
    norm = ResNetV1(18).conv1.norm
    norm.train()(torch.full((2, 64, 2, 2), 1000.0))
    assert norm.running_mean.tolist() == pytest.approx([3.0] * 64)
    assert norm.eps == 1e-5


def test_kernels_are_initialised_with_slims_backbone_variance() -> None:
    torch.manual_seed(0)
    weight = ResNetV1(18).block3[1].conv2.conv.weight
    expected = 2.6 * 0.7737 / (256 * 9)
    assert weight.double().square().mean().item() == pytest.approx(expected, rel=0.01)


def test_image_mean_is_the_one_of_vgg_in_red_green_and_blue() -> None:
    # As in slim's vgg_preprocessing, which both originals copy.
    assert IMAGE_MEAN == (123.68, 116.78, 103.94)
