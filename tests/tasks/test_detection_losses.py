"""Losses of the text detectors against formulas written out in NumPy, and over split batches."""

import numpy as np
import pytest
import torch
from torch import Tensor

from jumar.tasks.detection_losses import (
    BalancedCrossEntropy,
    BatchDice,
    DiceAndBoxes,
    HardDice,
    box_losses,
)

SIDE = 6


def drawn(*shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
    return low + (high - low) * torch.rand(
        *shape, generator=torch.Generator().manual_seed(sum(shape))
    )


def kernel_batch(count: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    """Maps, kernels and mask."""
    maps = drawn(count, 3, SIDE, SIDE)
    kernels = (drawn(count, 3, SIDE, SIDE, high=2.0) > 1.4).float()
    return maps, kernels, (drawn(count, SIDE, SIDE) > 0.2).float()


def box_batch(count: int = 3) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Score, geometry, the true ones and mask."""
    distances = drawn(count, 4, SIDE, SIDE, low=1, high=50)
    angles = drawn(count, 1, SIDE, SIDE, low=-0.7, high=0.7)
    geometry = torch.cat([distances, angles], dim=1)
    score = (drawn(count, SIDE, SIDE, high=3.0) > 2).float()
    return (
        drawn(count, SIDE, SIDE, low=0.1, high=0.9),
        geometry,
        score,
        geometry.flip(0) * score.unsqueeze(1),
        (drawn(count, SIDE, SIDE, high=5.0) > 1).float(),
    )


def arrays(*tensors: Tensor) -> list[np.ndarray]:
    return [tensor.double().numpy() for tensor in tensors]


def test_originals_kernel_loss_is_linear_dice_over_the_whole_batch() -> None:
    given = kernel_batch()
    maps, kernels, mask = arrays(*given)

    def dice(number: int, mask: np.ndarray) -> float:
        p, g = maps[:, number] * mask, kernels[:, number] * mask
        return 2 * (p * g).sum() / (g.sum() + p.sum() + 1e-5)

    terms = BatchDice(text_weight=0.6).terms(*given)
    inside = mask * (maps[:, 2] >= 0.5)
    assert terms["text"].item() / 3 == pytest.approx(0.6 * (1 - dice(2, mask)))
    kernel_loss = 1 - (dice(0, inside) + dice(1, inside)) / 2
    assert terms["kernels"].item() / 3 == pytest.approx(0.4 * kernel_loss)


def test_papers_kernel_loss_is_squared_dice_with_the_hardest_background() -> None:
    given = kernel_batch()
    given[1][1] = 0  # an image without text
    maps, kernels, mask = arrays(*given)
    text, inner = 0.0, 0.0

    def dice(p: np.ndarray, g: np.ndarray, mask: np.ndarray) -> float:
        p, g = p * mask, g * mask
        return 2 * (p * g).sum() / ((p**2).sum() + (g**2).sum() + 1e-5)

    for p, g, m in zip(maps, kernels, mask, strict=True):
        hard = m.copy()
        positives = int((g[2] * m).sum())
        if positives:
            hard = g[2] * m
            background = [
                (-p[2, y, x], y, x)
                for y in range(SIDE)
                for x in range(SIDE)
                if m[y, x] > g[2, y, x]
            ]
            for _, y, x in sorted(background)[: int(1.5 * positives)]:
                hard[y, x] = 1
        text += 1 - dice(p[2], g[2], hard)
        inside = m * (p[2] >= 0.5)
        inner += 1 - np.mean([dice(p[n], g[n], inside) for n in range(2)])
    terms = HardDice(negatives=1.5).terms(*given)
    assert terms["text"].item() == pytest.approx(0.7 * text)
    assert terms["kernels"].item() == pytest.approx(0.3 * inner)


def test_without_requested_background_only_text_counts() -> None:
    maps, kernels, mask = kernel_batch()
    mask[:] = 1
    kernels[:, 2, 0, 0] = 1
    changed = torch.where(kernels[:, 2:] > 0, maps[:, 2:], drawn(*maps[:, 2:].shape, high=0.5))
    loss = HardDice(negatives=0.0)
    ours, other = (
        loss.terms(torch.cat([maps[:, :2], last], dim=1), kernels, mask)["text"]
        for last in (maps[:, 2:], changed)
    )
    assert torch.equal(ours, other)


def test_boxes_are_compared_by_overlap_and_angle() -> None:
    _, geometry, _, boxes, _ = box_batch()
    g, b = arrays(geometry, boxes)
    both = (np.minimum(g[:, 1], b[:, 1]) + np.minimum(g[:, 3], b[:, 3])) * (
        np.minimum(g[:, 0], b[:, 0]) + np.minimum(g[:, 2], b[:, 2])
    )
    areas = [(x[:, 0] + x[:, 2]) * (x[:, 1] + x[:, 3]) for x in (g, b)]
    overlap = -np.log((both + 1) / (sum(areas) - both + 1))
    expected = overlap + 7 * (1 - np.cos(g[:, 4] - b[:, 4]))
    np.testing.assert_allclose(box_losses(geometry, boxes, 7.0).numpy(), expected, rtol=1e-4)


def test_easts_original_loss_is_a_hundredth_of_dice_plus_the_mean_box_loss() -> None:
    given = box_batch()
    score, target, mask = arrays(given[0], given[2], given[4])
    p, g = score * mask, target * mask
    terms = DiceAndBoxes().terms(*given)
    dice = 2 * (p * g).sum() / (p.sum() + g.sum() + 1e-5)
    assert terms["score"].item() / 3 == pytest.approx(0.01 * (1 - dice))
    losses = box_losses(given[1], given[3], 20.0).double().numpy() * g
    assert terms["geometry"].item() / 3 == pytest.approx(losses.mean())


def test_easts_paper_loss_is_balanced_per_image() -> None:
    given = box_batch()
    given[2][1] = 0  # an image without text
    score, target, mask = arrays(given[0], given[2], given[4])
    losses = box_losses(given[1], given[3], 10.0).double().numpy()
    entropy, geometry = 0.0, 0.0
    for p, g, m, each in zip(score, target, mask, losses, strict=True):
        beta = 1 - (g * m).sum() / m.sum()
        pixel = -beta * g * np.log(p) - (1 - beta) * (1 - g) * np.log(1 - p)
        entropy += (pixel * m).sum() / m.sum()
        geometry += (each * g * m).sum() / (g * m).sum() if (g * m).any() else 0.0
    terms = BalancedCrossEntropy(score_weight=2.0).terms(*given)
    assert terms["score"].item() == pytest.approx(2 * entropy)
    assert terms["geometry"].item() == pytest.approx(geometry, rel=1e-5)


@pytest.mark.parametrize(
    ("loss", "given"),
    [(HardDice(), kernel_batch()), (BalancedCrossEntropy(), box_batch())],
    ids=["psenet", "east"],
)
def test_paper_losses_do_not_depend_on_how_a_batch_is_split(loss, given) -> None:
    whole = loss.terms(*given)
    parts = [loss.terms(*(each[rows] for each in given)) for rows in (slice(0, 1), slice(1, 3))]
    for name, value in whole.items():
        assert sum(part[name].item() for part in parts) == pytest.approx(value.item(), rel=1e-5)


def test_originals_dice_over_parts_is_their_mean_as_on_several_gpus() -> None:
    given = kernel_batch(count=4)
    parts = [
        BatchDice().terms(*(each[rows] for each in given)) for rows in (slice(0, 2), slice(2, 4))
    ]
    one, other = (part["text"].item() / 2 for part in parts)
    together = sum(part["text"].item() for part in parts) / 4
    assert together == pytest.approx((one + other) / 2)


@pytest.mark.parametrize(
    ("loss", "given"),
    [
        (BatchDice(), kernel_batch()),
        (HardDice(), kernel_batch()),
        (DiceAndBoxes(), box_batch()),
        (BalancedCrossEntropy(), box_batch()),
    ],
)
def test_batch_without_text_has_a_finite_loss_and_gradient(loss, given) -> None:
    if len(given) == 3:
        inputs = [given[0].requires_grad_()]
        terms = loss.terms(given[0], torch.zeros_like(given[1]), torch.zeros_like(given[2]))
    else:
        inputs = [given[0].requires_grad_(), given[1].requires_grad_()]
        zeros = [torch.zeros_like(each) for each in given[2:]]
        terms = loss.terms(given[0], given[1], *zeros)
    total = sum(terms.values())
    assert torch.isfinite(total)
    for gradient in torch.autograd.grad(total, inputs):
        assert torch.isfinite(gradient).all()


def one_row(*values: float) -> Tensor:
    return torch.tensor(values).view(1, 1, -1)


def test_text_threshold_for_inner_kernels_is_one_half() -> None:
    maps = torch.stack([one_row(0.2, 0.4, 0.8), one_row(0.5, 0.49, 0.9)], dim=1)
    kernels = torch.stack([one_row(1, 1, 0), one_row(1, 1, 1)], dim=1)
    mask = torch.ones(1, 1, 3)
    # Of the three pixels the second one is outside: 0.2 is common, 1 and 0.2 + 0.8 are there.
    linear = 1 - 2 * 0.2 / (1 + 1.0 + 1e-5)
    squared = 1 - 2 * 0.2 / (1 + 0.04 + 0.64 + 1e-5)
    for loss, expected in ((BatchDice(), linear), (HardDice(), squared)):
        result = loss.terms(maps, kernels, mask)["kernels"].item()
        assert result == pytest.approx(0.3 * expected, rel=1e-5)


@pytest.mark.parametrize(
    ("negatives", "counting"),
    [(0.0, []), (0.9, []), (1.0, [0.9]), (2.0, [0.9, 0.7]), (9.0, [0.9, 0.7, 0.1])],
)
def test_hardest_background_is_selected_in_proportion_to_text_pixels(
    negatives: float, counting: list[float]
) -> None:
    text = one_row(0.6, 0.1, 0.9, 0.7, 0.95)
    maps = torch.stack([text, text], dim=1)
    kernels = torch.stack([one_row(1, 0, 0, 0, 0)] * 2, dim=1)
    mask = one_row(1, 1, 1, 1, 0)  # the last pixel, which would be the hardest, does not count
    result = HardDice(negatives=negatives, text_weight=1.0).terms(maps, kernels, mask)
    squares = 0.36 + sum(value**2 for value in counting) + 1
    assert result["text"].item() == pytest.approx(1 - 2 * 0.6 / (squares + 1e-5), rel=1e-5)
    assert result["kernels"].item() == 0


def test_single_pixel_of_text_has_the_whole_weight() -> None:
    score, target = one_row(0.8, 0.3), one_row(1, 0)
    geometry = torch.tensor([2.0, 3.0, 4.0, 5.0, 0.5]).view(1, 5, 1, 1).expand(1, 5, 1, 2)
    boxes = torch.tensor([1.0, 4.0, 4.0, 5.0, 0.2]).view(1, 5, 1, 1).expand(1, 5, 1, 2)
    common = (1 + 4) * (3 + 5)
    overlap = -np.log((common + 1) / (6 * 8 + 5 * 9 - common + 1))
    box = overlap + 10 * (1 - np.cos(0.3))
    alone = BalancedCrossEntropy().terms(score, geometry, target, boxes, one_row(1, 0))
    # With nothing but text, the balance leaves nothing of the score.
    assert alone["score"].item() == 0
    assert alone["geometry"].item() == pytest.approx(box, rel=1e-5)
    both = BalancedCrossEntropy().terms(score, geometry, target, boxes, one_row(1, 1))
    assert both["score"].item() == pytest.approx(-(0.5 * np.log(0.8) + 0.5 * np.log(0.7)) / 2)
    assert both["geometry"].item() == pytest.approx(box, rel=1e-5)


def test_certainly_wrong_scores_have_the_maximum_loss() -> None:
    score, target = one_row(0.0, 1.0), one_row(1, 0)
    zeros = torch.zeros(1, 5, 1, 2)
    result = BalancedCrossEntropy().terms(score, zeros, target, zeros, one_row(1, 1))["score"]
    assert result.item() == pytest.approx(-np.log(1e-5) / 2, rel=1e-2)
