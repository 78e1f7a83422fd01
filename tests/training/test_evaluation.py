"""Scores: each sample counts once, for any batch size; and the tables of scores."""

import io
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from jumar.data.loading.faults import FaultTally
from jumar.data.samples import Batch, Fault, Fetched, SampleKey
from jumar.devices.registry import open_device
from jumar.ground.errors import UserError
from jumar.precision.policy import PrecisionPolicy
from jumar.precision.settings import PrecisionSettings
from jumar.tasks.task import Illustration, ScoreTable
from jumar.training.checkpoint import Checkpoint
from jumar.training.evaluation import Interrupted, Scores, evaluate, score_table, table_text
from jumar.training.parallel.ranks import Ranks
from jumar.training.progress import Console
from jumar.training.signals import StopRequest
from tests.training.small_tasks import GanTask, Points, PointTask, SmallNet, point_task


class Noting(PointTask):
    """Notes the sizes of the batches that it scores, and whether it is in evaluation mode."""

    def __init__(self) -> None:
        super().__init__(SmallNet())
        self.sizes: list[int] = []
        self.modes: set[bool] = set()
        self.gradients: set[bool] = set()

    def evaluate_batch(self, batch: Batch) -> dict[str, torch.Tensor]:
        self.sizes.append(len(batch["label"]))
        self.modes |= {self.model.training, self.objectives[0].training}
        self.gradients.add(torch.is_grad_enabled())
        return super().evaluate_batch(batch)

    def score_tables(self, sums: Mapping[str, torch.Tensor]) -> Sequence[ScoreTable]:
        kind = str(sums["loss"].dtype)
        return [ScoreTable(title="kind", header=["dtype"], rows=[[kind]])]


def scored(
    task: PointTask, *, batch_size: int = 4, ranks: Ranks | None = None, **more: Any
) -> Scores:
    policy = PrecisionPolicy(PrecisionSettings(mode="must_keep_origin_dtype"), device_type="cpu")
    policy.install()
    return evaluate(
        task,
        policy,
        device=open_device("cpu"),
        ranks=ranks or Ranks(),
        batch_size=batch_size,
        workers=0,
        tally=more.pop("tally", FaultTally()),
        console=more.pop("console", Console(silent=True)),
        **more,
    )


@pytest.mark.parametrize(("batch_size", "sizes"), [(4, [4, 4, 3]), (11, [11]), (12, [11])])
def test_every_sample_counts_once_in_evaluation_mode_without_gradients(
    batch_size: int, sizes: list[int]
) -> None:
    torch.manual_seed(5)
    task = Noting()
    task.model.train()
    task.model.norm.eval()
    task.objectives[0].training = True
    result = scored(task, batch_size=batch_size)
    assert task.sizes == sizes
    assert (task.modes, task.gradients) == ({False}, {False})
    assert (task.model.training, task.model.keyed.training) == (True, True)
    assert not task.model.norm.training
    assert task.objectives[0].training
    assert result.samples == 11
    assert result.seconds > 0
    assert result.tables == [ScoreTable(title="kind", header=["dtype"], rows=[["torch.float64"]])]
    assert result.illustrations == ()
    whole = task.eval_data.fetch([SampleKey(0, index) for index in range(11)]).batch
    task.model.eval()
    with torch.no_grad():
        logits = task.model(whole["point"])
    loss = torch.nn.functional.cross_entropy(logits, whole["label"]).item()
    right = (logits.argmax(1) == whole["label"]).float().mean().item()
    assert result.metrics == pytest.approx({"top1": 100 * right, "loss": loss}, rel=1e-5)


def test_rows_of_all_batches_are_concatenated_and_images_drawn_on_request() -> None:
    torch.manual_seed(5)
    task = GanTask()
    result = scored(task, illustrate=True)
    whole = task.eval_data.fetch([SampleKey(0, index) for index in range(11)]).batch
    with torch.no_grad():
        expected = task.model["g"](whole["point"][:, :2])
    assert result.metrics["median"] == pytest.approx(expected.median().item())
    assert result.tables[0].rows[0][0] == "11"
    assert [each.name for each in result.illustrations] == ["weights"]
    assert list(scored(task).illustrations) == []


def test_rank_scores_its_share_and_only_the_first_draws() -> None:
    task = Noting()
    result = scored(task, ranks=Ranks(rank=1, world=2, local_world=2), illustrate=True)
    assert (task.sizes, result.samples) == ([4], 4)
    assert result.illustrations == ()


def test_no_score_without_readable_data() -> None:
    for empty in (None, Points(0)):
        task = point_task()
        task.eval_data = empty
        with pytest.raises(UserError) as refused:
            scored(task)
        assert str(refused.value) == "data.eval_path: there is no data to evaluate on"

    class Unreadable(Points):
        def fetch(self, keys: Sequence[SampleKey]) -> Fetched:
            faults = [Fault(origin=f"{key.index}.png", reason="cut off") for key in keys]
            return Fetched(batch={}, faults=faults)

    task = point_task()
    task.eval_data = Unreadable(3)
    with pytest.raises(UserError) as refused:
        scored(task, tally=FaultTally(3))
    assert str(refused.value) == ("data.eval_path: none of the 3 evaluation samples can be read")


def test_stop_ends_a_single_rank_evaluation_and_restores_the_modes() -> None:
    stop = StopRequest()
    task = Noting()
    task.model.train()
    scored(task, stop=stop)
    stop.signal = 15
    with pytest.raises(Interrupted):
        scored(task, stop=stop)
    assert len(task.sizes) == 3
    assert task.model.training
    scored(task, stop=stop, ranks=Ranks(rank=0, world=2, local_world=2))
    assert len(task.sizes) > 3


class Screen(io.StringIO):
    """A terminal without a size."""

    def isatty(self) -> bool:
        return True


def test_progress_bar_counts_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Noting):
        def illustrate(self) -> Sequence[Illustration]:
            time.sleep(0.7)  # until the bar is drawn again
            return ()

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    screen = Screen()
    scored(Slow(), console=Console(stream=screen), illustrate=True)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert re.findall(r"evaluation .* (\d/\d) ", shown.replace("\r", "\n")) == ["0/3", "3/3"]


def test_score_table_has_the_columns_of_the_original_logs() -> None:
    def checkpoint(step: int) -> Checkpoint:
        return Checkpoint(
            path=Path("x"),
            step=step,
            epoch=step / 8,
            time="2024-05-06 07:08:09",
            metrics={},
            has_ema=False,
            batch={},
        )

    rows = [
        (checkpoint(10), {"top1": 12.3456, "loss": 0.5}),
        (checkpoint(200), {"top1": 100.0, "loss": 12345.6789}),
    ]
    assert score_table(rows) == (
        "    step    epoch      top1      loss  checkpoint_time(UTC)\n"
        "      10      1.2    12.346     0.500  2024-05-06 07:08:09\n"
        "     200     25.0   100.000  12345.679  2024-05-06 07:08:09"
    )
    assert score_table([]) == "    step    epoch    checkpoint_time(UTC)"


def test_table_is_aligned_text() -> None:
    table = ScoreTable(
        title="confusion",
        header=["true", "a", "long one"],
        rows=[["cat", "12", "3"], ["elephant", "4", ""]],
    )
    assert table_text(table) == (
        "confusion:\n  true       a  long one\n  cat       12         3\n  elephant   4"
    )
