"""Objectives and scores of text detectors, on networks that return what they are told."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from jumar.data.pixels.outlines import FOUND, LABELLED, with_outlines
from jumar.data.polygons.detection_data import PROTOCOLS, DetectionData
from jumar.data.polygons.detection_set import open_detection_sets
from jumar.data.polygons.kernel_words import Detection
from jumar.data.polygons.protocol import ICDAR2015, Protocol
from jumar.data.polygons.regions import Corners
from jumar.data.samples import Fetched, SampleKey
from jumar.models.east import EastMaps
from jumar.tasks.detection_losses import BatchDice, DiceAndBoxes
from jumar.tasks.task import ScoreTable
from jumar.tasks.text_detection import (
    BoxObjective,
    BoxReader,
    KernelObjective,
    KernelReader,
    TextDetectionTask,
)
from tests.recipes.small_data import write_signs
from tests.tasks.means import means


class Fixed(nn.Module):
    """Maps of its own, whatever the image."""

    def __init__(self, maps: Tensor) -> None:
        super().__init__()
        self.maps = nn.Parameter(maps)

    def forward(self, images: Tensor) -> Tensor:
        assert images.dtype == torch.float32
        return self.maps


class FixedBoxes(Fixed):
    """The same as EAST returns them: score and geometry in one tensor of six."""

    def forward(self, images: Tensor) -> EastMaps:
        maps = super().forward(images)
        return EastMaps(score=maps[:, :1], geometry=maps[:, 1:])


def drawn(*shape: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(1))


def test_psenets_objective_is_its_loss_on_the_batchs_maps() -> None:
    network = Fixed(drawn(2, 6, 8, 8))
    kernels = (drawn(2, 6, 8, 8) > 0.5).to(torch.uint8)
    mask = torch.ones(2, 8, 8, dtype=torch.uint8)
    batch = {"image": torch.zeros(2, 3, 32, 32, dtype=torch.uint8)}
    terms = means(
        KernelObjective(network, loss=BatchDice()), {**batch, "kernels": kernels, "mask": mask}
    )
    expected = BatchDice().terms(network.maps, kernels.float(), mask.float())
    assert terms["loss"].item() == pytest.approx(sum(expected.values()).item() / 2)
    assert set(terms) == {"loss", "text", "kernels"}


def test_easts_objective_is_its_loss_on_the_batchs_maps() -> None:
    network = FixedBoxes(drawn(2, 6, 8, 8))
    score = (drawn(2, 8, 8) > 0.5).to(torch.uint8)
    boxes, mask = drawn(2, 5, 8, 8) * 3, torch.ones(2, 8, 8, dtype=torch.uint8)
    batch = {"image": torch.zeros(2, 3, 32, 32, dtype=torch.uint8), "score": score}
    objective = BoxObjective(network, loss=DiceAndBoxes())
    terms = means(objective, {**batch, "geometry": boxes, "mask": mask})
    maps = network.maps
    expected = DiceAndBoxes().terms(maps[:, 0], maps[:, 1:], score.float(), boxes, mask.float())
    assert terms["loss"].item() == pytest.approx(sum(expected.values()).item() / 2)
    assert set(terms) == {"loss", "score", "geometry"}


def test_kernels_are_read_within_each_image_only() -> None:
    maps = torch.zeros(2, 6, 16, 16)
    maps[:, :, 4:10, 4:10] = 0.95
    maps[:, :, 12:16, 2:14] = 0.95
    reader = KernelReader(
        network=Fixed(maps), threshold=0.9, least_area=10, least_score=0.0, outline="rectangle"
    )
    with torch.no_grad():
        first, second = reader(torch.zeros(2, 3, 64, 64), [(64, 64), (48, 64)])
    assert len(first) == 2
    (word,) = second
    np.testing.assert_allclose(word.corners.min(axis=0), (16, 16), atol=1)
    np.testing.assert_allclose(word.corners.max(axis=0), (39, 39), atol=1)
    assert word.score == pytest.approx(0.95)


def test_boxes_are_read_within_each_image_only() -> None:
    maps = torch.zeros(2, 6, 16, 16)
    for top, bottom in ((4, 8), (13, 15)):
        maps[:, 0, top:bottom, 4:10] = 0.9
        for row in range(top, bottom):
            for column in range(4, 10):
                x, y = column * 4, row * 4
                edges = (y - top * 4, 40 - x, bottom * 4 - y, x - 16, 0)
                maps[:, 1:, row, column] = torch.tensor(edges).float()
    reader = BoxReader(network=FixedBoxes(maps), threshold=0.8, overlap=0.2, least_score=0.1)
    with torch.no_grad():
        first, second = reader(torch.zeros(2, 3, 64, 64), [(64, 64), (48, 64)])
    assert len(first) == 2
    (word,) = second
    np.testing.assert_allclose(word.corners, [(16, 16), (40, 16), (40, 32), (16, 32)], atol=1e-4)


def signs(folder: Path, **changes: object) -> DetectionData:
    write_signs(folder / "signs")
    return DetectionData(path=str(folder / "signs"), image_size=32, **changes)


def test_words_are_scored_in_file_pixels(tmp_path: Path) -> None:
    """Images of 64 px are shrunk to 32; a reader that finds the labels themselves is right."""
    train, evaluation = open_detection_sets(
        signs(tmp_path, eval_longest=32), targets="kernels", seed=1
    )
    assert evaluation is not None
    regions = evaluation.kind.source.regions
    shown: list[int] = []

    def read(images: Tensor, sizes: object) -> list[list[Detection]]:
        assert images.shape[2:] == (32, 32)
        picture = len(shown) % 2
        shown.append(picture)
        words = [Detection(corners=r.corners / 2, score=1.0) for r in regions[picture]]
        # In the second image one of two words, and one where none is.
        return [
            words
            if picture == 0
            else [words[0], Detection(corners=words[0].corners + 24, score=1.0)]
        ]

    objective = KernelObjective(Fixed(torch.zeros(1)), loss=BatchDice())
    task = TextDetectionTask(objective, read, train_data=train, eval_data=evaluation)
    batches = [evaluation.fetch([SampleKey(0, index)]).batch for index in range(2)]
    parts = [task.evaluate_batch(batch) for batch in batches]
    assert [part["count"].item() for part in parts] == [1, 1]
    assert [part["errors"].tolist() for part in parts] == [[0, 0, 0, 0], [1, 1, 0, 0]]
    sums = {
        "counts": torch.cat([part["counts"] for part in parts]),
        "errors": torch.stack([part["errors"] for part in parts]).sum(dim=0).double(),
    }
    metrics = task.summarize(sums)
    assert metrics == {"hmean": 75.0, "precision": 75.0, "recall": 75.0}
    table, errors = task.score_tables(sums)
    assert table.rows[0] == ["hmean", "75.00", "50.00 to 100.00"]
    assert errors.rows == [["missed", "1"], ["false", "1"], ["merged", "0"], ["split", "0"]]
    pictures = task.illustrate()
    names = ["words-1", "words-2", "errors-missed", "errors-false"]
    assert [picture.name for picture in pictures] == names
    assert pictures[2].caption.startswith("1 of 1 missed words in 2 images;")
    assert pictures[0].image.shape == (32, 32, 3)
    assert (pictures[0].image == torch.tensor([0, 220, 0])).all(dim=2).any()
    assert pictures[0].caption == "2 words found (green), 2 labelled (orange)"


def test_no_detected_and_no_labelled_words_do_not_divide_by_zero(tmp_path: Path) -> None:
    train, _ = open_detection_sets(signs(tmp_path), targets="kernels", seed=1)
    objective = KernelObjective(Fixed(torch.zeros(1)), loss=BatchDice())
    task = TextDetectionTask(objective, lambda *_: [], train_data=train, eval_data=None)
    zeros = {"counts": torch.zeros(1, 4, dtype=torch.int64)}
    assert task.summarize(zeros) == {"hmean": 0.0, "precision": 0.0, "recall": 0.0}
    assert task.illustrate() == ()


def scene(*words: Corners, scale: float = 0.5, side: int = 40) -> dict[str, Tensor]:
    """A batch of one black image that was shrunk by `scale`, with words in the file's pixels."""
    return {
        "image": torch.zeros(1, 3, side, side, dtype=torch.uint8),
        "image_sizes": torch.tensor([[side, side - 4, 3]]),
        "scale": torch.tensor([[scale, scale]]),
        "corners": torch.from_numpy(np.stack(words)).float()[None],
        "corner_counts": torch.full((1, len(words)), 4),
        "ignored": torch.zeros(1, len(words), dtype=torch.bool),
        "ignored_sizes": torch.tensor([[len(words)]]),
    }


