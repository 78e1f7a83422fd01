import pytest
import torch
from torch import nn

from jumar.models.code_sampling import sample_codes
from jumar.models.keyed_random import keyed_uniform, random_position
from jumar.models.pixelcnn import GatedConv2d, MaskedConv2d, PixelCNN

SIDE, CODES, WIDTH = 5, 7, 4


def small(classes: int = 0, layers: int = 3) -> tuple[PixelCNN, torch.Tensor]:
    torch.manual_seed(0)
    model = PixelCNN(codes=CODES, width=WIDTH, layers=layers, maps=8, classes=classes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.5 * torch.randn_like(parameter))
    return model.eval(), torch.randn(CODES, WIDTH)


def test_parameter_count_matches_the_published_mnist_checkpoint() -> None:
    model = PixelCNN(codes=5, width=64, layers=12, maps=32, classes=10)
    assert 4 * sum(p.numel() for p in model.parameters()) == 2_166_548  # bytes of its data file


@pytest.mark.parametrize("place", [0, 1, 7, 12, 24])
def test_position_depends_only_on_earlier_ones(place: int) -> None:
    model, _ = small()
    vectors = torch.randn(1, WIDTH, SIDE, SIDE, requires_grad=True)
    logits = model(vectors)[0, :, place // SIDE, place % SIDE]
    (gradient,) = torch.autograd.grad(logits.square().sum(), vectors)
    seen = gradient[0].abs().sum(0).flatten() > 0
    assert not seen[place:].any()
    if place:
        assert seen[place - 1]


def test_every_weight_has_a_gradient() -> None:
    model, _ = small(classes=3)
    model(torch.randn(2, WIDTH, SIDE, SIDE), torch.tensor([0, 2])).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_classes_change_the_logits() -> None:
    model, _ = small(classes=3)
    vectors = torch.randn(1, WIDTH, SIDE, SIDE).expand(2, -1, -1, -1)
    one, other = model(vectors, torch.tensor([0, 1]))
    assert not torch.allclose(one, other)


@pytest.mark.parametrize("classes", [0, 3])
def test_incremental_sampling_equals_full_forward_passes(classes: int) -> None:
    model, codebook = small(classes)
    labels = torch.tensor([0, 2, 1, 1]) if classes else None
    drawn = sample_codes(
        model, codebook, rows=4, height=SIDE, width=SIDE + 1, seed=11, labels=labels
    )
    codes = torch.zeros_like(drawn)
    with torch.no_grad():
        for place in range(SIDE * (SIDE + 1)):
            y, x = divmod(place, SIDE + 1)
            logits = model(codebook[codes].permute(0, 3, 1, 2), labels)[:, :, y, x]
            position = random_position((11 << 32) + place, 0)
            uniform = keyed_uniform(4, CODES, position, torch.device("cpu"))
            codes[:, y, x] = (logits - torch.log(-torch.log(uniform))).argmax(1)
    assert torch.equal(drawn, codes)


def test_image_of_a_seed_does_not_depend_on_how_many_are_drawn() -> None:
    model, codebook = small()

    def draw(rows: int, first: int, seed: int = 5) -> torch.Tensor:
        return sample_codes(
            model, codebook, rows=rows, height=SIDE, width=SIDE, seed=seed, first_row=first
        )

    many = draw(6, 0)
    assert torch.equal(many[2:5], draw(3, 2))
    assert not torch.equal(many, draw(6, 0, seed=6))
    assert len({tuple(row.flatten().tolist()) for row in many}) == 6


def test_codes_are_drawn_with_the_models_probabilities() -> None:
    model, codebook = small(layers=1)
    with torch.no_grad():
        expected = model(torch.zeros(1, WIDTH, 1, 1))[0, :, 0, 0].softmax(0)
    drawn = sample_codes(model, codebook, rows=20_000, height=1, width=1, seed=3)
    shares = torch.bincount(drawn.flatten(), minlength=CODES) / 20_000
    torch.testing.assert_close(shares, expected, rtol=0, atol=0.012)


def test_low_temperature_selects_the_likeliest_code() -> None:
    model, codebook = small()
    with torch.no_grad():
        likeliest = model(torch.zeros(1, WIDTH, 1, 1))[0, :, 0, 0].argmax()
    drawn = sample_codes(model, codebook, rows=50, height=1, width=1, seed=3, temperature=1e-4)
    assert (drawn == likeliest).all()


def masked(weight: torch.Tensor, sees_itself: bool) -> torch.Tensor:
    """A kernel with zeros at all that comes after a position in reading order, or at it too."""
    height, width = weight.shape[2:]
    mask = torch.zeros(height * width)
    mask[: height * width // 2 + sees_itself] = 1
    return weight * mask.view(height, width)


@pytest.mark.parametrize("classes", [0, 3])
def test_network_has_the_layers_of_the_original(classes: int) -> None:
    model, _ = small(classes)
    vectors = torch.randn(2, WIDTH, SIDE, SIDE + 1)
    labels = torch.tensor([2, 0])

    def convolved(x: torch.Tensor, layer: MaskedConv2d, sees_itself: bool) -> torch.Tensor:
        kernel = masked(layer.weight, sees_itself)
        padding = (kernel.shape[2] // 2, kernel.shape[3] // 2)
        return nn.functional.conv2d(x, kernel, layer.bias, padding=padding)

    def gated(
        x: torch.Tensor, layer: GatedConv2d, sees_itself: bool, added: torch.Tensor
    ) -> torch.Tensor:
        parts = []
        for part, bias in ((layer.value, layer.value_bias), (layer.gate, layer.gate_bias)):
            bias = bias[labels][:, :, None, None] if classes else bias[:, None, None]
            parts.append(convolved(x, part, sees_itself) + bias + added)
        return parts[0].tanh() * parts[1].sigmoid()

    with torch.no_grad():
        vertical = horizontal = vectors
        for number, layer in enumerate(model.layers):
            sees = number > 0
            size = 3 if number else 7
            assert tuple(layer.vertical.value.weight.shape[2:]) == (size, size)
            assert tuple(layer.horizontal.gate.weight.shape[2:]) == (1, size)
            vertical = gated(vertical, layer.vertical, sees, torch.zeros(()))
            across = convolved(vertical, layer.across, sees).relu()
            onward = gated(horizontal, layer.horizontal, sees, across)
            onward = convolved(onward, layer.onward, sees).relu()
            horizontal = onward + horizontal if number else onward
        hidden = convolved(horizontal, model.hidden, True).relu()
        expected = convolved(hidden, model.logits, True)
        torch.testing.assert_close(model(vectors, labels), expected, rtol=1e-4, atol=1e-5)
        if not classes:
            assert torch.equal(model(vectors, labels), model(vectors))


def test_weights_start_within_glorot_bounds_and_biases_at_zero_except_class_biases() -> None:
    torch.manual_seed(0)
    model = PixelCNN(codes=9, width=16, layers=2, maps=32, classes=40)
    gate = model.layers[1].vertical.gate.weight
    limit = (6 / (9 * 64)) ** 0.5
    assert 0.98 * limit < gate.abs().max().item() <= limit
    for bias in (model.layers[0].vertical.value_bias, model.layers[0].vertical.gate_bias):
        assert 0.95 * (6 / 72) ** 0.5 < bias.abs().max().item() <= (6 / 72) ** 0.5
    assert not model.logits.bias.any()
    plain = PixelCNN(codes=9, width=16, layers=1, maps=8)
    assert plain.classes == 0
    assert not plain.layers[0].horizontal.value_bias.any()
    with torch.device("meta"):
        published = PixelCNN(codes=5, width=64)
    assert len(published.layers) == 18
    assert published.hidden.weight.shape == (256, 256, 1, 1)


def test_images_of_each_label_temperature_and_row_use_their_own_random_numbers() -> None:
    model, codebook = small(3)
    labels = torch.tensor([0, 2])
    drawn = sample_codes(
        model,
        codebook,
        rows=2,
        height=2,
        width=3,
        seed=11,
        first_row=4,
        labels=labels,
        temperature=0.4,
    )
    codes = torch.zeros(2, 2, 3, dtype=torch.int64)
    with torch.no_grad():
        for place in range(6):
            y, x = divmod(place, 3)
            logits = model(codebook[codes].permute(0, 3, 1, 2), labels)[:, :, y, x] / 0.4
            position = random_position((11 << 32) + place, 4)
            uniform = keyed_uniform(2, CODES, position, torch.device("cpu"))
            codes[:, y, x] = (logits - torch.log(-torch.log(uniform))).argmax(1)
    assert torch.equal(drawn, codes)
    assert not sample_codes(
        model, codebook, rows=1, height=1, width=1, seed=1, labels=labels[:1]
    ).requires_grad
