import pytest
import torch

from jumar.tasks.adversarial_losses import AdversarialLoss, PenalizedLoss, orthogonal_penalty


@pytest.mark.parametrize("kind", AdversarialLoss.kinds)
def test_each_network_gains_by_moving_its_logits_its_way(kind: str) -> None:
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
def test_a_linear_discriminator_is_penalised_by_its_slope(
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
def test_the_orthogonal_penalty_is_the_originals_formula(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    weight = torch.randn(shape)
    expected = 0.5 * (weight @ weight.t() - torch.eye(shape[0])).square().sum()
    torch.testing.assert_close(orthogonal_penalty([weight]), expected)
    torch.testing.assert_close(orthogonal_penalty([weight, weight]), 2 * expected)
