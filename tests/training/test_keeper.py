"""Which checkpoints and scores a run keeps."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.tasks.task import Headline
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.keeper import CheckpointKeeper
from jumar.training.parallel.ranks import Ranks
from jumar.training.run_directory import RunDirectory
from jumar.training.settings import CheckpointSettings, TrainingSettings
from tests.training.small_tasks import point_task, small_plan, trainer_for


def keeper(path: Path, *, higher: bool = True, **changed: int) -> CheckpointKeeper:
    plan = small_plan(
        batch_size=changed.get("batch_size", 8), checkpoints=CheckpointSettings(keep=3)
    )
    return CheckpointKeeper(
        RunDirectory(path),
        plan,
        Ranks(),
        Headline(name="top1", unit="%", higher_is_better=higher),
        epoch_size=changed.get("epoch_size", 40),
        steps_per_epoch=5,
    )


@pytest.mark.parametrize(("higher", "best"), [(True, [0, 2, 4]), (False, [0, 1, 3])])
def test_new_best_scores_are_recognised(tmp_path: Path, higher: bool, best: list[int]) -> None:
    kept = keeper(tmp_path, higher=higher)
    scores = [50.0, 40.0, 60.0, 30.0, 70.0, 70.0 if higher else 30.0]
    result = [kept.add_scores(step, {"top1": value}) for step, value in enumerate(scores)]
    assert [step for step, improved in enumerate(result) if improved] == best


def test_scores_of_earlier_starts_count(tmp_path: Path) -> None:
    """Otherwise the first evaluation after each start would pass for the best."""
    trainer_for(point_task(), small_plan(), tmp_path).train()
    again = keeper(tmp_path)
    last = list_checkpoints(tmp_path / "checkpoints")[-1]
    again.resume_from(last, total_steps=20)
    assert set(again.scores) == {
        known.step for known in list_checkpoints(tmp_path / "checkpoints") if known.metrics
    }
    assert not again.add_scores(11, {"top1": -1.0})


def test_required_space_is_one_checkpoint_more_than_kept_or_all_written(
    tmp_path: Path,
) -> None:
    kept = keeper(tmp_path)
    assert kept.max_kept == 4
    assert (kept.max_new(None), kept.max_new(100), kept.max_new(2)) == (5, 5, 2)
    trainer_for(point_task(), small_plan(), tmp_path).train()
    there = len(list_checkpoints(tmp_path / "checkpoints"))
    assert kept.max_new(None) == max(5 - there, 1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"batch_size": 4}, "the global batch size was 8, now 4"),
        ({"epoch_size": 41}, "the epoch size was 40, now 41"),
        ({"total_steps": 9}, "this run has already done 10 steps, more than the 9"),
    ],
)
def test_changes_to_finished_steps_are_refused(
    tmp_path: Path, changed: dict[str, int], message: str
) -> None:
    trainer_for(point_task(), small_plan(), tmp_path).train()
    last = list_checkpoints(tmp_path / "checkpoints")[-1]
    total = changed.get("total_steps", 20)
    with pytest.raises(UserError, match=message):
        keeper(tmp_path, **changed).resume_from(last, total_steps=total)


def resumed_after(tmp_path: Path, step: int) -> float:
    """Seconds of CPU from the start of a resumed run at a step to the end of its second step."""
    plan = small_plan(
        duration=f"{step + 2}it",
        training=TrainingSettings(log_every="1it", evaluate_every=""),
        checkpoints=CheckpointSettings(every=""),
    )
    first = trainer_for(point_task(), plan, tmp_path)
    first.state.step = step
    first._keeper.save(first.state)
    first._keeper.finish()
    trainer = trainer_for(point_task(), plan, tmp_path)
    start = time.process_time()
    trainer.resume(list_checkpoints(tmp_path / "checkpoints")[-1])
    assert trainer.train().step == step + 2
    return time.process_time() - start


def test_resuming_at_a_late_step_costs_no_more_than_at_an_early_one(tmp_path: Path) -> None:
    """The order of samples is computed: two million epochs passed before the late one."""
    early = resumed_after(tmp_path / "early", 3)
    late = resumed_after(tmp_path / "late", 10**7 + 3)
    assert late < 3 * early + 0.5


def test_changes_are_reported_with_their_effect(tmp_path: Path) -> None:
    trainer_for(point_task(), small_plan(), tmp_path).train()
    last = list_checkpoints(tmp_path / "checkpoints")[-1]
    advice = (
        "Resume with the same data and global batch size (batch size times ranks), or start "
        "a new run with transfer.start_from."
    )
    with pytest.raises(UserError) as refused:
        keeper(tmp_path, batch_size=4).resume_from(last, total_steps=20)
    assert str(refused.value) == (
        f"{last.path}: the global batch size was 8, now 4: the order of samples would differ\n"
        f"  {advice}"
    )
    with pytest.raises(UserError) as refused:
        keeper(tmp_path).resume_from(last, total_steps=9)
    assert str(refused.value) == (
        "training.duration: this run has already done 10 steps, more than the 9 of 10it\n"
        "  Set a longer duration to resume, or choose another --run-dir."
    )
    for total in (10, 11, None):
        keeper(tmp_path).resume_from(last, total_steps=total)
    # What an earlier version did not record is taken to be the same.
    keeper(tmp_path, batch_size=4).resume_from(replace(last, batch={}), total_steps=20)
    exact = small_plan(training=TrainingSettings(sums="exact", micro_batch_size=4))
    kept = CheckpointKeeper(
        RunDirectory(tmp_path),
        exact,
        Ranks(rank=0, world=2, local_world=2),
        Headline(name="top1", unit="%", higher_is_better=True),
        epoch_size=40,
        steps_per_epoch=5,
    )
    identity = {"global_batch_size": 16, "epoch_size": 40, "seed": 3, "micro_batch_size": 4}
    assert kept._identity == identity
    with pytest.raises(UserError, match="micro batch size was 2, now 4: the order of additions"):
        kept.resume_from(replace(last, batch={**identity, "micro_batch_size": 2}), total_steps=None)


def test_only_scores_up_to_the_resumed_checkpoint_count(tmp_path: Path) -> None:
    trainer_for(point_task(), small_plan(duration="15it"), tmp_path).train()
    result = {c.step: c for c in list_checkpoints(tmp_path / "checkpoints")}
    assert {step for step, each in result.items() if each.metrics} == {5, 10, 15}
    again = keeper(tmp_path)
    again.resume_from(result[10], total_steps=15)
    assert again.scores == {step: result[step].metrics for step in (5, 10)}


def test_scores_are_compared_by_the_main_metric_if_present(tmp_path: Path) -> None:
    kept = keeper(tmp_path)
    assert kept.add_scores(1, {"loss": 1.0, "top1": 50.0})
    assert not kept.add_scores(2, {"loss": 9.0, "top1": 50.0})
    kept.scores[3] = {"loss": 1.0}
    assert kept.add_scores(4, {"loss": 0.0, "top1": 50.1})
    assert list(kept.scores) == [1, 2, 3, 4]
    assert kept.best() is None


def test_step_is_saved_once_then_scored_and_old_ones_dropped(
    tmp_path: Path,
) -> None:
    state = trainer_for(point_task(), small_plan(), tmp_path).state
    kept = keeper(tmp_path)
    kept.save(state)
    kept.finish()
    assert not (tmp_path / "checkpoints").exists()
    for step, score in ((1, 90.0), (2, 50.0), (3, 60.0), (4, 70.0), (5, None)):
        state.step = step
        kept.save(state)
        kept.finish()
        path = tmp_path / "checkpoints" / f"step-0000000{step}" / "model.safetensors"
        written = path.stat().st_mtime_ns
        if score is not None:
            kept.add_scores(step, {"top1": score})
        kept.save(state)
        kept.finish()
        assert path.stat().st_mtime_ns == written
    result = {c.step: dict(c.metrics) for c in list_checkpoints(tmp_path / "checkpoints")}
    assert result == {1: {"top1": 90.0}, 3: {"top1": 60.0}, 4: {"top1": 70.0}, 5: {}}
    assert [c.epoch for c in list_checkpoints(tmp_path / "checkpoints")] == [0.2, 0.6, 0.8, 1.0]
    best = kept.best()
    assert best is not None
    assert best.step == 1
    kept.close()
