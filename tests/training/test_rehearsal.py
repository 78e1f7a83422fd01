import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jumar.data.samples import SampleKey
from jumar.devices.cpu import Cpu
from jumar.ground.errors import UserError
from jumar.ground.machine import memory_bytes
from jumar.precision.loss_scale import ExponentialLossScale
from jumar.precision.settings import PrecisionSettings
from jumar.training.optimizers import Adagrad, Adam, Lamb, RmsProp
from jumar.training.parallel.ranks import Ranks
from jumar.training.rehearsal import (
    SECOND_PASS_BELOW_S,
    Rehearsal,
    announcement,
    check_disk,
    check_memory,
    checkpoint_bytes,
    describe_batch,
    fallback_note,
    rehearse,
)
from jumar.training.settings import Plan, TrainingSettings, TransferSettings
from jumar.training.trainer import Trainer
from tests.training.small_tasks import GanTask, point_task, small_plan, trainer_for
from tests.training.test_trainer import everything, same

BATCH = {"image": torch.zeros(4, 3, 8, 8, dtype=torch.uint8), "label": torch.zeros(4).long()}


def test_batch_is_described_by_name_dtype_and_shape() -> None:
    assert describe_batch(BATCH) == "image uint8 4x3x8x8, label int64 4"


def lines(**changed: object) -> list[str]:
    values = {
        "samples": 40,
        "steps_per_epoch": 5,
        "done_steps": 30,
        "total_steps": 100,
        "checkpoints": "1 KiB each, at most 6 kept",
        **changed,
    }
    return announcement(BATCH, Rehearsal(step_s=0.25, memory_bytes=3 << 20), **values)


def test_first_batch_memory_and_the_time_to_the_end_are_reported() -> None:
    first, second, third = lines()
    assert first == "first batch: image uint8 4x3x8x8, label int64 4 · memory: 3 MiB"
    assert second == "40 samples, 5 steps per epoch · checkpoints: 1 KiB each, at most 6 kept"
    assert "70 of 100 steps to go, about 250 ms each without the update: about 18 s" in third


def test_timed_run_reports_the_step_time() -> None:
    assert lines(total_steps=None)[-1] == (
        "training for training.duration, about 250 ms each without the update"
    )


def test_too_small_disk_is_refused_even_before_the_folder_exists(tmp_path: Path) -> None:
    check_disk(tmp_path / "a" / "b", 1)
    with pytest.raises(UserError, match=r"checkpoints need .*, but only"):
        check_disk(tmp_path / "a" / "b", 1 << 60)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="not writable"):
        check_disk(tmp_path / "file" / "b", 1)


PLANS: dict[str, Plan] = {
    "momentum": small_plan(),
    "averages": small_plan(training=TrainingSettings(ema_decay=0.9)),
    "adam": small_plan(optimizer=Adam()),
    "adagrad": small_plan(optimizer=Adagrad()),
    "lamb": small_plan(optimizer=Lamb()),
    "rmsprop": small_plan(optimizer=RmsProp()),
}


@pytest.mark.parametrize("name", PLANS)
def test_checkpoint_size_is_predicted(tmp_path: Path, name: str) -> None:
    plan = PLANS[name]
    task = point_task()
    task.model.first.weight = torch.nn.Parameter(torch.zeros(30000, 6))
    task.model.norm = torch.nn.BatchNorm1d(30000)
    task.model.last = torch.nn.Linear(30000, 3)
    task.model.first.bias = torch.nn.Parameter(torch.zeros(30000))
    trainer = trainer_for(
        task, replace(plan, training=replace(plan.training, duration="1it")), tmp_path
    )
    foretold = checkpoint_bytes(trainer.state, trainer.plan)
    trainer.train()
    (folder,) = (tmp_path / "checkpoints").iterdir()
    real = sum(path.stat().st_size for path in folder.iterdir())
    assert foretold <= real < 1.15 * foretold + 20000


def rehearsed(trainer: Trainer) -> None:
    trainer.train(dry_run=True)


@pytest.mark.parametrize(
    "precision",
    [
        PrecisionSettings(),
        PrecisionSettings(mode="allow_mix_precision", loss_scale=ExponentialLossScale()),
    ],
    ids=["full precision", "loss scale"],
)
def test_rehearsal_does_not_affect_the_run(tmp_path: Path, precision: PrecisionSettings) -> None:
    """Batch norm, dropout, gradients, sums of the log, loss scale."""
    plan = small_plan(precision=precision)
    trainer = trainer_for(point_task(), plan, tmp_path)
    before = everything(trainer)
    rehearsed(trainer)
    assert same(before, everything(trainer))
    assert all(parameter.grad is None for parameter in trainer.task.model.parameters())


