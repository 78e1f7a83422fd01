"""Objectives and scores of text detectors, on networks that return what they are told."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from jumar.data.polygons.detection_data import DetectionData
from jumar.data.polygons.detection_set import open_detection_sets
from jumar.data.polygons.kernel_words import Detection
from jumar.data.samples import SampleKey
from jumar.models.east import EastMaps
from jumar.tasks.detection_losses import BatchDice, DiceAndBoxes
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


def test_psenets_objective_is_its_loss_of_the_batchs_maps() -> None:
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


def test_easts_objective_is_its_loss_of_the_batchs_maps() -> None:
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


def test_kernels_are_read_within_each_picture_only() -> None:
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


def test_boxes_are_read_within_each_picture_only() -> None:
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


def test_words_are_scored_in_the_pixels_of_the_file(tmp_path: Path) -> None:
    """Pictures of 64 px are shrunk to 32; a reader that finds the labels themselves is right."""
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
        # In the second picture one of two words, and one where none is.
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
    assert pictures[2].caption.startswith("1 of 1 missed words in 2 pictures;")
    assert pictures[0].image.shape == (32, 32, 3)
    assert (pictures[0].image == torch.tensor([0, 220, 0])).all(dim=2).any()
    assert pictures[0].caption == "2 words found (green), 2 labelled (orange)"


def test_no_word_found_and_none_labelled_is_no_division_by_zero(tmp_path: Path) -> None:
    train, _ = open_detection_sets(signs(tmp_path), targets="kernels", seed=1)
    objective = KernelObjective(Fixed(torch.zeros(1)), loss=BatchDice())
    task = TextDetectionTask(objective, lambda *_: [], train_data=train, eval_data=None)
    zeros = {"counts": torch.zeros(1, 3, dtype=torch.int64)}
    assert task.summarize(zeros) == {"hmean": 0.0, "precision": 0.0, "recall": 0.0}
    assert task.illustrate() == ()
