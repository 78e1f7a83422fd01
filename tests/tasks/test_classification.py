import math

import pytest
import torch
from torch import nn

from jumar.data.pixels.preprocessing import plain_preprocessing
from jumar.tasks.classification import ClassificationTask
from tests.tasks.means import means


class Fixed(nn.Module):
    """Gives the logits it was made with."""

    def __init__(self, logits: torch.Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.logits[: len(images)]


def task_for(
    logits: torch.Tensor, smoothing: float = 0.1, weights: torch.Tensor | None = None
) -> ClassificationTask:
    return ClassificationTask(
        Fixed(logits),
        plain_preprocessing(),
        train_data=None,
        eval_data=None,
        label_smoothing=smoothing,
        num_classes=4,
        decays=lambda name, parameter: True,
        class_weights=weights,
    )


def batch(labels: list[int]) -> dict[str, torch.Tensor]:
    return {
        "image": torch.zeros(len(labels), 3, 4, 4, dtype=torch.uint8),
        "label": torch.tensor(labels),
    }


def score(logits: torch.Tensor, labels: list[int]) -> dict[str, float]:
    task = task_for(logits)
    return task.summarize(task.evaluate_batch(batch(labels)))


def test_top1_and_top5_agree_with_sorting() -> None:
    logits = torch.randn(50, 9, generator=torch.Generator().manual_seed(1))
    labels = [i % 9 for i in range(50)]
    order = logits.argsort(dim=1, descending=True)
    result = score(logits, labels)
    for k in (1, 5):
        right = sum(labels[i] in order[i, :k] for i in range(50))
        assert result[f"top{k}"] == pytest.approx(100 * right / 50)


def test_equal_logits_score_like_always_predicting_the_first_class() -> None:
    result = score(torch.zeros(10, 10), list(range(10)))
    assert (result["top1"], result["top5"]) == (10.0, 50.0)


def test_nan_logits_are_never_correct() -> None:
    assert score(torch.full((4, 3), float("nan")), [0, 1, 2, 0])["top1"] == 0.0


def test_sums_over_parts_equal_those_over_the_whole() -> None:
    logits = torch.randn(10, 4)
    labels = [i % 4 for i in range(10)]
    whole = task_for(logits).evaluate_batch(batch(labels))
    parts = [task_for(logits[a:b]).evaluate_batch(batch(labels[a:b])) for a, b in ((0, 7), (7, 10))]
    for name, value in whole.items():
        torch.testing.assert_close(sum(part[name] for part in parts), value)


def test_loss_equals_the_explicit_smoothed_cross_entropy() -> None:
    logits, labels = torch.randn(6, 5), [0, 1, 2, 3, 4, 0]
    target = torch.full((6, 5), 0.1 / 5)
    for row, label in enumerate(labels):
        target[row, label] += 0.9
    expected = -(target * logits.log_softmax(1)).sum(1).mean()
    loss = means(task_for(logits).objectives[0], batch(labels))["loss"]
    torch.testing.assert_close(loss, expected)


def mixed_batch(
    labels: list[int], others: list[int], shares: list[float]
) -> dict[str, torch.Tensor]:
    count = len(labels)
    return {
        **batch(labels),
        "mixed_label": torch.tensor(others),
        "own_share": torch.tensor(shares),
        "mixed_box": torch.zeros(count, 4, dtype=torch.int64),
        "mixed_opacity": torch.zeros(count),
    }


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_of_mixed_images_is_the_cross_entropy_with_soft_targets(
    smoothing: float,
) -> None:
    logits = torch.randn(4, 5, generator=torch.Generator().manual_seed(1))
    labels, others, shares = [0, 1, 2, 3], [1, 0, 3, 4], [0.25, 1.0, 0.5, 0.0]
    objective = task_for(logits, smoothing).objectives[0]
    loss = objective.sums(mixed_batch(labels, others, shares))["loss"]
    targets = torch.zeros(4, 5)
    for row, (own, other, share) in enumerate(zip(labels, others, shares, strict=True)):
        targets[row, own] += share
        targets[row, other] += 1 - share
    targets = (1 - smoothing) * targets + smoothing / 5
    expected = -(targets * logits.log_softmax(dim=1)).sum()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)


