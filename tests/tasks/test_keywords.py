from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from jumar.data.speech.keyword_data import KeywordData
from jumar.data.speech.keyword_set import open_keyword_sets
from jumar.tasks.keywords import KeywordTask, coloured
from tests.data.tones import divided
from tests.tasks.means import means

LABELS = ("_silence_", "_unknown_", "low", "high")


class Told(nn.Module):
    """A network that hears the label: the first sample of the audio is the one to say."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(5.0))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        places = torch.arange(len(LABELS), device=features.device)
        return self.scale * (features[:, :1].round() == places).float()


def task_for(smoothing: float = 0.0) -> KeywordTask:
    return KeywordTask(
        Told(),
        nn.Identity(),
        picture=lambda audio: audio.unfold(1, 4, 4),
        labels=LABELS,
        train_data=None,
        eval_data=None,
        label_smoothing=smoothing,
    )


def batch(true: Sequence[int], said: Sequence[int]) -> dict[str, torch.Tensor]:
    audio = torch.zeros(len(true), 8)
    audio[:, 0] = torch.tensor(said, dtype=torch.float32)
    return {"audio": audio, "label": torch.tensor(true)}


def sums(task: KeywordTask, *batches: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    found = [task.evaluate_batch(one) for one in batches]
    return {name: sum(one[name].double() for one in found) for name in found[0]}


def test_the_score_is_the_share_of_the_right_labels_over_batches_of_any_size() -> None:
    task = task_for()
    true, said = [0, 1, 2, 3, 2, 2, 3], [0, 2, 2, 3, 3, 2, 3]
    whole = task.summarize(sums(task, batch(true, said)))
    parts = task.summarize(sums(task, batch(true[:2], said[:2]), batch(true[2:], said[2:])))
    assert whole["accuracy"] == pytest.approx(100 * 5 / 7)
    assert parts == pytest.approx(whole)


def test_rows_of_the_table_are_true_labels_and_columns_are_what_was_heard() -> None:
    task = task_for()
    (table,) = task.score_tables(sums(task, batch([1, 2, 2, 2], [3, 2, 2, 3])))
    assert list(table.header) == ["true \\ predicted", *LABELS, "right %"]
    assert [list(row) for row in table.rows] == [
        ["_silence_", "0", "0", "0", "0", "-"],
        ["_unknown_", "0", "0", "0", "1", "0.0"],
        ["low", "0", "0", "2", "1", "66.7"],
        ["high", "0", "0", "0", "0", "-"],
    ]


def test_the_loss_is_the_mean_cross_entropy_and_flows_into_the_network() -> None:
    task = task_for()
    (objective,) = task.objectives
    loss = means(objective, batch([1, 2], [1, 3]))["loss"]
    right = -np.log(np.exp(5) / (np.exp(5) + 3))
    wrong = -np.log(1 / (np.exp(5) + 3))
    assert loss.item() == pytest.approx((right + wrong) / 2, rel=1e-6)
    loss.backward()
    assert task.model.scale.grad is not None
    smoothed = means(task_for(0.1).objectives[0], batch([1, 2], [1, 3]))["loss"]
    assert smoothed.item() != pytest.approx(loss.item())


def test_pictures_have_time_to_the_right_and_pitch_upwards() -> None:
    features = torch.zeros(1, 6, 3)
    features[0, :, 0] = 1.0  # low in pitch, over all of the time
    features[0, 5, :] = 2.0  # all pitches, at the end
    (picture,) = coloured(features)
    assert picture.dtype == torch.uint8
    assert picture.shape == (3, 6, 12)
    light = picture.float().mean(dim=0)
    assert light[:, -1].min() == light.max()
    assert light[-1, 0] > light[0, 0]
    (flat,) = coloured(torch.full((1, 4, 4), -27.0))
    assert len(flat.flatten(1).unique(dim=1).T) == 1


def test_the_illustration_is_always_of_the_same_clips(tmp_path: Path) -> None:
    data = KeywordData(path=str(divided(tmp_path)), words=("low", "high"))
    _, evaluation = open_keyword_sets(data, seed=1)
    task = task_for()
    task.eval_data = evaluation
    assert evaluation is not None
    (one,), (other,) = task.illustrate(), task.illustrate()
    assert torch.equal(one.image, other.image)
    assert (one.image.dtype, one.image.shape[2]) == (torch.uint8, 3)
    assert one.name == "clips"
    task.eval_data = None
    assert task.illustrate() == ()


def test_the_illustration_has_up_to_sixteen_clips_in_rows_of_eight(tmp_path: Path) -> None:
    drawn: list[tuple[int, int, int]] = []
    for clips in (2, 4, 9):
        path = str(divided(tmp_path / str(clips), val=clips))
        _, evaluation = open_keyword_sets(KeywordData(path=path, words=("low", "high")), seed=1)
        assert evaluation is not None
        task = task_for()
        task.eval_data = evaluation
        (one,) = task.illustrate()
        # Pictures begin in the first line of pixels; between them it is white.
        coloured_places = (one.image[0] != 255).any(dim=1).int()
        in_first_row = int((coloured_places.diff() == 1).sum()) + int(coloured_places[0])
        drawn.append((len(evaluation), in_first_row, one.image.shape[0]))
    (few, few_in_row, height), (some, some_in_row, higher), (many, many_in_row, most) = drawn
    assert few <= 8 < some <= 16 < many
    assert (few_in_row, some_in_row, many_in_row) == (few, 8, 8)
    assert higher == most >= 2 * height