class Scenes:
    """Images with one word each; one of them cannot be read."""

    def __init__(self, size: int, broken: int = 1) -> None:
        self.size = size
        self.broken = broken

    def __len__(self) -> int:
        return self.size

    def fetch(self, keys: Sequence[SampleKey]) -> Fetched:
        (key,) = keys
        assert key.epoch == 0
        return Fetched(batch={} if key.index == self.broken else scene(WORD))


def square(left: float, top: float, width: float, height: float) -> Corners:
    right, bottom = left + width, top + height
    return np.array([[left, top], [right, top], [right, bottom], [left, bottom]], float)


WORD = square(8, 12, 24, 16)


def task_of(scenes: Scenes, *found: Corners, protocol: Protocol = ICDAR2015) -> TextDetectionTask:
    """A reader that finds the same in every image, in pixels of the network's input."""

    def read(images: Tensor, sizes: Sequence[tuple[int, int]]) -> list[list[Detection]]:
        assert sizes == [(40, 36)] * len(images)
        return [[Detection(corners=each, score=1.0) for each in found] for _ in images]

    objective = KernelObjective(Fixed(torch.zeros(1)), loss=BatchDice())
    return TextDetectionTask(
        objective, read, train_data=scenes, eval_data=scenes, protocol=protocol
    )


