"""An evaluation of a model that always predicts the same class."""

from io import StringIO

import pytest
import torch

from jumar.data.loading.faults import FaultTally
from jumar.data.samples import Batch
from jumar.devices.registry import open_device
from jumar.precision.policy import PrecisionPolicy
from jumar.precision.settings import PrecisionSettings
from jumar.tasks.confusion import confusion_of
from jumar.training.evaluation import evaluate
from jumar.training.parallel.ranks import Ranks
from jumar.training.progress import Console
from tests.training.small_tasks import CLASSES, PointTask, SmallNet


class ConfusedTask(PointTask):
    """The points with the sums of a classification."""

    outputs = ("left", "middle", "right")

    def evaluate_batch(self, batch: Batch) -> dict[str, torch.Tensor]:
        predicted = self.model(batch["point"]).argmax(dim=1)
        confusion = confusion_of(batch["label"], predicted, CLASSES)
        return super().evaluate_batch(batch) | {"confusion": confusion}


@pytest.mark.parametrize(("bias", "said"), [(100.0, True), (0.0, False)])
def test_model_predicting_a_single_label_is_reported(bias: float, said: bool) -> None:
    torch.manual_seed(0)
    net = SmallNet()
    with torch.no_grad():
        net.last.weight.mul_(20)
        net.last.bias[1] += bias
    printed = StringIO()
    device = open_device("cpu")
    policy = PrecisionPolicy(PrecisionSettings(), device_type="cpu")
    policy.install()
    try:
        evaluate(
            ConfusedTask(net, eval_size=30),
            policy,
            device=device,
            ranks=Ranks(),
            batch_size=8,
            workers=0,
            tally=FaultTally(0),
            console=Console(stream=printed),
        )
    finally:
        policy.close()
    line = "evaluation: the model predicts 'middle' in all 30 cases, although 3 labels occur"
    assert (line in printed.getvalue()) is said
