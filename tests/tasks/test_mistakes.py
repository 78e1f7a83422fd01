from typing import Any

import torch

from jumar.data.pixels.preprocessing import plain_preprocessing
from jumar.tasks.classification import ClassificationTask
from jumar.tasks.mistakes import MOST, SurestMistakes, weakest_classes
from tests.tasks.test_classification import Fixed

NO_SAMPLES: Any = None


def task_for(logits: torch.Tensor, classes: int) -> ClassificationTask:
    return ClassificationTask(
        Fixed(logits),
        plain_preprocessing(),
        train_data=NO_SAMPLES,
        eval_data=None,
        label_smoothing=0.0,
        num_classes=classes,
        decays=lambda name, parameter: True,
        classes=tuple(f"class {number}" for number in range(classes)),
    )


def pictures(count: int, height: int = 4) -> torch.Tensor:
    """Pictures of which each is all of its number."""
    numbers = torch.arange(count, dtype=torch.uint8).view(-1, 1, 1, 1)
    return numbers.expand(-1, 3, height, 6).contiguous()


def test_the_confusion_counts_every_sample_and_its_diagonal_is_top1() -> None:
    logits = torch.randn(60, 7, generator=torch.Generator().manual_seed(3))
    logits[5:9] = 0.0  # equal logits, of which the first class wins
    logits[9] = float("nan")
    labels = torch.arange(60) % 7
    task = task_for(logits, 7)
    sums = task.evaluate_batch({"image": pictures(60), "label": labels})
    assert sums["confusion"].sum() == 60
    assert sums["confusion"].diagonal().sum() == sums["top1"]
    assert sums["confusion"].sum(dim=1).tolist() == labels.bincount().tolist()
    (table,) = task.score_tables(sums)
    assert table.header[1] == "class 0"
    assert len(table.rows) == 7


def test_of_many_classes_those_recognised_least_are_listed() -> None:
    logits = torch.zeros(120, 60)
    labels = torch.arange(120) % 60
    logits[torch.arange(120), labels] = 1.0
    logits[3] = logits[4]
    task = task_for(logits, 60)
    sums = task.evaluate_batch({"image": pictures(120), "label": labels})
    assert "confusion" not in sums
    (table,) = task.score_tables(sums)
    assert table.rows[0] == ["class 3", "2", "50.0"]
    assert len(table.rows) == 20
    empty = weakest_classes(torch.tensor([0.0, 1.0]), torch.tensor([0.0, 1.0]), (), 20)
    assert empty.rows == [["1", "1", "100.0"]]


def test_the_surest_mistakes_of_all_batches_are_shown_most_certain_first() -> None:
    mistakes = SurestMistakes()
    sure = torch.rand(90, generator=torch.Generator().manual_seed(1)) * 0.4 + 0.5
    logits = torch.stack([sure.log(), (1 - sure).log()], dim=1)
    labels = torch.ones(90, dtype=torch.int64)
    labels[::3] = 0  # these are right
    predicted = torch.zeros(90, dtype=torch.int64)
    images = pictures(90)
    for part in torch.arange(90).split(20):
        mistakes.add(images[part], logits[part], labels[part], predicted[part])
    (sheet,) = mistakes.illustrations(("cat", "dog"))
    (table,) = mistakes.tables()
    wrong = labels != predicted
    best = torch.where(wrong, sure, 0.0).topk(MOST)
    assert [row[3] for row in table.rows] == [f"{100 * value:.1f}" for value in best.values]
    assert all(row[1:3] == ["dog", "cat"] for row in table.rows)
    assert sheet.image[5, 5].tolist() == [int(best.indices[0])] * 3
    assert mistakes.tables() == []
    assert mistakes.illustrations(()) == []


def test_a_classifier_without_mistakes_has_no_sheet() -> None:
    task = task_for(torch.eye(3), 3)
    task.evaluate_batch({"image": pictures(3, height=200), "label": torch.arange(3)})
    assert task.illustrate() == []
