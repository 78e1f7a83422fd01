import pytest
import torch

from jumar.models.inception import (
    ConvolutionUnit,
    FidInception,
    inception_features,
)

TORCHVISION = 27_161_264
"""Parameters of torchvision's inception_v3, from its documentation."""
AUXILIARY = (768 * 128 + 256) + (128 * 768 * 25 + 2 * 768) + (768 + 1) * 1000
LOGITS = (2048 + 1) * 1000


@pytest.fixture(scope="module")
def network() -> FidInception:
    torch.manual_seed(0)
    return FidInception().eval()


def test_parameters_are_torchvisions_without_the_logits(
    network: FidInception,
) -> None:
    assert sum(p.numel() for p in network.parameters()) == TORCHVISION - AUXILIARY - LOGITS
    names = network.state_dict()
    assert len(names) == 94 * 6
    assert names["Mixed_6c.branch7x7dbl_3.conv.weight"].shape == (160, 160, 1, 7)
    assert names["Mixed_7b.branch3x3dbl_3b.conv.weight"].shape == (384, 384, 3, 1)


def test_images_of_any_size_give_features_without_gradients_in_float32(
    network: FidInception,
) -> None:
    images = torch.rand(1, 3, 40, 64) * 2 - 1
    features = inception_features(network, images)
    assert features.shape == (1, 2048)
    assert features.dtype == torch.float32
    assert not features.requires_grad
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(inception_features(network, images), features)


def test_mean_pools_exclude_padding_and_the_last_block_uses_max_pooling(
    network: FidInception,
) -> None:
    """A constant image stays constant through a mean that does not count its padding."""
    blocks = dict(network.named_children())
    for name in ("Mixed_5b", "Mixed_6b", "Mixed_7b", "Mixed_7c"):
        channels = blocks[name].get_submodule("branch_pool").conv.in_channels
        images = torch.ones(1, channels, 5, 5)
        pooled = blocks[name](images)[
            :, -blocks[name].get_submodule("branch_pool").bn.num_features :
        ]
        torch.testing.assert_close(pooled, pooled[:, :, 2:3, 2:3].expand_as(pooled))
    images = torch.zeros(1, 2048, 5, 5)
    images[:, :, 2, 2] = 1
    pooled = blocks["Mixed_7c"](images)[:, -192:]
    torch.testing.assert_close(pooled[:, :, 1, 1], pooled[:, :, 2, 2])
    images = torch.zeros(1, 1280, 5, 5)
    images[:, :, 2, 2] = 9
    spread = blocks["Mixed_7b"](images)[:, -192:]
    single = blocks["Mixed_7b"](torch.ones(1, 1280, 5, 5))[:, -192:]
    torch.testing.assert_close(spread[:, :, 2, 2], single[:, :, 2, 2])


def test_maps_have_the_sizes_of_the_paper() -> None:
    """Table 1 of the paper, with the three blocks of each size."""
    with torch.device("meta"):
        network = FidInception().eval()
    result: dict[str, tuple[int, ...]] = {}
    for name, part in network.named_children():
        part.register_forward_hook(
            lambda _, inputs, output, name=name: result.update({name: tuple(output.shape[1:])})
        )
    with torch.device("meta"):
        assert network(torch.empty(1, 3, 299, 299)).shape == (1, 2048)
    assert result == {
        "Conv2d_1a_3x3": (32, 149, 149),
        "Conv2d_2a_3x3": (32, 147, 147),
        "Conv2d_2b_3x3": (64, 147, 147),
        "Conv2d_3b_1x1": (80, 73, 73),
        "Conv2d_4a_3x3": (192, 71, 71),
        "Mixed_5b": (256, 35, 35),
        "Mixed_5c": (288, 35, 35),
        "Mixed_5d": (288, 35, 35),
        "Mixed_6a": (768, 17, 17),
        **{f"Mixed_6{letter}": (768, 17, 17) for letter in "bcde"},
        "Mixed_7a": (1280, 8, 8),
        "Mixed_7b": (2048, 8, 8),
        "Mixed_7c": (2048, 8, 8),
    }


