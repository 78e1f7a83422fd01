"""Files of tensors that several ranks write and any number of ranks read."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from jumar.ground.errors import UserError
from jumar.training.checkpoint import (
    MODEL,
    OPTIMIZER,
    Checkpoint,
    begin_checkpoint,
    finish_checkpoint,
    load_state,
    load_weights,
    unfinished,
)
from jumar.training.checkpoint_files import FileMark, mark_of
from jumar.training.checkpoint_parts import PartedTensors, Slice, whole_name, write_part
from jumar.training.checkpoint_retention import list_checkpoints, newest_checkpoint
from jumar.training.checkpoint_state import SavedState
from jumar.training.optimizers import Adam, AdamW, Lamb, OptimizerSettings
from tests.training.small_tasks import point_task, small_plan, trainer_for
from tests.training.test_checkpoint_retention import DAMAGES, Damage, write
from tests.training.test_trainer import everything, same

SLOTS = {
    "all/weight/exp_avg": torch.randn(7, 3, generator=torch.Generator().manual_seed(1)),
    "all/weight/step": torch.tensor(4.0),
    "all/bias/exp_avg": torch.randn(2, generator=torch.Generator().manual_seed(2)),
    "all/bias/step": torch.tensor(5.0),
    "all/empty/exp_avg": torch.zeros(0, 3),
}
RANKS = 3


def rows_of(rank: int, ranks: int, rows: int) -> tuple[int, int]:
    return rank * rows // ranks, (rank + 1) * rows // ranks


def write_as(rank: int, folder: Path, slots: Mapping[str, torch.Tensor]) -> dict[str, FileMark]:
    """The part of one rank: a slice of each tensor with rows, and every third of the others."""
    tensors: dict[str, torch.Tensor] = {}
    slices: dict[str, Slice] = {}
    for number, (name, value) in enumerate(slots.items()):
        if value.dim():
            start, stop = rows_of(rank, RANKS, len(value))
            tensors[name] = value[start:stop]
            slices[name] = Slice(start=start, rows=len(value))
        elif number % RANKS == rank:
            tensors[name] = value
    return write_part(folder, OPTIMIZER, tensors, part=rank + 1, parts=RANKS, slices=slices)


def write_together(
    directory: Path,
    step: int,
    state: SavedState | None = None,
    weights: Mapping[str, torch.Tensor] | None = None,
) -> Checkpoint:
    """A checkpoint by three ranks: the first begins and finishes it, each writes its part."""
    state = state or SavedState(values={"step": step}, slots=SLOTS)
    place = unfinished(directory, step)
    begin_checkpoint(place)
    marks = write_part(place, MODEL, weights or {"w": torch.arange(200.0) + step})
    for rank in reversed(range(RANKS)):
        marks |= write_as(rank, place, state.slots)
    values = state.values
    return finish_checkpoint(place, step=step, epoch=0.0, values=values, batch={}, marks=marks)


def test_one_rank_reads_a_three_rank_checkpoint(tmp_path: Path) -> None:
    written = write_together(tmp_path, 3)
    assert sorted(written.marks) == [
        "model.safetensors",
        *(f"optimizer-0000{part}-of-00003.safetensors" for part in (1, 2, 3)),
        "state.json",
    ]
    read = load_state(written)
    assert read.values == {"step": 3}
    assert set(read.slots) == set(SLOTS)
    assert all(torch.equal(read.slots[name], value) for name, value in SLOTS.items())
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("optimizer", [Adam(), AdamW(), Lamb(bias_correction="variable")])
def test_run_resumes_bitwise_from_a_three_rank_checkpoint(
    tmp_path: Path, optimizer: OptimizerSettings
) -> None:
    plan = small_plan(optimizer=optimizer)
    whole = trainer_for(point_task(), plan, tmp_path / "whole")
    whole.train()
    half = trainer_for(point_task(seed=98), plan, tmp_path / "half")
    half.resume(list_checkpoints(whole.run.checkpoints)[1])
    weights = half.state.task.model.state_dict()
    written = write_together(tmp_path, half.state.step, half.state.capture(), weights)
    resumed = trainer_for(point_task(seed=99), plan, tmp_path / "run")
    resumed.resume(written)
    assert same(everything(half), everything(resumed))
    resumed.train()
    assert same(everything(whole), everything(resumed))


@pytest.mark.parametrize("ranks", [1, 2, 5, 9])
def test_any_number_of_ranks_reads_its_rows_of_a_three_rank_checkpoint(
    tmp_path: Path, ranks: int
) -> None:
    tensors = PartedTensors(write_together(tmp_path, 3).path / OPTIMIZER)
    assert tensors.shapes == {name: tuple(value.shape) for name, value in SLOTS.items()}
    for name, value in SLOTS.items():
        if not value.dim():
            assert torch.equal(tensors.read(name), value)
            continue
        shares = [tensors.read(name, *rows_of(rank, ranks, len(value))) for rank in range(ranks)]
        assert [len(share) for share in shares] == [
            stop - start for start, stop in (rows_of(r, ranks, len(value)) for r in range(ranks))
        ]
        assert torch.equal(torch.cat(shares), value)


def test_single_file_is_read_by_rows(tmp_path: Path) -> None:
    weights = torch.arange(12.0).reshape(4, 3)
    write_part(tmp_path, MODEL, {"w": weights})
    assert [path.name for path in tmp_path.iterdir()] == [MODEL]
    tensors = PartedTensors(tmp_path / MODEL)
    assert torch.equal(tensors.read("w", 1, 3), weights[1:3])
    assert torch.equal(tensors.read("w", 2), weights[2:])


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("part", [1, 2, 3])
def test_damaged_part_is_named_and_the_previous_checkpoint_used(
    tmp_path: Path, part: int, damage: Damage
) -> None:
    write(tmp_path, 2)
    file = write_together(tmp_path, 3).path / f"optimizer-0000{part}-of-00003.safetensors"
    damage(file)
    messages: list[str] = []
    newest = newest_checkpoint(tmp_path, messages.append)
    assert newest is not None
    assert newest.step == 2
    assert [str(file) in line for line in messages] == [True]


def test_nothing_is_read_if_a_part_is_missing(tmp_path: Path) -> None:
    for rank in (0, 2):
        write_as(rank, tmp_path, SLOTS)
    with pytest.raises(UserError, match="optimizer-00002-of-00003"):
        load_weights(tmp_path / OPTIMIZER)


@pytest.mark.parametrize("start", [0, 1, 3])
def test_parts_with_missing_or_duplicate_rows_are_refused(tmp_path: Path, start: int) -> None:
    for part, first in ((1, 0), (2, start)):
        one = {"w": Slice(start=first, rows=4)}
        write_part(tmp_path, MODEL, {"w": torch.zeros(2, 3)}, part=part, parts=2, slices=one)
    with pytest.raises(UserError, match="each row of 'w' exactly once"):
        load_weights(tmp_path / MODEL)


def test_scalar_in_two_parts_is_refused(tmp_path: Path) -> None:
    for part in (1, 2):
        write_part(tmp_path, MODEL, {"step": torch.tensor(1.0)}, part=part, parts=2)
    with pytest.raises(UserError, match="each row of 'step' exactly once"):
        load_weights(tmp_path / MODEL)


def test_slices_of_tensors_of_different_shapes_are_refused(tmp_path: Path) -> None:
    for part, width in ((1, 3), (2, 5)):
        one = {"w": Slice(start=part - 1, rows=2)}
        write_part(tmp_path, MODEL, {"w": torch.zeros(1, width)}, part=part, parts=2, slices=one)
    with pytest.raises(UserError, match="different shapes"):
        load_weights(tmp_path / MODEL)


def test_leftovers_of_a_killed_rank_are_removed_by_the_next_start(tmp_path: Path) -> None:
    place = unfinished(tmp_path, 3)
    begin_checkpoint(place)
    write_part(place, MODEL, {"w": torch.zeros(1)}, part=1, parts=9)
    assert write_together(tmp_path, 3).step == 3
    assert len(list((tmp_path / "step-00000003").iterdir())) == 6


def test_name_of_a_whole_file_is_distinguished_from_that_of_a_part() -> None:
    assert whole_name("optimizer-00002-of-00010.safetensors") == "optimizer.safetensors"
    assert whole_name("my-1-of-2.safetensors") == "my-1-of-2.safetensors"


def test_rows_are_read_from_the_parts_containing_them(tmp_path: Path) -> None:
    whole = torch.arange(10.0).reshape(5, 2)
    marks = {}
    for part, (start, stop) in enumerate(((0, 2), (2, 3), (3, 5)), start=1):
        marks |= write_part(
            tmp_path,
            "optimizer.safetensors",
            {"m": whole[start:stop], f"own{part}": torch.tensor(float(part))},
            part=part,
            parts=3,
            slices={"m": Slice(start=start, rows=5)},
        )
    assert marks == {
        name: mark_of(tmp_path / name)
        for name in (f"optimizer-0000{part}-of-00003.safetensors" for part in (1, 2, 3))
    }
    tensors = PartedTensors(tmp_path / "optimizer.safetensors")
    assert tensors.shapes == {"m": (5, 2), "own1": (), "own2": (), "own3": ()}
    for start in range(6):
        for stop in range(start, 6):
            result = tensors.read("m", start, stop)
            assert result.shape == (stop - start, 2)
            assert torch.equal(result, whole[start:stop])
        assert torch.equal(tensors.read("m", start), whole[start:])
    assert torch.equal(tensors.read("m"), whole)
    assert [tensors.read(f"own{part}").item() for part in (1, 2, 3)] == [1.0, 2.0, 3.0]
    (tmp_path / "optimizer-00002-of-00003.safetensors").unlink()
    with pytest.raises(UserError, match="cannot be read as safetensors") as refused:
        PartedTensors(tmp_path / "optimizer.safetensors")
    assert refused.value.where == str(tmp_path / "optimizer.safetensors")


def test_single_part_is_named_as_whole_with_only_slices_in_its_header(
    tmp_path: Path,
) -> None:
    name = "optimizer.safetensors"
    assert list(write_part(tmp_path, name, {"m": torch.zeros(3)})) == [name]
    with safe_open(tmp_path / name, framework="pt") as file:
        assert not (file.metadata() or {}).get("jumar_slices")
    slices = {"b": Slice(start=2, rows=9), "a": Slice(start=0, rows=4)}
    given = {"b": torch.zeros(3), "a": torch.zeros(4)}
    (part,) = write_part(tmp_path, "x.safetensors", given, part=12, parts=123, slices=slices)
    assert part == "x-00012-of-00123.safetensors"
    with safe_open(tmp_path / part, framework="pt") as file:
        assert json.loads(file.metadata()["jumar_slices"]) == {"a": [0, 4], "b": [2, 9]}


@pytest.mark.parametrize(
    "pieces", [((0, 2), (3, 5)), ((0, 3), (2, 5)), ((1, 5),), ((0, 4),), ((0, 5), (0, 5))]
)
def test_file_is_refused_unless_each_row_occurs_once(
    tmp_path: Path, pieces: tuple[tuple[int, int], ...]
) -> None:
    for part, (start, stop) in enumerate(pieces, start=1):
        rows = torch.zeros(stop - start, 2)
        held = {"m": Slice(start=start, rows=5)}
        write_part(
            tmp_path, "x.safetensors", {"m": rows}, part=part, parts=len(pieces), slices=held
        )
    with pytest.raises(UserError) as refused:
        PartedTensors(tmp_path / "x.safetensors")
    assert str(refused.value) == (
        f"{tmp_path / 'x.safetensors'}: its parts do not contain each row of 'm' exactly once"
    )
