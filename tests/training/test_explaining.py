"""A skipped update is explained in the run, and the run is the same bit for bit."""

import io
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from jumar.precision.loss_scale import ExponentialLossScale, FixedLossScale, LossScaleSettings
from jumar.precision.settings import PrecisionSettings
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.explaining import Explainer
from jumar.training.guard import Guard
from jumar.training.parallel.ranks import Ranks
from jumar.training.progress import Console
from jumar.training.settings import Plan, TrainingSettings
from jumar.training.state_hashes import checkpoint_hashes, live_hashes
from jumar.training.trainer import Trainer
from tests.checkout import CHECKOUT
from tests.cli.command_line import environment
from tests.training.small_tasks import GanTask, PointTask, point_task, small_plan, trainer_for

SHRINKING = ExponentialLossScale(
    init_loss_scale=2.0**22, decr_every_n_nan_or_inf=1, decr_ratio=0.25, incr_every_n_steps=2
)


def plan_of(
    scale: LossScaleSettings | None,
    *,
    explained: bool,
    mode: str = "force_fp16",
    micro_batch_size: int = 0,
    objectives: tuple[str, ...] = ("points",),
) -> Plan:
    precision = PrecisionSettings(mode=mode, emulate_fp16=mode == "force_fp16")
    if scale is not None:
        precision = replace(precision, loss_scale=scale)
    training = TrainingSettings(
        log_every="1it",
        evaluate_every="4it",
        ema_decay=0.9,
        micro_batch_size=micro_batch_size,
        explain_overflow=explained,
    )
    return small_plan(objectives=objectives, precision=precision, training=training)


def trained(task: PointTask | GanTask, plan: Plan, path: Path) -> tuple[Trainer, str]:
    """A finished run, and what it printed."""
    stream = io.StringIO()
    trainer = trainer_for(task, plan, path, console=Console(stream=stream))
    trainer.train()
    return trainer, stream.getvalue()


@pytest.mark.parametrize("micro_batch_size", [0, 3])
def test_weights_are_the_same_with_and_without_explaining(
    tmp_path: Path, micro_batch_size: int
) -> None:
    runs = {
        explained: trained(
            point_task(torch_dropout=0.3),
            plan_of(SHRINKING, explained=explained, micro_batch_size=micro_batch_size),
            tmp_path / str(explained),
        )
        for explained in (True, False)
    }
    (one, out), (other, plain) = runs[True], runs[False]
    assert 3 < one.state.skipped_steps < 9
    assert one.state.skipped_steps == other.state.skipped_steps
    assert live_hashes(one.state) == live_hashes(other.state)
    kept = [list_checkpoints(each.run.checkpoints) for each in (one, other)]
    assert [each.step for each in kept[0]] == [each.step for each in kept[1]]
    for pair in zip(*kept, strict=True):
        hashes = [checkpoint_hashes(each) for each in pair]
        assert hashes[0] == hashes[1]
    losses = [
        [(record["step"], str(record.get("loss"))) for record in each.run.read_metrics()]
        for each in (one, other)
    ]
    assert losses[0] == losses[1]
    assert out.count("no update of 'points' (skipped), loss scale") == 3
    assert len(re.findall(r"^repeated with every op recorded in \d.*s$", out, re.MULTILINE)) == 3
    assert "loss scale 4.1943e+06\nrank 0, backward: " in out
    assert "loss scale 1.04858e+06" in out
    assert "3 skipped updates were explained; further ones are not" in out
    assert "overflows" in out
    assert "  input " in out
    assert "no update" not in plain


def test_non_finite_loss_is_explained_before_the_run_stops(tmp_path: Path) -> None:
    task = point_task()
    with torch.no_grad():
        for parameter in task.model.get_submodule("last").parameters():
            parameter.fill_(3e38)
    trainer, out = trained(
        task, plan_of(None, explained=True, mode="must_keep_origin_dtype"), tmp_path
    )
    assert "step 1: no update of 'points' (the run stops), loss scale none" in out
    assert "rank 0, forward: aten.addmm.default (" in out
    assert "in last, call 0 overflows" in out
    assert out.count("no update") == 1
    assert trainer.is_blocked


def test_parameter_that_overflows_in_its_cast_is_named(tmp_path: Path) -> None:
    task = point_task()
    with torch.no_grad():
        task.model.get_parameter("last.weight").fill_(1e6)
    _, out = trained(task, plan_of(FixedLossScale(init_loss_scale=1.0), explained=True), tmp_path)
    assert "it casts the parameter last.weight" in out


