import pytest
import torch

from jumar.models.alexnet import SMALLEST_IMAGE, AlexNet, decays, tf_variables
from jumar.models.keyed_dropout import KeyedDropout
from jumar.models.keyed_random import set_random_position
from jumar.models.tf_layout import DenseKernelAfterFlatten

WEIGHT_DECAY = 1e-4
LAYERS = ["conv1", "conv2", "conv3", "conv4", "conv5", "dense1", "dense2", "classifier"]


def tiny(**changes: object) -> AlexNet:
    settings: dict[str, object] = {"num_classes": 4, "image_size": 67}
    return AlexNet(**(settings | changes))  # type: ignore[arg-type]


def test_parameter_count_matches_the_original() -> None:
    with torch.device("meta"):
        model = AlexNet(num_classes=1000)
    assert sum(p.numel() for p in model.parameters()) == 61_266_088


def test_state_dict_names_are_stable() -> None:
    expected = [f"{layer}.{part}" for layer in LAYERS for part in ("weight", "bias")]
    assert list(tiny().state_dict()) == expected


@pytest.mark.parametrize("image_size", [SMALLEST_IMAGE, 64, 99, 100, 224])
def test_any_image_size_gives_logits(image_size: int) -> None:
    with torch.device("meta"):
        model = AlexNet(num_classes=10, image_size=image_size).eval()
        logits = model(torch.empty(2, 3, image_size, image_size))
    assert logits.shape == (2, 10)


def test_too_small_image_is_refused_with_the_minimum_size() -> None:
    with pytest.raises(ValueError, match="63 px"):
        AlexNet(num_classes=10, image_size=62)


def test_image_of_another_size_than_built_for_is_refused() -> None:
    with pytest.raises(ValueError, match="67 px"):
        tiny().eval()(torch.zeros(1, 3, 70, 70))


def test_unknown_initialization_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="he_uniform, xavier"):
        tiny(initialization="he")


def test_regularisation_at_initialisation_matches_the_original() -> None:
    terms: list[float] = []
    for seed in range(3):
        torch.manual_seed(seed)
        model = AlexNet(num_classes=1000)
        terms.append(sum(p.double().square().sum().item() for p in model.parameters()) / 2)
    assert round(WEIGHT_DECAY * sum(terms) / len(terms), 3) == 1.038


@pytest.mark.parametrize(
    ("initialization", "limit"),
    [
        ("he_uniform", (6 / 2400) ** 0.5),
        ("xavier", (6 / (2400 + 4800)) ** 0.5),
        ("he_uniform_custom", (1 / 2400) ** 0.5),
    ],
)
def test_weights_are_uniform_within_the_limit_of_the_initialisation(
    initialization: str, limit: float
) -> None:
    torch.manual_seed(0)
    weight = tiny(initialization=initialization).conv2.weight
    assert 0.999 * limit < weight.abs().max().item() <= limit
    assert weight.std().item() == pytest.approx(limit / 3**0.5, rel=0.01)


def test_biases_start_at_zero() -> None:
    assert all(not p.any() for name, p in tiny().named_parameters() if name.endswith("bias"))


def test_relu_on_the_logits_is_optional() -> None:
    torch.manual_seed(0)
    images = torch.randn(4, 3, 67, 67)
    model = tiny().eval()
    with torch.no_grad():
        with_relu = model(images)
        model.logits_relu = False
        without = model(images)
    assert (without < 0).any()
    assert torch.equal(with_relu, without.relu())


def test_dropout_follows_each_hidden_dense_layer_with_its_probability() -> None:
    model = tiny(dropout=0.2)
    assert [m.p for m in model.modules() if isinstance(m, KeyedDropout)] == [0.2, 0.2]
    assert AlexNet.__init__.__kwdefaults__["dropout"] == pytest.approx(1 - 0.65)


def test_both_dropouts_are_applied_each_to_its_own_layer() -> None:
    model = tiny(dropout=0.2)
    taken: list[tuple[str, torch.Size]] = []
    for name in ("dropout1", "dropout2"):
        model.get_submodule(name).register_forward_hook(
            lambda _, values, out, name=name: taken.append((name, out.shape))
        )
    set_random_position(model, 1, 0)
    model(torch.randn(2, 3, model.image_size, model.image_size))
    assert taken == [
        ("dropout1", torch.Size([2, model.dense1.out_features])),
        ("dropout2", torch.Size([2, model.dense2.out_features])),
    ]


def test_gradients_of_a_split_batch_add_up_to_those_of_the_whole() -> None:
    torch.manual_seed(0)
    model = tiny().double()
    images = torch.randn(6, 3, 67, 67, dtype=torch.float64)

    def gradient(pieces: tuple[torch.Tensor, ...]) -> torch.Tensor:
        model.zero_grad()
        row = 0
        for piece in pieces:
            set_random_position(model, 99, row)
            model(piece).square().sum().backward()
            row += len(piece)
        assert model.conv1.weight.grad is not None
        return model.conv1.weight.grad.clone()

    torch.testing.assert_close(gradient(images.split([4, 2])), gradient((images,)))


def test_weight_decay_applies_to_every_parameter() -> None:
    assert all(decays(name, p) for name, p in tiny().named_parameters())


def test_variables_round_trip_at_another_image_size() -> None:
    model = tiny()
    state = model.state_dict()
    for variable in tf_variables(model):
        again = variable.to_torch(variable.to_tensorflow(state[variable.name]))
        assert torch.equal(again, state[variable.name])


def test_network_has_the_layers_of_the_original() -> None:
    torch.manual_seed(0)
    model = tiny(logits_relu=False).eval()
    images = torch.randn(1, 3, 67, 67)
    functional = torch.nn.functional
    with torch.no_grad():
        x = images
        for number, (stride, padding, pooled) in enumerate(
            [(4, 2, True), (1, 2, True), (1, 1, False), (1, 1, False), (1, 1, True)], start=1
        ):
            layer = model.get_submodule(f"conv{number}")
            x = functional.conv2d(x, layer.weight, layer.bias, stride, padding).relu()
            x = functional.max_pool2d(x, 3, 2) if pooled else x
        for name in ("dense1", "dense2", "classifier"):
            layer = model.get_submodule(name)
            x = functional.linear(x.flatten(1), layer.weight, layer.bias)
            x = x if name == "classifier" else x.relu()
        torch.testing.assert_close(model(images), x)
    assert model.layer_order() == LAYERS
    assert [tuple(p.shape) for name, p in model.named_parameters() if name.endswith("weight")] == [
        (96, 3, 11, 11),
        (192, 96, 5, 5),
        (384, 192, 3, 3),
        (256, 384, 3, 3),
        (256, 256, 3, 3),
        (4096, 256),
        (4096, 4096),
        (4, 4096),
    ]
    assert tiny().logits_relu is True


def test_variables_are_named_as_in_the_originals_graph() -> None:
    with torch.device("meta"):
        model = AlexNet(num_classes=10)
    layers = ["conv2d", *(f"conv2d_{n}" for n in (1, 2, 3, 4)), "dense", "dense_1", "dense_2"]
    variables = tf_variables(model)
    assert [(v.tf_name, v.name) for v in variables] == [
        (f"{theirs}/{part}", f"{ours}.{'weight' if part == 'kernel' else part}")
        for theirs, ours in zip(layers, LAYERS, strict=True)
        for part in ("kernel", "bias")
    ]
    # 224 px end in 6 x 6 positions.
    assert variables[10].layout == DenseKernelAfterFlatten(height=6, width=6, channels=256)
