from typing import Any

import torch

from jumar.data.pixels.picture_grid import picture_grid, side_by_side
from jumar.data.pixels.preprocessing import plain_preprocessing
from jumar.tasks.classification import ClassificationTask
from jumar.tasks.mistakes import MAX_MISTAKES, SurestMistakes, weakest_classes
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
    """Images of which each is all of its number."""
    numbers = torch.arange(count, dtype=torch.uint8).view(-1, 1, 1, 1)
    return numbers.expand(-1, 3, height, 6).contiguous()


def test_confusion_counts_every_sample_and_its_diagonal_is_top1() -> None:
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


def test_least_recognised_of_many_classes_are_listed() -> None:
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


def test_most_confident_mistakes_of_all_batches_come_first() -> None:
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
    best = torch.where(wrong, sure, 0.0).topk(MAX_MISTAKES)
    assert [row[3] for row in table.rows] == [f"{100 * value:.1f}" for value in best.values]
    assert all(row[1:3] == ["dog", "cat"] for row in table.rows)
    assert sheet.image[5, 5].tolist() == [int(best.indices[0])] * 3
    assert mistakes.tables() == []
    assert mistakes.illustrations(()) == []


def test_classifier_without_mistakes_has_no_sheet() -> None:
    task = task_for(torch.eye(3), 3)
    task.evaluate_batch({"image": pictures(3, height=200), "label": torch.arange(3)})
    assert task.illustrate() == []


def test_sheet_and_the_table_list_the_same_mistakes() -> None:
    mistakes = SurestMistakes()
    shares = torch.tensor([[0.25, 0.75, 0.0], [0.1, 0.3, 0.6], [0.9, 0.05, 0.05], [0.5, 0.2, 0.3]])
    labels, predicted = torch.tensor([0, 1, 0, 2]), torch.tensor([1, 2, 0, 0])
    images = torch.stack([torch.full((3, 192, 96), 10.0 * (n + 1)) for n in range(4)])
    mistakes.add(images, shares.log(), labels, predicted)
    (sheet,) = mistakes.illustrations(("cat", "dog"))
    (table,) = mistakes.tables()
    assert table.title == "mistakes with the highest probability"
    assert list(table.header) == ["image", "true", "predicted", "probability %"]
    assert table.rows == [
        ["1", "cat", "dog", "75.0"],
        ["2", "dog", "2", "60.0"],
        ["3", "2", "cat", "50.0"],
    ]
    assert sheet.name == "mistakes"
    assert sheet.caption == (
        "the 3 mistakes with the highest probability, numbered as in the table of mistakes"
    )
    # Thumbnails are 96 px high, and half as wide as these images are high.
    tiles = [
        side_by_side([torch.full((3, 96, 48), level, dtype=torch.uint8)], [number])
        for number, level in (("1", 10), ("2", 20), ("3", 40))
    ]
    expected = picture_grid(torch.stack(tiles).permute(0, 3, 1, 2), columns=8)
    assert torch.equal(sheet.image, expected)


def test_small_images_are_enlarged_by_repetition_and_large_ones_shrunk_by_averaging() -> None:
    def shown(picture: torch.Tensor) -> torch.Tensor:
        mistakes = SurestMistakes()
        mistakes.add(
            picture[None], torch.tensor([[0.0, 1.0]]), torch.tensor([0]), torch.tensor([1])
        )
        (sheet,) = mistakes.illustrations(())
        return sheet.image[:96, :, 0].int()

    small = shown(torch.tensor([[0.0, 100.0], [200.0, 300.0]]).expand(3, 2, 2))
    assert small.shape == (96, 96)
    assert small[47:49, 47:49].tolist() == [[0, 100], [200, 255]]
    large = shown(torch.arange(192.0).view(192, 1).expand(3, 192, 192))
    # Means of two rows, of which halves are rounded to even numbers, as torch does.
    assert large[:4, 40].tolist() == [0, 2, 4, 6]


def test_mistakes_are_laid_out_in_rows_of_eight_up_to_a_full_sheet() -> None:
    mistakes = SurestMistakes()
    zeros = torch.zeros(30, dtype=torch.int64)
    logits = torch.zeros(30, 2)
    logits[:, 1] = torch.arange(30) / 10
    mistakes.add(pictures(30, height=3), logits, zeros, zeros + 1)
    # Other sizes cannot be shown beside them.
    mistakes.add(pictures(30, height=6), logits + 1, zeros, zeros + 1)
    (sheet,) = mistakes.illustrations(())
    assert sheet.caption.startswith("the 24 mistakes")
    assert sheet.image.shape[1] == 8 * (2 * 96 + 2) - 2
    columns = [sheet.image[5, number * 194 + 5, 0].item() for number in range(8)]
    assert columns == [29, 28, 27, 26, 25, 24, 23, 22]
    # What was drawn is forgotten once its table is taken.
    assert len(mistakes.tables()[0].rows) == 24
    assert mistakes.tables() == []


def test_classes_without_samples_are_omitted_and_ties_keep_their_order() -> None:
    right, count = torch.tensor([1.0, 0, 3, 1, 1]), torch.tensor([2.0, 0, 4, 2, 1])
    table = weakest_classes(right, count, ("a", "b", "c"), 3)
    assert table.title == "the 3 classes with the lowest accuracy"
    assert list(table.header) == ["class", "samples", "right %"]
    assert table.rows == [["a", "2", "50.0"], ["3", "2", "50.0"], ["c", "4", "75.0"]]
    whole = weakest_classes(right, count, (), 5)
    assert [row[0] for row in whole.rows] == ["0", "3", "2", "4"]
