"""Which checkpoint is taken, and what becomes of damaged ones."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.training import checkpoint_retention
from jumar.training.checkpoint import (
    EMA,
    FORMAT,
    MODEL,
    OPTIMIZER,
    RECORD,
    STATE,
    Checkpoint,
    check_weights_file,
    load_state,
    record_metrics,
    write_checkpoint,
)
from jumar.training.checkpoint_files import sealed
from jumar.training.checkpoint_state import SavedState
from jumar.training.run_directory import read_json, write_json

FILES = (MODEL, EMA, OPTIMIZER, STATE, RECORD)
TO_GO_ON = (OPTIMIZER, STATE)


def write(directory: Path, step: int, *, scored: float | None = None) -> Checkpoint:
    weights = {"w": torch.arange(200.0) + step}
    written = write_checkpoint(
        directory,
        step=step,
        epoch=step / 10,
        model=weights,
        ema=weights,
        state=SavedState(values={"step": step}, slots={"tensor": torch.arange(300)}),
        batch={"seed": 1},
    )
    return written if scored is None else record_metrics(written, {"top1": scored})


def flip(path: Path) -> None:
    """Another digit or bit in the middle, which leaves every format valid."""
    content = bytearray(path.read_bytes())
    if path.name == RECORD:
        at = content.index(b'"step": ') + 8
        content[at] = ord("7")
    else:
        content[len(content) // 2] ^= 1
    path.write_bytes(content)


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    path.unlink()


def put_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES = (flip, halve, empty, remove, put_folder)
Damage = Callable[[Path], None]


def test_retention_keeps_the_newest_and_the_best(tmp_path: Path) -> None:
    for step, score in ((1, 10.0), (2, 90.0), (3, 50.0), (4, 60.0)):
        record_metrics(write(tmp_path, step), {"top1": score})
    checkpoint_retention.drop_checkpoints(tmp_path, keep=2, keep_best=True, headline=("top1", True))
    assert [c.step for c in checkpoint_retention.list_checkpoints(tmp_path)] == [2, 3, 4]
    assert checkpoint_retention.find_checkpoint(tmp_path, "best", ("top1", True)).step == 2
    checkpoint_retention.drop_checkpoints(
        tmp_path, keep=1, keep_best=False, headline=("top1", True)
    )
    assert [c.step for c in checkpoint_retention.list_checkpoints(tmp_path)] == [4]


@pytest.mark.parametrize("higher", [True, False])
def test_later_of_equal_scores_is_the_best(tmp_path: Path, higher: bool) -> None:
    for step, score in ((1, 90.0), (2, 90.0), (3, 20.0 if higher else 95.0)):
        record_metrics(write(tmp_path, step), {"top1": score})
    headline = ("top1", higher)
    assert checkpoint_retention.find_checkpoint(tmp_path, "best", headline).step == 2


def test_nan_score_is_never_the_best(tmp_path: Path) -> None:
    record_metrics(write(tmp_path, 1), {"loss": 2.0})
    record_metrics(write(tmp_path, 2), {"loss": float("nan")})
    assert checkpoint_retention.find_checkpoint(tmp_path, "best", ("loss", False)).step == 1


def test_missing_step_is_named_and_existing_ones_listed(tmp_path: Path) -> None:
    write(tmp_path, 5)
    with pytest.raises(UserError, match="5, last, best"):
        checkpoint_retention.find_checkpoint(tmp_path, "6")


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_newest_intact_checkpoint_is_used_for_any_damage(
    tmp_path: Path, name: str, damage: Damage
) -> None:
    for step in (1, 2, 3):
        write(tmp_path, step)
    file = tmp_path / "step-00000003" / name
    damage(file)
    messages: list[str] = []
    newest = checkpoint_retention.newest_checkpoint(tmp_path, messages.append)
    assert newest is not None
    assert newest.step == 2
    assert [str(file) in line for line in messages] == [True]
    if name not in TO_GO_ON:
        assert checkpoint_retention.find_checkpoint(tmp_path, "last", say=messages.append).step == 2
        intact = checkpoint_retention.intact_checkpoints(tmp_path, messages.append)
        assert [checkpoint.step for checkpoint in intact] == [1, 2]
        with pytest.raises(UserError) as result:
            checkpoint_retention.find_checkpoint(tmp_path, "3")
        assert result.value.where == str(file)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_old_damaged_checkpoint_is_not_even_named(
    tmp_path: Path, name: str, damage: Damage
) -> None:
    for step in (1, 2):
        write(tmp_path, step)
    damage(tmp_path / "step-00000001" / name)
    newest = checkpoint_retention.newest_checkpoint(tmp_path, pytest.fail)
    assert newest is not None
    assert newest.step == 2
    write(tmp_path, 3)
    checkpoint_retention.drop_checkpoints(tmp_path, keep=1, keep_best=True, headline=("top1", True))
    assert checkpoint_retention.find_checkpoint(tmp_path, "last", say=pytest.fail).step == 3


@pytest.mark.parametrize("name", TO_GO_ON)
def test_weights_are_usable_even_if_the_resume_state_is_damaged(tmp_path: Path, name: str) -> None:
    write(tmp_path, 1, scored=50.0)
    flip(tmp_path / "step-00000001" / name)
    for which in ("last", "best", "1"):
        result = checkpoint_retention.find_checkpoint(tmp_path, which, ("top1", True), pytest.fail)
        assert result.step == 1
    with pytest.raises(UserError, match="CRC-32C") as error:
        load_state(result)
    assert error.value.where.endswith(name)


def test_best_intact_checkpoint_is_used_and_a_better_damaged_one_named(
    tmp_path: Path,
) -> None:
    for step, score in ((1, 50.0), (2, 90.0), (3, 70.0)):
        write(tmp_path, step, scored=score)
    flip(tmp_path / "step-00000002" / EMA)
    messages: list[str] = []
    best = checkpoint_retention.find_checkpoint(tmp_path, "best", ("top1", True), messages.append)
    assert best.step == 3
    assert ["step-00000002" in line for line in messages] == [True]


def test_error_names_each_checkpoint_if_all_are_damaged(tmp_path: Path) -> None:
    for step, name in ((1, MODEL), (2, RECORD)):
        write(tmp_path, step)
        flip(tmp_path / f"step-0000000{step}" / name)
    for choose in (
        lambda: checkpoint_retention.newest_checkpoint(tmp_path, str),
        lambda: checkpoint_retention.intact_checkpoints(tmp_path, str),
        lambda: checkpoint_retention.find_checkpoint(tmp_path, "last", say=str),
    ):
        with pytest.raises(UserError, match="no checkpoint in") as found:
            choose()
        assert "step-00000001/model.safetensors" in found.value.todo
        assert "step-00000002/checkpoint.json" in found.value.todo


def test_nothing_to_resume_from_without_a_checkpoint(tmp_path: Path) -> None:
    assert checkpoint_retention.newest_checkpoint(tmp_path / "none", pytest.fail) is None


def test_recording_scores_keeps_the_hashes(tmp_path: Path) -> None:
    written = write(tmp_path, 1)
    noted = record_metrics(written, {"top1": float("nan"), "loss": 0.1 + 0.2})
    assert noted.marks == written.marks
    assert set(noted.marks) == {MODEL, EMA, OPTIMIZER, STATE}
    assert (
        checkpoint_retention.intact_checkpoints(tmp_path, pytest.fail)[0].metrics["loss"]
        == 0.1 + 0.2
    )


def test_checkpoints_newer_than_the_resumed_one_are_set_aside(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        write(tmp_path, step)
    for attempt in range(2):
        flip(tmp_path / "step-00000003" / MODEL)
        newest = checkpoint_retention.newest_checkpoint(tmp_path, str)
        assert newest is not None
        (place,) = checkpoint_retention.set_aside_newer(tmp_path, newest)
        assert (place / MODEL).is_file()
        assert [c.step for c in checkpoint_retention.list_checkpoints(tmp_path)] == [1, 2]
        write(tmp_path, 3)
        assert len(list(tmp_path.glob("damaged-step-00000003*"))) == attempt + 1


def test_weights_file_is_verified_against_its_checkpoint(tmp_path: Path) -> None:
    file = write(tmp_path, 1).path / MODEL
    check_weights_file(file)
    flip(file)
    with pytest.raises(UserError, match="CRC-32C"):
        check_weights_file(file)
    check_weights_file(file.rename(tmp_path / "alone.safetensors"))


def test_checkpoint_of_a_later_version_is_refused_and_not_set_aside(tmp_path: Path) -> None:
    write(tmp_path, 1)
    file = write(tmp_path, 2).path / RECORD
    write_json(file, sealed(read_json(file) | {"format": FORMAT + 1}))
    with pytest.raises(UserError, match="has format 3") as refused:
        checkpoint_retention.newest_checkpoint(tmp_path, pytest.fail)
    assert refused.value.where == str(file)


def test_directory_without_a_record_is_not_a_checkpoint(tmp_path: Path) -> None:
    write(tmp_path, 1)
    (write(tmp_path, 2).path / RECORD).unlink()
    messages: list[str] = []
    newest = checkpoint_retention.newest_checkpoint(tmp_path, messages.append)
    assert newest is not None
    assert newest.step == 1
    assert "checkpoint.json" in messages[0]


def test_checkpoint_is_found_by_step_or_refused_listing_existing_ones(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        checkpoint_retention.find_checkpoint(tmp_path / "none", "last")
    assert str(refused.value) == f"there is no checkpoint in '{tmp_path / 'none'}'"
    for step in (10, 2, 5):
        write(tmp_path, step)
    (tmp_path / "step-00000007x").mkdir()
    assert [c.step for c in checkpoint_retention.list_checkpoints(tmp_path)] == [2, 5, 10]
    assert checkpoint_retention.find_checkpoint(tmp_path, "5").step == 5
    assert checkpoint_retention.find_checkpoint(tmp_path, "last").step == 10
    for which in ("6", "05", "newest"):
        with pytest.raises(UserError) as refused:
            checkpoint_retention.find_checkpoint(tmp_path, which)
        assert str(refused.value) == (
            f"{tmp_path}: there is no checkpoint '{which}'\n  Available: 2, 5, 10, last, best."
        )
    for headline in (None, ("top1", True)):
        with pytest.raises(UserError) as refused:
            checkpoint_retention.find_checkpoint(tmp_path, "best", headline)
        assert str(refused.value) == (
            f"{tmp_path}: no checkpoint has been scored yet\n  Use 'last'."
        )


def test_newest_checkpoint_is_limited_to_the_requested_step(tmp_path: Path) -> None:
    for step in (2, 5, 10):
        write(tmp_path, step)
    for until, expected in ((None, 10), (10, 10), (9, 5), (5, 5), (2, 2)):
        newest = checkpoint_retention.newest_checkpoint(tmp_path, pytest.fail, until=until)
        assert newest is not None
        assert newest.step == expected
    assert checkpoint_retention.newest_checkpoint(tmp_path, pytest.fail, until=1) is None


def test_skipped_checkpoints_are_reported_with_file_and_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for step in (1, 2, 3):
        write(tmp_path, step)
    for step in (2, 3):
        remove(tmp_path / f"step-0000000{step}" / MODEL)
    assert checkpoint_retention.find_checkpoint(tmp_path, "last").step == 1
    assert capsys.readouterr().err == (
        f"jumar: skipping damaged checkpoint: {tmp_path}/step-00000003/{MODEL} is missing\n"
        f"jumar: skipping damaged checkpoint: {tmp_path}/step-00000002/{MODEL} is missing\n"
    )
    remove(tmp_path / "step-00000001" / MODEL)
    with pytest.raises(UserError) as refused:
        checkpoint_retention.newest_checkpoint(tmp_path, str, until=2)
    assert str(refused.value) == (
        f"no checkpoint in '{tmp_path}' is intact\n"
        f"  {tmp_path}/step-00000002/{MODEL} is missing\n"
        f"  {tmp_path}/step-00000001/{MODEL} is missing"
    )


def test_set_aside_checkpoints_are_numbered_if_some_exist(tmp_path: Path) -> None:
    names = []
    for _ in range(3):
        for step in (1, 2, 3):
            write(tmp_path, step)
        first = checkpoint_retention.list_checkpoints(tmp_path)[0]
        names += [path.name for path in checkpoint_retention.set_aside_newer(tmp_path, first)]
    assert names == [
        f"damaged-step-0000000{step}{number}" for number in ("", "-2", "-3") for step in (2, 3)
    ]
    assert [c.step for c in checkpoint_retention.list_checkpoints(tmp_path)] == [1]


def test_only_partially_written_files_are_removed(tmp_path: Path) -> None:
    checkpoint_retention.remove_leftovers(tmp_path / "none")
    write(tmp_path, 1)
    for name in (".step-00000002.unfinished", ".step-00000001.dropped", "other", ".hidden"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    checkpoint_retention.remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".hidden", "other", "step-00000001"]


def test_best_is_kept_only_if_scored_by_that_metric(tmp_path: Path) -> None:
    for step, metrics in ((1, {"loss": 1.0}), (2, {"loss": 0.5}), (3, {"top1": 9.0}), (4, {})):
        record_metrics(write(tmp_path, step), metrics)
    result = checkpoint_retention.list_checkpoints(tmp_path)
    for headline, step in ((("loss", False), 2), (("loss", True), 1), (("top1", True), 3)):
        best = checkpoint_retention.best_checkpoint(result, headline)
        assert best is not None
        assert best.step == step
    assert checkpoint_retention.best_checkpoint(result, ("other", True)) is None
    checkpoint_retention.drop_checkpoints(
        tmp_path, keep=1, keep_best=True, headline=("loss", False)
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000002", "step-00000004"]