def test_convolutions_of_the_factorised_blocks_have_torchvisions_shapes() -> None:
    with torch.device("meta"):
        network = FidInception()
    shapes = {
        name.removesuffix(".conv.weight"): tuple(value.shape)
        for name, value in network.state_dict().items()
        if name.endswith(".conv.weight")
    }
    of_block = {
        "Mixed_5b": {
            "branch1x1": (64, 192, 1, 1),
            "branch5x5_1": (48, 192, 1, 1),
            "branch5x5_2": (64, 48, 5, 5),
            "branch3x3dbl_1": (64, 192, 1, 1),
            "branch3x3dbl_2": (96, 64, 3, 3),
            "branch3x3dbl_3": (96, 96, 3, 3),
            "branch_pool": (32, 192, 1, 1),
        },
        "Mixed_6a": {
            "branch3x3": (384, 288, 3, 3),
            "branch3x3dbl_1": (64, 288, 1, 1),
            "branch3x3dbl_2": (96, 64, 3, 3),
            "branch3x3dbl_3": (96, 96, 3, 3),
        },
        "Mixed_6b": {
            "branch1x1": (192, 768, 1, 1),
            "branch7x7_1": (128, 768, 1, 1),
            "branch7x7_2": (128, 128, 1, 7),
            "branch7x7_3": (192, 128, 7, 1),
            "branch7x7dbl_1": (128, 768, 1, 1),
            "branch7x7dbl_2": (128, 128, 7, 1),
            "branch7x7dbl_3": (128, 128, 1, 7),
            "branch7x7dbl_4": (128, 128, 7, 1),
            "branch7x7dbl_5": (192, 128, 1, 7),
            "branch_pool": (192, 768, 1, 1),
        },
        "Mixed_7a": {
            "branch3x3_1": (192, 768, 1, 1),
            "branch3x3_2": (320, 192, 3, 3),
            "branch7x7x3_1": (192, 768, 1, 1),
            "branch7x7x3_2": (192, 192, 1, 7),
            "branch7x7x3_3": (192, 192, 7, 1),
            "branch7x7x3_4": (192, 192, 3, 3),
        },
        "Mixed_7c": {
            "branch1x1": (320, 2048, 1, 1),
            "branch3x3_1": (384, 2048, 1, 1),
            "branch3x3_2a": (384, 384, 1, 3),
            "branch3x3_2b": (384, 384, 3, 1),
            "branch3x3dbl_1": (448, 2048, 1, 1),
            "branch3x3dbl_2": (384, 448, 3, 3),
            "branch3x3dbl_3a": (384, 384, 1, 3),
            "branch3x3dbl_3b": (384, 384, 3, 1),
            "branch_pool": (192, 2048, 1, 1),
        },
    }
    for block, expected in of_block.items():
        result = {k.removeprefix(f"{block}."): v for k, v in shapes.items() if k.startswith(block)}
        assert result == expected
    assert shapes["Mixed_6e.branch7x7dbl_4"] == (192, 192, 7, 1)
    norms = [module for module in network.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    assert {(norm.eps, norm.momentum) for norm in norms} == {(1e-3, 0.1)}
    assert all(
        module.bias is None for module in network.modules() if hasattr(module, "kernel_size")
    )


def test_unit_is_a_convolution_a_norm_and_a_relu_and_features_are_means() -> None:
    torch.manual_seed(1)
    unit = ConvolutionUnit(2, 3, (3, 1), padded=True).eval()
    x = torch.randn(1, 2, 5, 4)
    expected = torch.nn.functional.conv2d(x, unit.conv.weight, padding=(1, 0)) / 1.001**0.5
    torch.testing.assert_close(unit(x), expected.relu())
    assert ConvolutionUnit(2, 3, (3, 3), stride=2)(torch.zeros(2, 2, 7, 7)).shape == (2, 3, 3, 3)


def test_images_are_resized_with_half_pixel_centres() -> None:
    seen: list[torch.Tensor] = []

    class Seeing(torch.nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            seen.append(images)
            return images.mean((2, 3))

    inception_features(Seeing(), torch.tensor([0.0, 1.0]).expand(1, 3, 1, 2).to(torch.float16))
    (resized,) = seen
    assert (tuple(resized.shape), resized.dtype) == ((1, 3, 299, 299), torch.float32)
    # Pixel i of 299 lies at (i + 0.5) * 2 / 299 - 0.5 of two, and stays within their centres.
    places = ((torch.arange(299) + 0.5) * 2 / 299 - 0.5).clamp(0, 1)
    torch.testing.assert_close(resized[0, 0, 150], places, rtol=0, atol=1e-4)
