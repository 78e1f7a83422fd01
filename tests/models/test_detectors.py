"""PSENet and EAST apart from the numbers of the originals (tests/parity)."""

import math

import pytest
import torch

from jumar.models import east, psenet
from jumar.models.east import East
from jumar.models.psenet import PSENet
from jumar.models.slim_convolution import decays
from jumar.weights.matching import match_names
from jumar.weights.tensor_types import TensorEntry


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Some draws of untrained weights saturate every output."""
    torch.manual_seed(0)


def image(height: int = 64, width: int = 96) -> torch.Tensor:
    random = torch.Generator().manual_seed(1)
    return torch.randint(0, 256, (2, 3, height, width), generator=random).float()


def small_psenet(**changed: object) -> PSENet:
    return PSENet(depth=18, width=8, **changed)


def small_east(**changed: object) -> East:
    return East(depth=18, **changed)


BOTH = pytest.mark.parametrize("build", [small_psenet, small_east], ids=["psenet", "east"])


def test_psenet_gives_probabilities_at_a_quarter_of_the_size() -> None:
    maps = small_psenet(kernels=3).eval()(image())
    assert maps.shape == (2, 3, 16, 24)
    assert maps.dtype == torch.float32
    assert ((maps >= 0) & (maps <= 1)).all()
    assert maps.unique().numel() > 2


def test_east_gives_scores_distances_up_to_the_text_scale_and_angles_up_to_a_quarter_turn() -> None:
    model = East(depth=18, text_scale=100).eval()
    with torch.no_grad():
        for head, bias in ((model.distances, 50.0), (model.angle, -50.0)):
            head.conv.bias.fill_(bias)
        result = model(image())
    assert result.score.shape == (2, 1, 16, 24)
    assert result.geometry.shape == (2, 5, 16, 24)
    assert result.geometry[:, :4].max().item() == pytest.approx(100)
    assert result.geometry[:, 4].min().item() == pytest.approx(-math.pi / 4)


@BOTH
def test_outputs_are_float32_in_half_precision(build) -> None:
    model = build()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = model(image())
    outputs = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    assert all(output.dtype == torch.float32 for output in outputs)


@BOTH
def test_matrix_products_equal_convolutions(build) -> None:
    product = build().double().eval().to(memory_format=torch.channels_last)
    convolution = build(matrix_product=False).double().eval()
    convolution.load_state_dict(product.state_dict())
    pictures = image().double()
    for ours, theirs in zip(product(pictures), convolution(pictures), strict=True):
        torch.testing.assert_close(ours, theirs)


@BOTH
def test_weight_decay_applies_only_to_kernels(build) -> None:
    with torch.device("meta"):
        model = build()
    kernels = {
        f"{path}.weight"
        for path, module in model.named_modules()
        if isinstance(module, torch.nn.Conv2d)
    }
    assert {name for name, p in model.named_parameters() if decays(name, p)} == kernels


@pytest.mark.parametrize(
    ("module", "build"), [(psenet, small_psenet), (east, small_east)], ids=["psenet", "east"]
)
def test_every_weight_of_a_small_network_has_one_tensorflow_name(module, build) -> None:
    with torch.device("meta"):
        model = build()
    variables = module.tf_names(model).variables
    weights = [name for name in model.state_dict() if not name.endswith("num_batches_tracked")]
    assert sorted(variable.name for variable in variables) == sorted(weights)
    assert len({variable.tf_name for variable in variables}) == len(variables)


@pytest.mark.parametrize(
    ("module", "build"), [(psenet, PSENet), (east, East)], ids=["psenet", "east"]
)
def test_slims_imagenet_checkpoint_fits_the_whole_backbone(module, build) -> None:
    """Its names and shapes, as `resnet_v1_50_2016_08_28` has them."""
    with torch.device("meta"):
        model = build()
    names = module.tf_names(model)
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    backbone = [v for v in names.variables if v.tf_name.startswith("resnet_v1_50/")]
    stored = {v.tf_name: v.to_tensorflow(torch.empty(shapes[v.name])).shape for v in backbone}
    others = {"logits/weights": (1, 1, 2048, 1000), "logits/biases": (1000,), "mean_rgb": (3,)}
    stored |= {f"resnet_v1_50/{name}": shape for name, shape in others.items()}
    stored["global_step"] = ()
    entries = {
        name: TensorEntry(name=name, shape=shape, dtype="float32") for name, shape in stored.items()
    }
    matching = match_names(names, entries, shapes)
    assert [match.variable for match in matching.matches] == backbone
    assert len(backbone) == 265
    assert not matching.leftover
    assert not matching.wrong_shape
    assert {v.tf_name.split("/")[0] for v in matching.missing} == {
        "feature_fusion" if module is east else "build_feature_pyramid",
        *(() if module is east else ("feature_results",)),
    }