def test_losses_of_parts_of_a_mixed_batch_add_up_to_the_whole() -> None:
    logits = torch.randn(1, 5, generator=torch.Generator().manual_seed(1)).expand(6, 5).clone()
    whole = mixed_batch([0, 1, 2, 3, 4, 0], [1, 0, 3, 2, 0, 4], [0.3, 0.3, 0.8, 0.8, 0.1, 0.1])
    objective = task_for(logits).objectives[0]
    parts = [
        objective.sums({name: value[rows] for name, value in whole.items()})["loss"]
        for rows in (slice(0, 2), slice(2, 6))
    ]
    assert sum(parts).item() == pytest.approx(objective.sums(whole)["loss"].item(), rel=1e-6)


def test_mixed_images_are_weighted_by_both_classes() -> None:
    logits = torch.randn(4, 5, generator=torch.Generator().manual_seed(2))
    weights = torch.tensor([3.0, 1.0, 0.5, 0.0, 2.0])
    labels, others, shares = [0, 1, 2, 4], [1, 0, 4, 3], [0.25, 0.25, 1.0, 0.5]
    objective = task_for(logits, 0.0, weights).objectives[0]
    mixed = mixed_batch(labels, others, shares)
    losses = -logits.log_softmax(dim=1)
    parts = [
        (row, label, weights[label].item() * part)
        for row, (own, other, share) in enumerate(zip(labels, others, shares, strict=True))
        for label, part in ((own, share), (other, 1 - share))
    ]
    expected = sum(weight * losses[row, label].item() for row, label, weight in parts)
    assert objective.sums(mixed)["loss"].item() == pytest.approx(expected, rel=1e-6)
    total = sum(weight for _, _, weight in parts)
    assert objective.weights(mixed)["loss"].item() == pytest.approx(total, rel=1e-6)


def test_evaluation_loss_is_divided_by_the_sample_weights() -> None:
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    weights = torch.tensor([1.0, 4.0])
    task = task_for(logits, smoothing=0.0, weights=weights)
    losses = [math.log1p(math.exp(-2)), math.log1p(math.exp(-1)), math.log1p(math.exp(3))]
    result = task.evaluate_batch(batch([0, 1, 1]))
    assert result["confusion"].tolist() == [[1, 0], [1, 1]]
    assert (result["count"].item(), result["weight"].item()) == (3, 9)
    assert task.summarize(result) == pytest.approx(
        {
            "top1": 100 * 2 / 3,
            "top5": 100.0,
            "loss": (losses[0] + 4 * losses[1] + 4 * losses[2]) / 9,
        }
    )
    plain = task_for(logits, smoothing=0.0)
    assert plain.summarize(plain.evaluate_batch(batch([0, 1, 1])))["loss"] == pytest.approx(
        sum(losses) / 3
    )
    assert plain.objectives[0].weights(batch([0, 1, 1])) == {}


@pytest.mark.parametrize(("classes", "counted"), [(50, "confusion"), (51, "class_right")])
def test_confusions_are_counted_for_up_to_fifty_classes(classes: int, counted: str) -> None:
    logits = torch.eye(classes)[[2, 2, 7]]
    sums = task_for(logits).evaluate_batch(batch([2, 3, 7]))
    assert counted in sums
    assert ("confusion" in sums) != ("class_right" in sums)
    if counted == "class_right":
        right, count = torch.zeros(classes), torch.zeros(classes)
        right[[2, 7]] = 1
        count[[2, 3, 7]] = 1
        assert torch.equal(sums["class_right"].float(), right)
        assert torch.equal(sums["class_count"].float(), count)


def test_unnamed_classes_are_numbered_and_decay_follows_the_network() -> None:
    task = task_for(torch.tensor([[0.0, 1, 0], [0, 0, 1]]))
    (table,) = task.score_tables(task.evaluate_batch(batch([1, 0])))
    assert table.title == "confusion matrix (images)"
    assert list(table.header) == ["true \\ predicted", "0", "1", "2", "right %"]
    assert table.rows == [
        ["0", "0", "0", "1", "0.0"],
        ["1", "0", "1", "0", "100.0"],
        ["2", "0", "0", "0", "-"],
    ]
    network = Fixed(torch.zeros(1, 2))
    for answer in (True, False):
        asked = ClassificationTask(
            network,
            plain_preprocessing(),
            train_data=None,
            eval_data=None,
            label_smoothing=0.0,
            num_classes=2,
            decays=lambda name, parameter, answer=answer: answer,
        )
        assert asked.objectives[0].decays("x", network.logits) is answer
        assert asked.outputs == ()
        assert (asked.num_classes, asked.model) == (2, network)
