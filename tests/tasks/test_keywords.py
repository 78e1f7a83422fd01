from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from jumar.data.pixels.picture_grid import side_by_side
from jumar.data.samples import Fetched, SampleKey
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
    result = [task.evaluate_batch(one) for one in batches]
    return {name: sum(one[name].double() for one in result) for name in result[0]}


def test_score_is_the_accuracy_over_batches_of_any_size() -> None:
    task = task_for()
    true, message = [0, 1, 2, 3, 2, 2, 3], [0, 2, 2, 3, 3, 2, 3]
    whole = task.summarize(sums(task, batch(true, message)))
    parts = task.summarize(sums(task, batch(true[:2], message[:2]), batch(true[2:], message[2:])))
    assert whole["accuracy"] == pytest.approx(100 * 5 / 7)
    assert parts == pytest.approx(whole)


def test_rows_of_the_table_are_true_labels_and_columns_predictions() -> None:
    task = task_for()
    (table,) = task.score_tables(sums(task, batch([1, 2, 2, 2], [3, 2, 2, 3])))
    assert list(table.header) == ["true \\ predicted", *LABELS, "right %"]
    assert [list(row) for row in table.rows] == [
        ["_silence_", "0", "0", "0", "0", "-"],
        ["_unknown_", "0", "0", "0", "1", "0.0"],
        ["low", "0", "0", "2", "1", "66.7"],
        ["high", "0", "0", "0", "0", "-"],
    ]


def test_loss_is_the_mean_cross_entropy_with_gradients_to_the_network() -> None:
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


def test_images_have_time_to_the_right_and_pitch_upwards() -> None:
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


def test_each_picture_of_a_batch_uses_all_colours() -> None:
    features = torch.arange(12.0).reshape(3, 4)
    first, second = coloured(torch.stack([features, 10 * features - 5]))
    assert torch.equal(first, second)


def test_illustration_always_shows_the_same_clips(tmp_path: Path) -> None:
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


def test_illustration_has_up_to_sixteen_clips_in_rows_of_eight(tmp_path: Path) -> None:
    drawn: list[tuple[int, int, int]] = []
    for clips in (2, 4, 9):
        path = str(divided(tmp_path / str(clips), val=clips))
        _, evaluation = open_keyword_sets(KeywordData(path=path, words=("low", "high")), seed=1)
        assert evaluation is not None
        task = task_for()
        task.eval_data = evaluation
        (one,) = task.illustrate()
        # Images begin in the first line of pixels; between them it is white.
        coloured_places = (one.image[0] != 255).any(dim=1).int()
        in_first_row = int((coloured_places.diff() == 1).sum()) + int(coloured_places[0])
        drawn.append((len(evaluation), in_first_row, one.image.shape[0]))
    (few, few_in_row, height), (some, some_in_row, higher), (many, many_in_row, most) = drawn
    assert few <= 8 < some <= 16 < many
    assert (few_in_row, some_in_row, many_in_row) == (few, 8, 8)
    assert higher == most >= 2 * height


class Clips:
    """Clips whose label is their number; the network hears another word in every third."""

    def __init__(self, size: int, *, readable: bool = True) -> None:
        self.size = size
        self.readable = readable
        self.asked: list[int] = []

    def __len__(self) -> int:
        return self.size

    def fetch(self, keys: Sequence[SampleKey]) -> Fetched:
        self.asked = [key.index for key in keys]
        assert {key.epoch for key in keys} == {0}
        true = [index % 4 for index in self.asked]
        message = [
            (label + (index % 3 == 2)) % 4 for index, label in zip(self.asked, true, strict=True)
        ]
        return Fetched(batch=batch(true, message) if self.readable else {})


@pytest.mark.parametrize(
    ("size", "asked"),
    [
        (1, [0]),
        (11, list(range(11))),
        (31, list(range(16))),
        (35, list(range(0, 32, 2))),
        (50, list(range(0, 48, 3))),
    ],
)
def test_shown_clips_are_spread_over_the_set_with_label_and_prediction(
    size: int, asked: list[int]
) -> None:
    task = task_for()
    clips = Clips(size)
    task.eval_data = clips
    (shown,) = task.illustrate()
    assert clips.asked == asked
    made = clips.fetch([SampleKey(0, index) for index in asked]).batch
    pictures = coloured(made["audio"].unfold(1, 4, 4))
    words = [
        LABELS[index % 4] if index % 3 < 2 else f"{LABELS[index % 4]} / {LABELS[(index + 1) % 4]}"
        for index in asked
    ]
    rows = [
        side_by_side(pictures[at : at + 8], words[at : at + 8])
        for at in (0, 8)[: -(-len(asked) // 8)]
    ]
    top = 0
    for row in rows:
        height, width = row.shape[:2]
        assert torch.equal(shown.image[top : top + height, :width], row)
        assert (shown.image[top : top + height, width:] == 255).all()
        top += height
    assert shown.image.shape[:2] == (top, max(row.shape[1] for row in rows))
    assert shown.caption == (
        "Clips with their words, time from left to right, pitch from bottom to top; if the "
        "prediction is wrong: true word / predicted word."
    )


def test_nothing_is_shown_without_a_readable_clip() -> None:
    task = task_for()
    for clips in (Clips(0), Clips(5, readable=False)):
        task.eval_data = clips
        assert task.illustrate() == ()


def test_colours_run_from_dark_blue_via_purple_and_orange_to_light_yellow() -> None:
    values = torch.tensor([0.0, 1, 2, 3, 1.5]).view(1, 5, 1) * 7 - 3
    (picture,) = coloured(values)
    assert picture.shape == (3, 2, 10)
    result = picture[:, 0, ::2].T.int()
    expected = [(13, 8, 51), (115, 26, 115), (230, 89, 64), (255, 242, 153), (172, 57, 89)]
    assert (result - torch.tensor(expected)).abs().max() <= 1
    assert torch.equal(picture, picture[:, :1, ::2].repeat_interleave(2, 2).expand(3, 2, 10))


def test_evaluation_loss_is_weighted_and_smoothed_as_in_training() -> None:
    weights = torch.tensor([1.0, 0.5, 3.0, 2.0])
    task = KeywordTask(
        Told(),
        nn.Identity(),
        picture=lambda audio: audio,
        labels=LABELS,
        train_data=None,
        eval_data=None,
        label_smoothing=0.2,
        class_weights=weights,
    )
    given = batch([1, 2, 2], [1, 3, 2])
    metrics = task.summarize(sums(task, given))
    shares = np.exp([5.0, 0, 0, 0])
    right, wrong = (-np.log(each / shares.sum()) for each in shares[:2])
    smoothed = {
        True: 0.85 * right + 3 * 0.05 * wrong,
        False: 0.85 * wrong + 0.05 * right + 2 * 0.05 * wrong,
    }
    expected = (0.5 * smoothed[True] + 3 * (smoothed[False] + smoothed[True])) / 6.5
    assert metrics == pytest.approx({"accuracy": 100 * 2 / 3, "loss": expected}, rel=1e-5)
    assert means(task.objectives[0], given)["loss"].item() == pytest.approx(expected, rel=1e-5)
    assert task.outputs == task.labels == LABELS
    # Labels are not smoothed unless it is asked for.
    plain = KeywordTask(
        Told(),
        nn.Identity(),
        picture=lambda audio: audio,
        labels=LABELS,
        train_data=None,
        eval_data=None,
    )
    assert plain.summarize(sums(plain, given))["loss"] == pytest.approx((2 * right + wrong) / 3)
