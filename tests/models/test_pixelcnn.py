import pytest
import torch

from jumar.models.code_sampling import sample_codes
from jumar.models.keyed_random import keyed_uniform, random_position
from jumar.models.pixelcnn import PixelCNN

SIDE, CODES, WIDTH = 5, 7, 4


def small(classes: int = 0, layers: int = 3) -> tuple[PixelCNN, torch.Tensor]:
    torch.manual_seed(0)
    model = PixelCNN(codes=CODES, width=WIDTH, layers=layers, maps=8, classes=classes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.5 * torch.randn_like(parameter))
    return model.eval(), torch.randn(CODES, WIDTH)


def test_parameters_are_as_many_as_the_published_mnist_checkpoint_holds() -> None:
    model = PixelCNN(codes=5, width=64, layers=12, maps=32, classes=10)
    assert 4 * sum(p.numel() for p in model.parameters()) == 2_166_548  # bytes of its data file


@pytest.mark.parametrize("place", [0, 1, 7, 12, 24])
def test_a_position_depends_on_those_before_it_and_on_nothing_else(place: int) -> None:
    model, _ = small()
    vectors = torch.randn(1, WIDTH, SIDE, SIDE, requires_grad=True)
    logits = model(vectors)[0, :, place // SIDE, place % SIDE]
    (gradient,) = torch.autograd.grad(logits.square().sum(), vectors)
    seen = gradient[0].abs().sum(0).flatten() > 0
    assert not seen[place:].any()
    if place:
        assert seen[place - 1]


def test_every_weight_has_a_gradient_so_that_ranks_wait_for_none() -> None:
    model, _ = small(classes=3)
    model(torch.randn(2, WIDTH, SIDE, SIDE), torch.tensor([0, 2])).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_classes_change_the_logits() -> None:
    model, _ = small(classes=3)
    vectors = torch.randn(1, WIDTH, SIDE, SIDE).expand(2, -1, -1, -1)
    one, other = model(vectors, torch.tensor([0, 1]))
    assert not torch.allclose(one, other)


@pytest.mark.parametrize("classes", [0, 3])
def test_position_by_position_gives_what_whole_forward_passes_give(classes: int) -> None:
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


def test_a_picture_of_a_seed_is_the_same_however_many_are_drawn() -> None:
    model, codebook = small()

    def draw(rows: int, first: int, seed: int = 5) -> torch.Tensor:
        return sample_codes(
            model, codebook, rows=rows, height=SIDE, width=SIDE, seed=seed, first_row=first
        )

    many = draw(6, 0)
    assert torch.equal(many[2:5], draw(3, 2))
    assert not torch.equal(many, draw(6, 0, seed=6))
    assert len({tuple(row.flatten().tolist()) for row in many}) == 6


def test_codes_are_drawn_as_often_as_the_model_says() -> None:
    model, codebook = small(layers=1)
    with torch.no_grad():
        expected = model(torch.zeros(1, WIDTH, 1, 1))[0, :, 0, 0].softmax(0)
    drawn = sample_codes(model, codebook, rows=20_000, height=1, width=1, seed=3)
    shares = torch.bincount(drawn.flatten(), minlength=CODES) / 20_000
    torch.testing.assert_close(shares, expected, rtol=0, atol=0.012)


def test_a_low_temperature_takes_the_likeliest_code() -> None:
    model, codebook = small()
    with torch.no_grad():
        likeliest = model(torch.zeros(1, WIDTH, 1, 1))[0, :, 0, 0].argmax()
    drawn = sample_codes(model, codebook, rows=50, height=1, width=1, seed=3, temperature=1e-4)
    assert (drawn == likeliest).all()
