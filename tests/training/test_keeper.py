"""Which checkpoints and scores a run keeps."""

import time
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.tasks.task import Headline
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.keeper import Keeper
from jumar.training.parallel.ranks import Ranks
from jumar.training.run_directory import RunDirectory
from jumar.training.settings import CheckpointSettings, TrainingSettings
from tests.training.small_tasks import point_task, small_plan, trainer_for


def keeper(path: Path, *, higher: bool = True, **changed: int) -> Keeper:
    plan = small_plan(
        batch_size=changed.get("batch_size", 8), checkpoints=CheckpointSettings(keep=3)
    )
    return Keeper(
        RunDirectory(path),
        plan,
        Ranks(),
        Headline(name="top1", unit="%", higher_is_better=higher),
        epoch_size=changed.get("epoch_size", 40),
        steps_per_epoch=5,
    )


@pytest.mark.parametrize(("higher", "best"), [(True, [0, 2, 4]), (False, [0, 1, 3])])
def test_scores_that_are_better_than_all_before_are_known(
    tmp_path: Path, higher: bool, best: list[int]
) -> None:
    kept = keeper(tmp_path, higher=higher)
    scores = [50.0, 40.0, 60.0, 30.0, 70.0, 70.0 if higher else 30.0]
    found = [kept.add_scores(step, {"top1": value}) for step, value in enumerate(scores)]
    assert [step for step, improved in enumerate(found) if improved] == best


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


def test_a_disk_needs_room_for_one_more_than_are_kept_or_for_all_that_are_written(
    tmp_path: Path,
) -> None:
    kept = keeper(tmp_path)
    assert kept.most_kept == 4
    assert (kept.most_new(None), kept.most_new(100), kept.most_new(2)) == (5, 5, 2)
    trainer_for(point_task(), small_plan(), tmp_path).train()
    there = len(list_checkpoints(tmp_path / "checkpoints"))
    assert kept.most_new(None) == max(5 - there, 1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"batch_size": 4}, "the global batch size was 8, now 4"),
        ({"epoch_size": 41}, "the epoch size was 40, now 41"),
        ({"total_steps": 9}, "this run has already done 10 steps, more than the 9"),
    ],
)
def test_what_would_change_finished_steps_is_refused(
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


def test_going_on_costs_the_same_at_a_late_step_as_at_an_early_one(tmp_path: Path) -> None:
    """The order of samples is computed: two million epochs passed before the late one."""
    early = resumed_after(tmp_path / "early", 3)
    late = resumed_after(tmp_path / "late", 10**7 + 3)
    assert late < 3 * early + 0.5
