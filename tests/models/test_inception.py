import pytest
import torch

from jumar.models.inception import FEATURES, FidInception, inception_features

TORCHVISION = 27_161_264
"""Parameters of torchvision's inception_v3, as its documentation gives them."""
AUXILIARY = (768 * 128 + 256) + (128 * 768 * 25 + 2 * 768) + (768 + 1) * 1000
LOGITS = (2048 + 1) * 1000


@pytest.fixture(scope="module")
def network() -> FidInception:
    torch.manual_seed(0)
    return FidInception().eval()


def test_it_has_the_parameters_of_torchvisions_network_without_its_logits(
    network: FidInception,
) -> None:
    assert sum(p.numel() for p in network.parameters()) == TORCHVISION - AUXILIARY - LOGITS
    names = network.state_dict()
    assert len(names) == 94 * 6
    assert names["Mixed_6c.branch7x7dbl_3.conv.weight"].shape == (160, 160, 1, 7)
    assert names["Mixed_7b.branch3x3dbl_3b.conv.weight"].shape == (384, 384, 3, 1)


def test_pictures_of_any_size_give_features_without_gradients_in_float32(
    network: FidInception,
) -> None:
    images = torch.rand(1, 3, 40, 64) * 2 - 1
    features = inception_features(network, images)
    assert features.shape == (1, FEATURES)
    assert features.dtype == torch.float32
    assert not features.requires_grad
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(inception_features(network, images), features)


def test_mean_pools_leave_out_the_border_and_the_last_block_takes_the_maximum(
    network: FidInception,
) -> None:
    """A constant picture stays constant through a mean that does not count its padding."""
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
