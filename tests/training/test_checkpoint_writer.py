"""Checkpoints written in the background, by any number of ranks."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from jumar.training.checkpoint import (
    EMA,
    MODEL,
    OPTIMIZER,
    NotWrittenError,
    load_state,
    load_weights,
    unfinished,
)
from jumar.training.checkpoint_files import mark_of
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.checkpoint_writer import CheckpointWriter, Content, shares
from jumar.training.parallel.ranks import Ranks
from jumar.training.run_directory import read_json, write_json
from jumar.training.settings import CheckpointSettings, TrainingSettings
from jumar.training.state_hashes import checkpoint_hashes, live_hashes
from tests.training.small_tasks import point_task, small_plan, trainer_for

LARGE = 4_000_000
"""Copying this many numbers takes longer than anything between two lines of a test."""
WEIGHTS = {"w": torch.arange(12.0).reshape(3, 4)}
SLOTS = {f"points/w{number}/moment": torch.full((number,), float(number)) for number in range(1, 9)}


@dataclass(frozen=True, kw_only=True)
class First(Ranks):
    """The first of two ranks; the test acts as the second."""

    world: int = 2
    seeing: Sequence[str] = ("00000000", "00000001")

    def texts(self, texts: Sequence[str]) -> list[str]:
        assert list(texts) == ["00000000"]
        return list(self.seeing)


def content(step: int = 3, **changed: object) -> Content:
    whole = Content(
        step=step,
        epoch=0.5,
        model=WEIGHTS,
        ema=None,
        slots=SLOTS,
        values={"step": step},
        batch={"seed": 1},
        changing=frozenset(),
    )
    return replace(whole, **changed)


def bytes_of(files: Mapping[str, Mapping[str, torch.Tensor]]) -> int:
    return sum(tensor.nbytes for tensors in files.values() for tensor in tensors.values())


@pytest.mark.parametrize("writers", [1, 2, 3, 5])
def test_every_tensor_has_one_writer_with_balanced_sizes(writers: int) -> None:
    model = {"w": torch.zeros(30)}
    slots = {f"m{number}": torch.zeros(1 + number % 7) for number in range(60)}
    own = shares(model, dict(model), slots, writers)
    names = [name for share in own for name in share.files[OPTIMIZER]]
    assert sorted(names) == sorted(slots)
    assert [MODEL in share.files for share in own] == [True, *[False] * (writers - 1)]
    assert [EMA in share.files for share in own].index(True) == min(1, writers - 1)
    sizes = [bytes_of(share.files) for share in own]
    assert max(sizes) - min(sizes) <= 7 * 4
    assert [(share.part, share.parts) for share in own] == [
        (number, writers) for number in range(1, writers + 1)
    ]


def test_weights_may_change_after_the_copy_and_buffers_immediately(tmp_path: Path) -> None:
    weights, average = torch.zeros(LARGE), torch.zeros(5)
    writer = CheckpointWriter(tmp_path, Ranks())
    for step in (1, 2):
        model = {"w": weights, "average": average}
        writer.begin(content(step, model=model, changing=frozenset([average.data_ptr()])))
        average += 1
        writer.wait_for_copy()
        weights += 1
    writer.finish()
    for step, checkpoint in enumerate(list_checkpoints(tmp_path), start=1):
        written = load_weights(checkpoint.model_file(ema=False))
        assert torch.equal(written["w"], torch.full((LARGE,), step - 1.0))
        assert torch.equal(written["average"], torch.full((5,), step - 1.0))


def test_step_waits_for_the_copy_before_its_update(tmp_path: Path) -> None:
    trainer = trainer_for(point_task(), small_plan(), tmp_path)
    weight = trainer.task.model.last.weight
    before, seen = weight.detach().clone(), list[torch.Tensor]()
    trainer.state.before_change = lambda: seen.append(weight.detach().clone())
    batches = trainer._loader(2)
    trainer._stepper.step(next(batches))
    assert [torch.equal(value, before) for value in seen] == [True]
    assert not torch.equal(weight, before)


def test_run_that_saves_every_step_has_the_weights_of_every_step(tmp_path: Path) -> None:
    training = TrainingSettings(log_every="1it", evaluate_every="3it", ema_decay=0.9)
    plan = small_plan(
        training=training, duration="8it", checkpoints=CheckpointSettings(every="1it", keep=9)
    )
    trainer_for(point_task(), plan, tmp_path / "saving").train()
    alone = trainer_for(point_task(), plan, tmp_path / "alone")
    alone._set_training()
    checkpoints = list_checkpoints(tmp_path / "saving" / "checkpoints")
    for batch, checkpoint in zip(alone._loader(8), checkpoints, strict=True):
        alone._stepper.step(batch)
        assert checkpoint_hashes(checkpoint) == live_hashes(alone.state)


def test_two_ranks_write_one_checkpoint_from_their_parts(tmp_path: Path) -> None:
    first = CheckpointWriter(tmp_path, First())
    first.begin(content())
    _write_second_part(tmp_path)
    first.finish()
    (checkpoint,) = list_checkpoints(tmp_path)
    checkpoint.check(with_state=True)
    assert sorted(path.name for path in checkpoint.path.iterdir()) == [
        "checkpoint.json",
        "model.safetensors",
        "optimizer-00001-of-00002.safetensors",
        "optimizer-00002-of-00002.safetensors",
        "state.json",
    ]
    read = load_state(checkpoint).slots
    assert set(read) == set(SLOTS)
    assert all(torch.equal(read[name], value) for name, value in SLOTS.items())


def _write_second_part(directory: Path) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Second(First):
        rank: int = 1

        def texts(self, texts: Sequence[str]) -> list[str]:
            assert list(texts) == ["00000001"]
            return list(self.seeing)

    second = CheckpointWriter(directory, Second())
    second.begin(content())
    second.finish()


def test_rank_without_the_first_ranks_disk_leaves_writing_to_it(tmp_path: Path) -> None:
    writer = CheckpointWriter(tmp_path, First(seeing=("00000000",)))
    writer.begin(content())
    writer.finish()
    (checkpoint,) = list_checkpoints(tmp_path)
    assert set(load_state(checkpoint).slots) == set(SLOTS)
    assert (checkpoint.path / OPTIMIZER).is_file()


def test_write_failure_of_another_rank_is_reported_and_leaves_no_files(tmp_path: Path) -> None:
    writer = CheckpointWriter(tmp_path, First())
    writer.begin(content())
    write_json(unfinished(tmp_path, 3) / "written-00002.json", {"error": "the disk is full"})
    with pytest.raises(NotWrittenError, match="step 3 could not be written: the disk is full"):
        writer.finish()
    assert list(tmp_path.iterdir()) == []


def test_missing_part_is_awaited_only_briefly_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jumar.training.checkpoint_writer.LAST_WAIT_S", 0.2)
    writer = CheckpointWriter(tmp_path, First())
    writer.begin(content())
    start = time.monotonic()
    writer.close()
    assert time.monotonic() - start < 5
    with pytest.raises(NotWrittenError, match="part 2 of 2 did not arrive"):
        writer.check()
    assert list(tmp_path.iterdir()) == []


def test_failure_just_after_a_check_is_raised_by_the_next_one(tmp_path: Path) -> None:
    class FailingSoon(Future[None]):
        """Fails once it has been found to be pending."""

        def done(self) -> bool:
            was_done = super().done()
            if not was_done:
                self.set_exception(NotWrittenError("the disk is full"))
            return was_done

    finished: Future[None] = Future()
    finished.set_result(None)
    writer = CheckpointWriter(tmp_path, Ranks())
    writer._jobs = [finished, FailingSoon()]
    writer.check()
    with pytest.raises(NotWrittenError, match="the disk is full"):
        writer.check()
    writer.close()


def test_failure_is_raised_between_steps_and_only_once(tmp_path: Path) -> None:
    writer = CheckpointWriter(tmp_path, Ranks())
    writer.begin(content(slots={"w": torch.zeros(LARGE)}))
    beside = unfinished(tmp_path, 3)
    beside.rename(tmp_path / "away")
    deadline = time.monotonic() + 60
    with pytest.raises(NotWrittenError, match="step 3"):  # noqa: PT012, it takes a while
        while time.monotonic() < deadline:
            writer.check()
    writer.check()
    writer.begin(content(4))
    writer.finish()
    assert [checkpoint.step for checkpoint in list_checkpoints(tmp_path)] == [4]


def test_largest_tensors_are_assigned_first_to_the_least_loaded() -> None:
    def floats(count: int) -> torch.Tensor:
        return torch.zeros(count)

    model, ema = {"w": floats(10)}, {"w": floats(4)}
    slots = {"a": floats(1), "c": floats(5), "b": floats(5), "d": floats(2), "e": floats(3)}
    first, second, third = shares(model, ema, slots, 3)
    assert {file: list(own) for file, own in first.files.items()} == {
        MODEL: ["w"],
        OPTIMIZER: [],
    }
    # 10 numbers each; of equal sizes the first name goes first.
    assert {file: list(own) for file, own in second.files.items()} == {
        EMA: ["w"],
        OPTIMIZER: ["c", "a"],
    }
    assert {file: list(own) for file, own in third.files.items()} == {OPTIMIZER: ["b", "e", "d"]}
    (alone,) = shares(model, ema, {}, 1)
    assert list(alone.files) == [MODEL, EMA]
    assert (alone.part, alone.parts) == (1, 1)
    assert [list(share.files) for share in shares(model, None, {}, 2)] == [[MODEL], []]


def test_other_rank_records_the_checksums_of_its_part(tmp_path: Path) -> None:
    beside = unfinished(tmp_path, 3)
    beside.mkdir(parents=True)
    _write_second_part(tmp_path)
    part = beside / "optimizer-00002-of-00002.safetensors"
    mark = mark_of(part)
    assert read_json(beside / "written-00002.json") == {
        part.name: {"size": mark.size, "crc32c": mark.crc32c}
    }
    assert sorted(path.name for path in beside.iterdir()) == [part.name, "written-00002.json"]


def test_copy_buffers_are_reused_if_they_fit(tmp_path: Path) -> None:
    writer = CheckpointWriter(tmp_path, Ranks())
    places: list[dict[str, int]] = []
    for step, weights in ((1, torch.ones(3)), (2, torch.zeros(3)), (3, torch.zeros(4))):
        writer.begin(content(step, model={"w": weights}, slots={"m": torch.ones(2)}))
        writer.finish()
        places.append({name: copy.data_ptr() for name, copy in writer._copies.items()})
    assert places[0] == places[1]
    assert places[1]["optimizer.safetensors/m"] == places[2]["optimizer.safetensors/m"]
    assert places[1]["model.safetensors/w"] != places[2]["model.safetensors/w"]
    half = torch.zeros(4, dtype=torch.float16)
    writer.begin(content(4, model={"w": half}, slots={}))
    writer.finish()
    written = [load_weights(c.model_file(ema=False))["w"] for c in list_checkpoints(tmp_path)]
    assert [each.tolist() for each in written] == [[1] * 3, [0] * 3, [0] * 4, [0] * 4]
    assert written[3].dtype == torch.float16
    writer.close()


def test_later_requests_run_after_the_checkpoint(tmp_path: Path) -> None:
    writer = CheckpointWriter(tmp_path, Ranks())
    seen: list[list[int]] = []
    writer.begin(content(slots={"w": torch.zeros(LARGE)}))
    writer.afterwards(lambda: seen.append([c.step for c in list_checkpoints(tmp_path)]))
    writer.finish()
    assert seen == [[3]]
    writer.check()
    (checkpoint,) = list_checkpoints(tmp_path)
    assert (checkpoint.epoch, checkpoint.batch) == (0.5, {"seed": 1})
    assert load_state(checkpoint).values == {"step": 3}