def test_gan_is_rehearsed_with_both_objectives(tmp_path: Path) -> None:
    plan = small_plan(objectives=("discriminator", "generator"))
    trainer = trainer_for(GanTask(), plan, tmp_path)
    before = everything(trainer)
    rehearsed(trainer)
    assert same(before, everything(trainer))


def test_batch_exceeding_memory_is_a_user_error(tmp_path: Path) -> None:
    task = point_task()

    def forward(points: torch.Tensor) -> torch.Tensor:
        raise torch.OutOfMemoryError("tried to allocate 80 GiB")

    task.model.forward = forward
    with pytest.raises(UserError, match="does not fit into the memory") as found:
        rehearsed(trainer_for(task, small_plan(), tmp_path))
    assert "training.micro_batch_size" in found.value.todo


def test_runs_exceeding_memory_are_refused_before_the_first_step(tmp_path: Path) -> None:
    trainer = trainer_for(point_task(), small_plan(), tmp_path)
    needed = checkpoint_bytes(trainer.state, trainer.plan)
    check_memory(trainer.state, trainer.device, needed)
    with pytest.raises(UserError, match=r"gradients, optimizer and .* need 2,097,152"):
        check_memory(trainer.state, trainer.device, 1 << 50)
    trainer.state.step = 1  # resumed: its slots are in memory already
    with pytest.raises(UserError, match=r"the copy of a checkpoint needs 1,048,576") as refused:
        check_memory(trainer.state, trainer.device, 1 << 50)
    assert refused.value.where == "model"
    free, _ = memory_bytes()
    check_memory(trainer.state, trainer.device, free * 9 // 10)
    trainer.state.step = 0
    with pytest.raises(UserError, match="only"):
        check_memory(trainer.state, trainer.device, free * 9 // 10)


@pytest.mark.parametrize("micro_batch_size", [0, 3])
def test_passes_of_a_step_can_be_repeated_bitwise(tmp_path: Path, micro_batch_size: int) -> None:
    training = TrainingSettings(evaluate_every="", micro_batch_size=micro_batch_size)
    plan = small_plan(training=training)
    first = trainer_for(point_task(), plan, tmp_path)
    with first.at_step(2, None) as (stepper, batch):
        assert first.state.step == 2
        sums = dict(first.state.lanes[0].sums)
        saved = [buffer.clone() for buffer in stepper.buffers]
        loss, gradients = stepper.passes(batch)
        for buffer, before in zip(stepper.buffers, saved, strict=True):
            buffer.copy_(before)
        again = stepper.passes(batch)
        assert torch.equal(loss, again[0])
        pairs = list(zip(gradients, again[1], strict=True))
        assert all(a is not None and b is not None and torch.equal(a, b) for a, b in pairs)
        assert first.state.lanes[0].sums.keys() == sums.keys()
        assert all(parameter.grad is None for parameter in first.task.model.parameters())


def test_both_objectives_of_a_gan_have_gradients(tmp_path: Path) -> None:
    task = GanTask()
    trainer = trainer_for(task, small_plan(objectives=("discriminator", "generator")), tmp_path)
    with trainer.at_step(0, None) as (stepper, batch):
        _, gradients = stepper.passes(batch)
    due = [lane for lane in trainer.state.lanes if lane.objective.is_due(0)]
    assert len(gradients) == sum(len(lane.parameters) for lane in due)
    assert all(each is not None for each in gradients)


def test_unknown_values_are_omitted_and_fallbacks_reported() -> None:
    result = announcement(
        {"x": torch.zeros(2)},
        Rehearsal(step_s=0.5, memory_bytes=None),
        samples=1,
        steps_per_epoch=1,
        done_steps=0,
        total_steps=200,
        checkpoints="none",
        fallback_note="an op is slow",
    )
    assert result == [
        "first batch: x float32 2",
        "1 sample, 1 step per epoch · checkpoints: none",
        "an op is slow",
        "200 of 200 steps to go, about 500 ms each without the update: about 2 min, not counting "
        "evaluation",
    ]


def test_ops_without_a_kernel_are_named_with_the_device() -> None:
    class Slow(Cpu):
        fallback_remedy = "Wait."

    device = Slow(index=0, name="Card")
    assert fallback_note([], device) == ""
    assert fallback_note(["aten::a", "aten::b"], device) == (
        "computed on the CPU, since Card has no kernel for it: aten::a, aten::b; each copies its "
        "tensors there and back. Wait."
    )


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        # 195 parameters and 33 numbers of batch norm, one of which has 64 bits.
        (small_plan(), 916 + 780),
        (small_plan(optimizer=Adam()), 916 + 2 * 780),
        (small_plan(training=TrainingSettings(ema_decay=0.9)), 2 * 916 + 780),
        # Without the slots of the first layer's 112 parameters, unless they train later.
        (replace(small_plan(), transfer=TransferSettings(freeze=("first",))), 916 + 332),
        (
            replace(small_plan(), transfer=TransferSettings(freeze=("first",), unfreeze_at="9it")),
            916 + 780,
        ),
    ],
)
def test_checkpoint_size_is_weights_averages_and_slots(
    tmp_path: Path, plan: Plan, expected: int
) -> None:
    trainer = trainer_for(point_task(), plan, tmp_path)
    assert checkpoint_bytes(trainer.state, trainer.plan) == expected


