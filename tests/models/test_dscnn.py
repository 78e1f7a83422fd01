import re
from dataclasses import FrozenInstanceError

import pytest
import torch

from jumar.models.dscnn import DSCNN, SIZES, read_size, tf_names


@pytest.mark.parametrize(("size", "count"), [("S", 23_180), ("M", 136_580), ("L", 413_736)])
def test_parameter_count_matches_the_published_one(size: str, count: int) -> None:
    model = DSCNN(num_labels=12, size=SIZES[size])
    assert sum(parameter.numel() for parameter in model.parameters()) == count


def test_features_may_have_a_channel_axis() -> None:
    model = DSCNN(num_labels=5).eval()
    features = torch.randn(3, 49, 10)
    logits = model(features)
    assert logits.shape == (3, 5)
    torch.testing.assert_close(model(features[:, None]), logits, rtol=0, atol=0)


@pytest.mark.parametrize("shape", [(1, 1), (25, 10), (98, 10), (30, 40)])
def test_any_number_of_frames_and_coefficients_is_accepted(shape: tuple[int, int]) -> None:
    for size in SIZES.values():
        assert DSCNN(num_labels=3, size=size).eval()(torch.randn(2, *shape)).shape == (2, 3)


def test_custom_size_is_a_list_as_in_the_original() -> None:
    first, second = read_size([2, 8, 5, 4, 2, 1, 16, 3, 3, 2, 2])
    assert (first.channels, first.kernel, first.stride) == (8, (5, 4), (2, 1))
    assert (second.channels, second.kernel, second.stride) == (16, (3, 3), (2, 2))
    model = DSCNN(num_labels=4, size=[2, 8, 5, 4, 2, 1, 16, 3, 3, 2, 2])
    assert model(torch.randn(2, 49, 10)).shape == (2, 4)


@pytest.mark.parametrize("numbers", [[], [1], [2, 8, 5, 4, 2, 1], [1, 8, 5, 4, 0, 1], [0]])
def test_invalid_size_list_is_refused(numbers: list[int]) -> None:
    with pytest.raises(ValueError, match="the number of layers and five"):
        read_size(numbers)


def test_weights_are_initialised_by_glorot_and_biases_at_zero() -> None:
    torch.manual_seed(0)
    model = DSCNN(num_labels=12, size=SIZES["L"])
    depthwise = model.blocks[0].get_submodule("depthwise.conv")
    for name, weight, limit in (
        ("first", model.first.conv.weight, (6 / (40 + 40 * 276)) ** 0.5),
        ("depthwise", depthwise.get_parameter("weight"), (6 / (9 * 276 + 9)) ** 0.5),
        ("classifier", model.classifier.weight, (6 / (276 + 12)) ** 0.5),
    ):
        assert 0.97 * limit < float(weight.detach().abs().max()) <= limit, name
    assert all(not p.any() for name, p in model.named_parameters() if name.endswith("bias"))


def test_batch_norms_have_no_scale_to_train_or_save() -> None:
    names = [*DSCNN(num_labels=12).state_dict()]
    assert "first.norm.bias" in names
    assert not [name for name in names if name.endswith("norm.weight")]


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_channels_last_and_matrix_products_give_the_same_network(
    dtype: torch.dtype | None,
) -> None:
    torch.manual_seed(0)
    model = DSCNN(num_labels=12)
    features = torch.randn(4, 49, 10)
    losses: list[float] = []
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        losses.append(float(model(features).square().mean()))
        model.to(memory_format=torch.channels_last)
        loss = model(features).square().mean()
    loss.backward()
    losses.append(float(loss))
    assert losses[0] == pytest.approx(losses[1], rel=1e-4 if dtype is None else 0.05)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        if dtype is None:
            assert parameter.grad.stride() == parameter.stride(), name


