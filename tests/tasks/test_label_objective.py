"""The loss that classifiers share."""

import pytest
import torch
from torch import nn

from jumar.data.samples import Batch
from jumar.tasks.label_objective import LabelObjective


class _Labels(LabelObjective):
    name = "labels"

    def sums(self, batch: Batch) -> dict[str, torch.Tensor]:
        return {"loss": self.cross_entropy(self.trained(batch["image"]), batch["label"])}


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_torchs_cross_entropy(smoothing: float) -> None:
    batch = {"image": torch.randn(5, 4), "label": torch.tensor([0, 2, 1, 2, 0])}
    objective = _Labels(nn.Linear(4, 3), label_smoothing=smoothing, class_weights=None)
    expected = nn.CrossEntropyLoss(label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(
        objective.sums(batch)["loss"], expected(objective.trained(batch["image"]), batch["label"])
    )
    assert not objective.weights(batch)


def test_class_weights_are_the_divisor_and_move_with_the_objective() -> None:
    weights = torch.tensor([1.0, 2.0, 4.0])
    objective = _Labels(nn.Linear(4, 3), label_smoothing=0.0, class_weights=weights)
    assert objective.weights({"label": torch.tensor([0, 2, 2])})["loss"] == 9
    assert objective.to(torch.float64).class_weights is not weights
    assert "class_weights" not in objective.state_dict()
