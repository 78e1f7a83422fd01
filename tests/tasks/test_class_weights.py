"""Class weights: which ones, and a loss that is the same however a batch is split."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from jumar.ground.errors import UserError
from jumar.tasks.class_weights import class_weights, cross_entropy_sum, loss_weights
from jumar.training.optimizers import Sgd
from jumar.training.settings import TrainingSettings
from tests.training.small_tasks import (
    CLASSES,
    PointObjective,
    PointTask,
    SmallNet,
    small_plan,
    trainer_for,
)

NAMES = ("cat", "dog", "owl")
COUNTS = np.array([60, 30, 0])


def chosen(*asked: str) -> list[float]:
    said: list[str] = []
    weights = class_weights(asked, NAMES, lambda: COUNTS, said.append)
    assert weights is not None
    assert said[-1].startswith("class weights: ")
    return weights.tolist()


def test_balanced_weights_are_those_of_scikit_learn() -> None:
    from sklearn.utils.class_weight import compute_class_weight

    labels = np.repeat([0, 1], [60, 30])
    expected = compute_class_weight("balanced", classes=np.array([0, 1]), y=labels)
    assert chosen("balanced") == pytest.approx([*expected, 1.0])


def test_weights_come_by_name_from_the_setting_or_a_file(tmp_path: Path) -> None:
    assert chosen("dog=2", "owl=0.5") == [1.0, 2.0, 0.5]
    (tmp_path / "weights.json").write_text('{"owl": 3, "cat": 0}')
    assert chosen(str(tmp_path / "weights.json")) == [0.0, 1.0, 3.0]
    (tmp_path / "weights.csv").write_text("dog,4\n\nowl, 0.25\n")
    assert chosen(str(tmp_path / "weights.csv")) == [1.0, 4.0, 0.25]
    assert class_weights((), NAMES, lambda: COUNTS, lambda _: None) is None


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["dgo=2"], "unknown class 'dgo'\n  Did you mean 'dog'"),
        (["dog=-1"], "the weight of 'dog' is '-1'"),
        (["dog=inf"], "the weight of 'dog' is 'inf'"),
        (["cat=0", "dog=0", "owl=0"], "all classes have the weight 0"),
        (["cat=1", "dog"], "'dog' is not of the form NAME=WEIGHT"),
        (["nowhere.csv"], "nowhere.csv"),
    ],
)
def test_what_gives_no_weights_is_refused(asked: list[str], message: str) -> None:
    with pytest.raises(UserError) as error:
        chosen(*asked)
    assert message in str(error.value)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    for name, text in (
        ("a.json", "[1]"),
        ("b.json", "{"),
        ("c.csv", "cat,1,2"),
        ("d.csv", "cat,x"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(UserError):
            chosen(str(tmp_path / name))


def test_the_mean_is_that_of_torch_where_labels_are_not_smoothed() -> None:
    torch.manual_seed(0)
    logits, labels = torch.randn(20, 3), torch.randint(0, 3, (20,))
    weights = torch.tensor([0.2, 1.0, 5.0])
    total = loss_weights(labels, weights)["loss"]
    mean = cross_entropy_sum(logits, labels, weights) / total
    torch.testing.assert_close(mean, functional.cross_entropy(logits, labels, weight=weights))


def test_smoothing_is_inside_the_weight_of_a_sample() -> None:
    torch.manual_seed(0)
    logits, labels = torch.randn(5, 3), torch.tensor([0, 1, 2, 2, 0])
    weights = torch.tensor([0.0, 1.0, 5.0])
    losses = functional.cross_entropy(logits, labels, label_smoothing=0.1, reduction="none")
    total = cross_entropy_sum(logits, labels, weights, label_smoothing=0.1)
    torch.testing.assert_close(total, losses[1] + 5 * (losses[2] + losses[3]))


class Weighted(PointObjective):
    def sums(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        logits = self.trained(batch["point"])
        return {"loss": cross_entropy_sum(logits, batch["label"], self._weights)}

    def weights(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return dict(loss_weights(batch["label"], self._weights))

    _weights = torch.tensor([0.1, 1.0, 7.0])[:CLASSES]


def test_parts_of_any_size_give_the_gradient_of_the_whole_batch(tmp_path: Path) -> None:
    weights: list[torch.Tensor] = []
    for micro in (0, 1, 3):
        torch.manual_seed(0)
        task = PointTask(SmallNet(batch_norm=False, torch_dropout=0.0), eval_size=0)
        task.objectives = [Weighted(task.model)]
        training = TrainingSettings(log_every="1it", micro_batch_size=micro)
        plan = small_plan(duration="3it", optimizer=Sgd(learning_rate=0.1), training=training)
        trainer_for(task, plan, tmp_path / str(micro)).train()
        weights.append(torch.cat([each.detach().flatten() for each in task.model.parameters()]))
    torch.testing.assert_close(weights[0], weights[1])
    torch.testing.assert_close(weights[0], weights[2])
