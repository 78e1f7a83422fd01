import numpy as np
import pytest
import torch

from jumar.tasks.adversarial_losses import AdversarialLoss, PenalizedLoss, orthogonal_penalty


@pytest.mark.parametrize("kind", AdversarialLoss.kinds)
def test_each_network_lowers_its_loss_by_moving_logits_its_way(kind: str) -> None:
    loss = AdversarialLoss.kinds[kind]()
    real, fake = torch.zeros(3, requires_grad=True), torch.zeros(3, requires_grad=True)
    (loss.real(real).sum() + loss.fake(fake).sum()).backward()
    assert real.grad is not None
    assert fake.grad is not None
    assert (real.grad < 0).all()
    assert (fake.grad >= 0).all() if kind == "lsgan" else (fake.grad > 0).all()
    logits = torch.zeros(3, requires_grad=True)
    loss.generated(logits).sum().backward()
    assert logits.grad is not None
    assert (logits.grad < 0).all()


@pytest.mark.parametrize(
    ("kind", "slope", "expected"),
    [("wgan-gp", 3.0, 40.0), ("wgan-gp", 0.5, 2.5), ("wgan-lp", 0.5, 0.0), ("dragan", 3.0, 40.0)],
)
def test_linear_discriminator_is_penalised_by_its_slope(
    kind: str, slope: float, expected: float
) -> None:
    real, fake = torch.rand(2, 1, 2, 2), torch.rand(2, 1, 2, 2)

    def discriminator(images: torch.Tensor) -> torch.Tensor:
        return slope * images[:, :, 0, 0]

    loss: PenalizedLoss = AdversarialLoss.kinds[kind](penalty=10.0)
    penalty = loss.gradient_penalty(
        discriminator, real, fake, alpha=torch.rand(2, 1, 1, 1), noise=torch.rand_like(real)
    )
    assert penalty.item() == pytest.approx(len(real) * expected, abs=2e-4)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3)])
def test_orthogonal_penalty_matches_the_originals_formula(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    weight = torch.randn(shape)
    expected = 0.5 * (weight @ weight.t() - torch.eye(shape[0])).square().sum()
    torch.testing.assert_close(orthogonal_penalty([weight]), expected)
    torch.testing.assert_close(orthogonal_penalty([weight, weight]), 2 * expected)


LOGITS = np.array([-2.0, 0.5, 3.0])


def cross_entropy(logits: np.ndarray, target: float) -> np.ndarray:
    shares = 1 / (1 + np.exp(-logits))
    return -np.log(shares if target else 1 - shares)


@pytest.mark.parametrize(
    ("kind", "real", "fake", "generated"),
    [
        ("hinge", [3.0, 0.5, 0.0], [0.0, 1.5, 4.0], -LOGITS),
        ("gan", *(cross_entropy(LOGITS, target) for target in (1, 0, 1))),
        ("dragan", *(cross_entropy(LOGITS, target) for target in (1, 0, 1))),
        ("lsgan", (LOGITS - 1) ** 2, LOGITS**2, (LOGITS - 1) ** 2),
        ("wgan-gp", -LOGITS, LOGITS, -LOGITS),
        ("wgan-lp", -LOGITS, LOGITS, -LOGITS),
    ],
)
def test_losses_match_their_papers(
    kind: str, real: np.ndarray, fake: np.ndarray, generated: np.ndarray
) -> None:
    loss = AdversarialLoss.kinds[kind]()
    logits = torch.from_numpy(LOGITS).float()
    for result, expected in (
        (loss.real(logits), real),
        (loss.fake(logits), fake),
        (loss.generated(logits), generated),
    ):
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["wgan-gp", "wgan-lp", "dragan"])
def test_slope_is_evaluated_between_the_images_at_alpha(kind: str) -> None:
    """Half the squared length has the image itself as its slope."""
    random = np.random.default_rng(1)
    real, fake, noise = (random.random((3, 2, 2, 2)) for _ in range(3))
    alpha = np.array([0.25, 0.0, 1.0]).reshape(3, 1, 1, 1)
    other = real + 0.5 * real.std() * noise if kind == "dragan" else fake
    lengths = np.linalg.norm(((1 - alpha) * real + alpha * other).reshape(3, -1), axis=1)
    excess = np.maximum(lengths - 1, 0) if kind == "wgan-lp" else lengths - 1
    assert (lengths > 1).any()
    penalty = AdversarialLoss.kinds[kind](penalty=4.0).gradient_penalty(
        lambda images: images.square().sum((1, 2, 3)) / 2,
        torch.from_numpy(real),
        torch.from_numpy(fake),
        alpha=torch.from_numpy(alpha),
        noise=torch.from_numpy(noise),
    )
    assert penalty.item() == pytest.approx(4 * (excess**2).sum(), rel=1e-5)


def test_penalty_reaches_the_discriminators_weights_and_no_image() -> None:
    weight = torch.tensor(3.0, requires_grad=True)
    real = torch.zeros(2, 1, 1, 1, requires_grad=True)
    penalty = AdversarialLoss.kinds["wgan-gp"]().gradient_penalty(
        lambda images: weight * images[:, 0, 0, 0],
        real,
        torch.ones(2, 1, 1, 1),
        alpha=torch.full((2, 1, 1, 1), 0.5),
        noise=torch.zeros(2, 1, 1, 1),
    )
    penalty.backward()
    # 10 times the square of (3 - 1), of two images.
    assert (penalty.item(), weight.grad) == (80.0, torch.tensor(80.0))
    assert real.grad is None