def test_step_is_repeated_with_its_original_loss_scale(tmp_path: Path) -> None:
    scale = ExponentialLossScale(
        init_loss_scale=2.0**30, decr_every_n_nan_or_inf=1, decr_ratio=2.0**-16
    )
    trainer, out = trained(point_task(), plan_of(scale, explained=True), tmp_path)
    assert trainer.state.skipped_steps == 1
    assert "rank 0, backward: " in out
    assert "gave finite values" not in out
    assert trainer.policy.loss_scale is not None
    assert trainer.policy.loss_scale.scale.item() == 2.0**14


def test_changes_by_the_repetition_are_reverted(tmp_path: Path) -> None:
    plan = plan_of(FixedLossScale(init_loss_scale=8.0), explained=True)
    trainer = trainer_for(point_task(), plan, tmp_path)
    state, lines = trainer.state, list[str]()
    guard = Guard(["points"], torch.device("cpu"), Ranks())
    explainer = Explainer(state, guard, Ranks(), say=lines.append, say_here=lines.append)
    buffers = list(state.task.model.buffers())
    assert state.policy.loss_scale is not None
    scale = state.policy.loss_scale.scale
    explainer.prepare(buffers)
    buffers[0].add_(1)
    scale.fill_(4.0)
    before = live_hashes(state), torch.get_rng_state()
    seen: list[float] = []

    def passes() -> None:
        seen.append(scale.item())
        for buffer in buffers:
            buffer.add_(2)
        torch.rand(3)

    explainer.explain(state.lanes[0], torch.tensor(1.0), passes)
    assert seen == [8.0]
    assert live_hashes(state) == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])
    assert "rank 0: every recorded op gave finite values" in lines
    explainer.explain(state.lanes[0], torch.tensor(0.0), passes)
    assert seen == [8.0]


class Counting(nn.Module):
    """Counts its forward passes in a buffer, and multiplies by what it has counted."""

    count: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.ones(()))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        return values * self.count


def test_repeated_step_uses_the_buffers_from_before_it(tmp_path: Path) -> None:
    task = point_task(batch_norm=False)
    seen: list[float] = []
    counting = Counting()
    counting.register_forward_hook(lambda *call: seen.append(float(counting.count)))
    task.model.add_module("keyed", counting)
    scale = FixedLossScale(init_loss_scale=2.0**30)
    plan = plan_of(scale, explained=True)
    trainer, out = trained(
        task, replace(plan, training=replace(plan.training, duration="2it")), tmp_path
    )
    assert out.count("no update") == 2
    # Rehearsed twice, then each step and its repetition; an evaluation follows.
    assert seen[:6] == [2.0, 2.0, 2.0, 2.0, 3.0, 3.0]
    assert trainer.state.skipped_steps == 2


def test_objective_of_a_gan_is_named_and_both_train_on(tmp_path: Path) -> None:
    names = ("discriminator", "generator")
    runs: list[tuple[Trainer, str]] = []
    for explained in (True, False):
        torch.manual_seed(4)
        plan = plan_of(SHRINKING, explained=explained, objectives=names)
        runs.append(trained(GanTask(), plan, tmp_path / str(explained)))
    assert runs[0][0].state.skipped_steps > 0
    assert live_hashes(runs[0][0].state) == live_hashes(runs[1][0].state)
    assert "no update of 'discriminator' (skipped)" in runs[0][1]


def on_ranks(folder: Path, name: str) -> str:
    (folder / name).mkdir()
    torchrun = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    command = [sys.executable, "-m", *torchrun, "-m", "tests.training.explained_on_ranks"]
    done = subprocess.run(
        [*command, str(folder / name), name],
        cwd=CHECKOUT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_ranks_explain_their_own_passes_and_stay_in_step(tmp_path: Path) -> None:
    out = on_ranks(tmp_path, "explained")
    on_ranks(tmp_path, "bare")
    assert "no update of 'points' (skipped), loss scale 8" in out
    assert "rank 0: every recorded op gave finite values" in out
    assert "rank 1, forward: aten.addmm.default (MatMul) in first" in out
    sides = [list_checkpoints(tmp_path / name / "checkpoints") for name in ("explained", "bare")]
    for pair in zip(*sides, strict=True):
        hashes = [checkpoint_hashes(each) for each in pair]
        assert hashes[0] == hashes[1]