def test_older_variable_names_map_to_newer_ones() -> None:
    names = tf_names(DSCNN(num_labels=12, size=SIZES["L"]))
    known = {variable.tf_name for variable in names.variables}
    reached: set[str] = set()
    for name in known:
        old = re.sub("^DS-CNN/", "MobileNet/", name)
        old = re.sub(r"/(dw|pw)_conv/batch_norm/", r"/\1_batch_norm/", old)
        old = old.replace("/dw_conv/", "/depthwise_conv/").replace("/pw_conv/", "/pointwise_conv/")
        fitting = [(p, r) for p, r in names.renamings if re.fullmatch(p, old)]
        assert len(fitting) == 1, old
        reached.add(re.sub(*fitting[0], old))
        assert not any(re.search(pattern, one) for pattern in names.ignored for one in (old, name))
    assert reached == known


@pytest.mark.parametrize(
    "name",
    [
        "MobileNet/conv_1/batch_norm/Const",
        "MobileNet/conv_ds_4/pw_batch_norm/Const",
        "DS-CNN/conv_1/weights/Adam_1",
        "beta1_power",
        "global_step",
        "Reshape_1/shape",
    ],
)
def test_variables_that_are_not_weights_are_ignored(name: str) -> None:
    assert any(re.search(pattern, name) for pattern in tf_names(DSCNN(num_labels=2)).ignored)


def test_variables_are_named_as_in_the_originals_graph_and_steps_count_twice() -> None:
    model = DSCNN(num_labels=3, size=[3, 4, 5, 3, 2, 1, 6, 3, 3, 1, 1, 5, 3, 3, 2, 2])
    names = tf_names(model)
    rest = ("biases", "batch_norm/beta", "batch_norm/moving_mean", "batch_norm/moving_variance")
    layers = [("conv_1", "weights")]
    for number in (1, 2):
        layers += [(f"conv_ds_{number}/dw_conv", "depthwise_weights")]
        layers += [(f"conv_ds_{number}/pw_conv", "weights")]
    expected = [f"DS-CNN/{scope}/{part}" for scope, kernel in layers for part in (kernel, *rest)]
    expected += ["DS-CNN/fc1/weights", "DS-CNN/fc1/biases"]
    assert [v.tf_name for v in names.variables] == expected
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    theirs = {
        v.tf_name: v.to_tensorflow(torch.zeros(shapes[v.name])).shape for v in names.variables
    }
    assert theirs["DS-CNN/conv_1/weights"] == (5, 3, 1, 4)
    assert theirs["DS-CNN/conv_ds_1/dw_conv/depthwise_weights"] == (3, 3, 4, 1)
    assert theirs["DS-CNN/conv_ds_1/pw_conv/weights"] == (1, 1, 4, 6)
    assert theirs["DS-CNN/fc1/weights"] == (5, 3)
    assert names.averages == "none"
    assert (names.counting.global_step, names.counting.first_number) == (2, 0)
    assert [each.powers for each in names.optimizers] == [
        ("train/beta1_power", "train/beta2_power")
    ]
    assert model.layer_order() == ["first", "blocks.0", "blocks.1", "classifier"]


def test_norms_have_an_offset_and_the_statistics_of_the_original() -> None:
    norms = [m for m in DSCNN(num_labels=3).modules() if isinstance(m, torch.nn.BatchNorm2d)]
    assert len(norms) == 9
    for norm in norms:
        assert (norm.eps, norm.momentum) == (1e-3, 0.04)
        assert (norm.weight == 1).all()
        assert [name for name, _ in norm.named_parameters()] == ["bias"]


def test_layer_size_is_immutable() -> None:
    (size,) = read_size([1, 8, 5, 4, 2, 1])
    with pytest.raises(FrozenInstanceError):
        size.channels = 9  # type: ignore[misc]
    with pytest.raises(ValueError, match="the number of layers and five") as error:
        read_size([1, 8, 5])
    assert str(error.value).endswith(
        "(channels, kernel height and width, stride in time and frequency), not [1, 8, 5]"
    )