@pytest.mark.parametrize(
    ("size", "pictures"), [(2, "2 images"), (50, "50 images"), (51, "the first 50 images")]
)
def test_errors_are_searched_in_the_first_fifty_images_and_three_shown(
    size: int, pictures: str
) -> None:
    task = task_of(Scenes(size), square(0, 20, 6, 6))
    shown = {each.name: each for each in task.illustrate()}
    names = [f"words-{number}" for number in (1, 3) if number <= size]
    assert list(shown) == [*names, "errors-missed", "errors-false"]
    missed = min(size, 50) - 1
    assert shown["errors-missed"].caption.startswith(
        f"{min(missed, 32)} of {missed} missed words in {pictures};"
    )
    first = shown["words-1"]
    assert first.caption == "1 word found (green), 1 labelled (orange)"
    expected = with_outlines(
        np.zeros((40, 40, 3), np.uint8),
        [(square(4, 6, 12, 8), LABELLED), (square(0, 20, 6, 6), FOUND)],
    )
    assert torch.equal(first.image, torch.from_numpy(expected))


def test_scores_and_errors_of_a_batch_are_listed_in_percent() -> None:
    task = task_of(Scenes(3), square(4, 6, 12, 8), square(20, 20, 10, 4), square(0, 24, 4, 8))
    sums = [task.evaluate_batch(scene(WORD)) for _ in range(2)]
    assert [each["counts"].tolist() for each in sums] == [[[1, 1, 1, 3]]] * 2
    assert [each["count"].item() for each in sums] == [1, 1]
    assert [each["errors"].tolist() for each in sums] == [[0, 2, 0, 0]] * 2
    together = {
        "counts": torch.cat([each["counts"] for each in sums]),
        "errors": torch.stack([each["errors"] for each in sums]).sum(dim=0),
    }
    assert task.summarize(together) == pytest.approx(
        {"hmean": 50.0, "precision": 100 / 3, "recall": 100.0}
    )
    result, errors = task.score_tables(together)
    assert (result.title, errors.title) == ("words found", "errors")
    assert list(result.header) == ["score", "%", "95 % interval over images"]
    assert result.rows == [
        ["hmean", "50.00", "50.00 to 50.00"],
        ["precision", "33.33", "33.33 to 33.33"],
        ["recall", "100.00", "100.00 to 100.00"],
    ]
    assert list(errors.header) == ["kind", "number"]
    assert errors.rows == [["missed", "0"], ["false", "4"], ["merged", "0"], ["split", "0"]]