def test_insufficient_memory_and_disk_are_reported_with_a_remedy(tmp_path: Path) -> None:
    trainer = trainer_for(point_task(), small_plan(), tmp_path)
    with pytest.raises(UserError) as refused:
        check_memory(trainer.state, trainer.device, 1 << 50)
    assert re.fullmatch(
        r"model: gradients, optimizer and the copy of a checkpoint need 2,097,152\.0 GiB, but only "
        r"[0-9.]+ [GM]iB of memory is free\n"
        r"  Make the network smaller \(jumar recipes show NAME lists the fields of `model`\), or "
        r"use a --device with more memory\.",
        str(refused.value),
    )

    class Accelerated(Cpu):
        on_host = False

    check_memory(trainer.state, Accelerated(index=0, name="x"), 1 << 50)
    with pytest.raises(UserError) as refused:
        check_disk(tmp_path / "a" / "b", 1 << 60)
    assert re.fullmatch(
        rf"{tmp_path}: checkpoints need 1,073,741,824\.0 GiB, but only [0-9,.]+ [GM]iB is free\n"
        r"  Free some space, choose another --run-dir, or lower checkpoints\.keep\.",
        str(refused.value),
    )
    (tmp_path / "file").touch()
    with pytest.raises(UserError) as refused:
        check_disk(tmp_path / "file" / "b", 1)
    assert str(refused.value) == f"{tmp_path / 'file'}: not writable\n  Choose another --run-dir."
    if Path("/proc/self").exists():
        with pytest.raises(UserError) as refused:
            check_disk(Path("/proc/self/run"), 1)
        assert "not writable" in refused.value.what


class Forward:
    """A forward pass that takes its time, and then fails if it has an error."""

    def __init__(self, seconds: float, error: Exception | None = None) -> None:
        self.seconds, self.error, self.calls = seconds, error, 0

    def __call__(self, points: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        time.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return points[:, :3] * torch.ones(3, requires_grad=True)


def rehearsed_with(forward: Forward, path: Path, *, compiles: bool = False) -> Rehearsal:
    task = point_task()
    task.model.forward = forward  # pyright: ignore[reportAttributeAccessIssue]
    trainer = trainer_for(task, small_plan(), path)
    batch = task.train_data.fetch([SampleKey(0, index) for index in range(8)]).batch
    return rehearse(trainer._stepper, batch, trainer.device, Ranks(), compiles=compiles)


def test_long_first_pass_is_repeated_only_if_it_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert SECOND_PASS_BELOW_S == 2.0
    monkeypatch.setattr("jumar.training.rehearsal.SECOND_PASS_BELOW_S", 0.25)
    for seconds, compiles, calls in ((0.0, False, 2), (0.3, False, 1), (0.3, True, 2)):
        forward = Forward(seconds)
        result = rehearsed_with(forward, tmp_path, compiles=compiles)
        assert forward.calls == calls
        assert seconds <= result.step_s < 60
        assert result.memory_bytes is not None
        assert result.memory_bytes > 1 << 20


def test_errors_of_a_rehearsal_are_distinguished(tmp_path: Path) -> None:
    class CompilerError(RuntimeError):
        pass

    CompilerError.__module__ = "torch._inductor.exc"
    failed = CompilerError("\n  no g++\nmore")
    with pytest.raises(UserError) as refused:
        rehearsed_with(Forward(0, failed), tmp_path, compiles=True)
    assert str(refused.value) == (
        "training.compile: torch.compile failed: no g++\n"
        "  On a CPU it needs a C++ compiler (g++, or the one named by CXX), and a Python in a "
        "folder without a space in its name. To do without it: --set training.compile=false"
    )
    with pytest.raises(CompilerError):
        rehearsed_with(Forward(0, failed), tmp_path)
    with pytest.raises(ValueError, match="odd"):
        rehearsed_with(Forward(0, ValueError("odd")), tmp_path, compiles=True)
    with pytest.raises(UserError) as refused:
        rehearsed_with(Forward(0, torch.OutOfMemoryError("80 GiB")), tmp_path)
    assert refused.value.todo == (
        "Make data.batch_size smaller, or keep it and set training.micro_batch_size."
    )
