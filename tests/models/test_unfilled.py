import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

from jumar.models.alexnet import AlexNet
from jumar.models.biggan import BigGan
from jumar.models.mfcc import Mfcc
from jumar.models.pixelcnn import PixelCNN
from jumar.models.resnext import ResNeXt50
from jumar.models.unfilled import Unfilled

NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "alexnet": lambda: AlexNet(num_classes=3, image_size=63),
    "biggan": lambda: BigGan(width=8),
    "mfcc": Mfcc,
    "pixelcnn": lambda: PixelCNN(codes=5, width=8, layers=2, maps=4, classes=0),
    "resnext50": lambda: ResNeXt50(num_classes=3),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_unfilled_network_equals_the_initialised_one_after_loading(name: str) -> None:
    drawn = NETWORKS[name]()
    with Unfilled():
        unfilled = NETWORKS[name]()
    unfilled.load_state_dict(drawn.state_dict())
    for (key, ours), (_, theirs) in zip(tensors(unfilled), tensors(drawn), strict=True):
        assert torch.equal(ours, theirs), key


def tensors(network: nn.Module) -> list[tuple[str, torch.Tensor]]:
    """Parameters and buffers, including those that are in no checkpoint."""
    return [*network.named_parameters(), *network.named_buffers()]


def test_parameters_draw_no_random_numbers_and_training_continues_as_usual() -> None:
    before = torch.get_rng_state()
    with Unfilled():
        layer = nn.Linear(4, 3)
        nn.init.trunc_normal_(layer.weight, std=0.02, a=-0.04, b=0.04)
    assert torch.equal(torch.get_rng_state(), before)
    assert not layer.weight.any()
    nn.init.normal_(layer.weight)
    assert layer.weight.all()
    kept = copy.deepcopy(layer.weight)
    with torch.no_grad():
        layer.weight.mul_(2)
    assert torch.equal(layer.weight, 2 * kept)