def test_words_in_parts_are_right_by_total_texts_protocol_and_still_listed_as_split() -> None:
    halves = (square(4, 6, 5, 8), square(10, 6, 6, 8))
    result: dict[str, tuple[dict[str, float], list[ScoreTable]]] = {}
    for name, protocol in PROTOCOLS.items():
        task = task_of(Scenes(3), *halves, protocol=protocol)
        parts = [task.evaluate_batch(scene(WORD)) for _ in range(2)]
        sums = {
            "counts": torch.cat([part["counts"] for part in parts]),
            "errors": torch.stack([part["errors"] for part in parts]).sum(dim=0),
        }
        result[name] = task.summarize(sums), list(task.score_tables(sums))
    scores, (found, errors) = result["icdar2015"]
    assert scores == {"hmean": 0.0, "precision": 0.0, "recall": 0.0}
    assert (found.title, errors.title) == ("words found", "errors")
    scores, (found, split) = result["total-text"]
    # 0.8 of a word and 1.6 of 2 detections in each image, which whole numbers would lose.
    assert scores == pytest.approx({"hmean": 80.0, "precision": 80.0, "recall": 80.0})
    assert found.rows[2] == ["recall", "80.00", "80.00 to 80.00"]
    assert found.title == "words found (Total-Text's protocol)"
    assert split.title == "errors (ICDAR 2015's protocol)"
    assert (
        split.rows
        == errors.rows
        == [["missed", "0"], ["false", "0"], ["merged", "0"], ["split", "2"]]
    )


def test_maps_cover_images_whose_size_is_not_a_multiple_of_four() -> None:
    maps = torch.zeros(1, 6, 16, 16)
    maps[:, :, 8:12, 8:13] = 0.9375
    reader = KernelReader(
        network=Fixed(maps), threshold=0.9, least_area=20, least_score=0.9375, outline="polygon"
    )
    with torch.no_grad():
        ((word,),) = reader(torch.zeros(1, 3, 64, 64), [(45, 49)])
        assert reader(torch.zeros(1, 3, 64, 64), [(44, 49)]) == [[]]
        # With one row or column less, or one pixel more asked for, there are too few pixels.
        assert reader(torch.zeros(1, 3, 64, 64), [(45, 48)]) == [[]]
        assert replace(reader, least_area=21)(torch.zeros(1, 3, 64, 64), [(45, 49)]) == [[]]
        assert replace(reader, threshold=0.9375)(torch.zeros(1, 3, 64, 64), [(45, 49)]) == [[]]
        assert replace(reader, least_score=0.938)(torch.zeros(1, 3, 64, 64), [(45, 49)]) == [[]]
    assert word.corners[:, 0].max() == pytest.approx(49, abs=1)
    assert word.corners[:, 1].max() == pytest.approx(45, abs=1)


def test_weight_decay_in_a_detector_applies_only_to_kernels() -> None:
    objective = KernelObjective(Fixed(torch.zeros(1)), loss=BatchDice())
    parameter = nn.Parameter(torch.zeros(1))
    names = ("p5.conv.weight", "p5.conv.bias", "fusion.norm.weight")
    assert [objective.decays(name, parameter) for name in names] == [True, False, False]
