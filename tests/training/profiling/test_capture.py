import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pytest
import torch
from torch import nn

import jumar.profiling
from jumar.devices.contract import Recorder, Recording
from jumar.devices.cpu import Cpu
from jumar.devices.registry import open_device
from jumar.ground.errors import UserError
from jumar.precision.policy import PrecisionPolicy
from jumar.profiling.profile import Profile
from jumar.tasks.task import Task
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.parallel.ranks import Ranks
from jumar.training.profiling.capture import (
    Capture,
    CapturePlan,
    CaptureSettings,
    Recorded,
    raw_folder,
)
from jumar.training.profiling.files import CaptureSummary, write_profile
from jumar.training.profiling.ranges import ModuleRanges, named_layers
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory
from jumar.training.settings import Plan
from jumar.training.signals import StopRequest
from jumar.training.trainer import Trainer
from tests.training.small_tasks import GanTask, PointTask, point_task, small_plan
from tests.training.test_trainer import everything, same


def capture_for(
    task: Task,
    run: Path,
    *,
    steps: int = 2,
    warm_up: int = 2,
    memory: bool = False,
    shapes: bool = True,
    kept: list[CaptureSummary] | None = None,
) -> Capture:
    """What writes `run/profile` on this CPU."""
    settings = CaptureSettings(steps=steps, warm_up=warm_up, memory=memory, shapes=shapes)

    def keep(recorded: Recorded) -> None:
        result = write_profile(
            recorded,
            run,
            device=open_device("cpu"),
            ranks=Ranks(),
            settings=settings,
            environment={"recipe": "points"},
        )
        if kept is not None:
            kept.append(result)

    return Capture(
        CapturePlan(
            settings=settings,
            ranges=ModuleRanges(named_layers(task.model, task.objectives)),
            device=open_device("cpu"),
            folder=run / "raw",
            keep=keep,
        )
    )


def trainer_with(task: Task, plan: Plan, path: Path, capture: Capture | None) -> Trainer:
    path.mkdir(parents=True, exist_ok=True)
    policy = PrecisionPolicy(plan.precision, device_type="cpu")
    policy.install()
    return Trainer(
        task,
        plan,
        device=open_device("cpu"),
        ranks=Ranks(),
        run=RunDirectory(path),
        console=Console(silent=True),
        stop=StopRequest(),
        policy=policy,
        versions={},
        observers=[] if capture is None else [capture],
    )


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CaptureSummary]:
    """A run of ten steps of which the third and fourth were recorded."""
    path = tmp_path_factory.mktemp("recorded")
    task = point_task()
    kept: list[CaptureSummary] = []
    trainer_with(task, small_plan(), path, capture_for(task, path, kept=kept)).train()
    return path, kept[0]


@pytest.fixture(scope="module")
def profile(recorded: tuple[Path, CaptureSummary]) -> Profile:
    return jumar.profiling.read(recorded[0] / "profile")


def test_folder_has_tables_trace_and_environment_and_no_partial_files(
    recorded: tuple[Path, CaptureSummary],
) -> None:
    path, kept = recorded
    folder = path / "profile"
    names = {file.name for file in folder.iterdir()}
    assert {
        "op_summary.csv",
        "op_statistic.csv",
        "step_trace_time.csv",
        "trace.json.gz",
        "environment.json",
    } <= names
    assert not [file for file in path.iterdir() if file.name.startswith(".profile")]
    environment = json.loads((folder / "environment.json").read_text())
    assert environment["capture"]["first_step"] == 2
    assert len(environment["capture"]["step_ms"]) == 2
    assert environment["recipe"] == "points"
    assert kept.ops > 100
    assert str(folder) in kept.report()


def test_steps_have_the_runs_step_numbers(profile: Profile) -> None:
    assert profile.steps["step"].to_list() == [2, 3]
    assert set(profile.ops["step"].drop_nulls().unique()) == {2, 3}
    assert profile.kind == "cpu"


def test_ops_name_their_layer_forward_and_backward(profile: Profile) -> None:
    def layers(*types: str) -> set[str | None]:
        return set(profile.ops.filter(pl.col("type").is_in(types))["module"].to_list())

    assert layers("addmm") == {"first", "last"}
    assert layers("AddmmBackward0") == {"first", "last"}
    assert layers("native_batch_norm", "native_batch_norm_backward") == {"norm"}
    assert layers("_log_softmax") == {None}
    mm = profile.ops.filter(pl.col("type") == "mm", pl.col("step") == 3)
    # The first layer needs no gradient of its input.
    assert sorted(mm["module"].to_list()) == ["first", "last", "last"]


def test_types_and_shapes_are_in_the_table(profile: Profile) -> None:
    row = profile.ops.filter(pl.col("type") == "addmm", pl.col("module") == "first").row(
        0, named=True
    )
    assert row["input_shapes"].startswith("16;8,6;6,16")
    assert row["input_types"].startswith("FLOAT;FLOAT;FLOAT")
    assert row["core"] == "CPU"


def test_shapes_come_from_a_step_recorded_with_shapes(profile: Profile, tmp_path: Path) -> None:
    task = point_task()
    trainer_with(task, small_plan(), tmp_path, capture_for(task, tmp_path, steps=1)).train()
    # But for the ops that prepare the batch, which take none.
    compared = (pl.col("step") == 2) & (pl.col("module").fill_null("") != "")
    own = jumar.profiling.read(tmp_path / "profile").ops.filter(compared)
    taken = profile.ops.filter(compared)
    columns = ["type", "module", "input_shapes", "input_types", "output_shapes", "flops"]
    assert own.select(columns).equals(taken.select(columns))
    assert own["input_shapes"].str.contains(",").any()


def test_without_shapes_no_further_steps_are_recorded(tmp_path: Path) -> None:
    task = point_task()
    capture = capture_for(task, tmp_path, shapes=False)
    assert capture.span == 4
    trainer_with(task, small_plan(), tmp_path, capture).train()
    ops = jumar.profiling.read(tmp_path / "profile").ops
    assert not (ops["input_shapes"].fill_null("") != "").any()


class Growing(nn.Module):
    """Takes one row less at each step, so that those near each other have other shapes."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net
        self.calls = 0

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        self.calls += self.training
        left_out = self.calls % 6
        few = self.net(points[left_out:])
        return torch.cat([few.new_zeros(left_out, few.shape[1]), few])


def test_steps_with_other_shapes_are_named_and_get_no_shapes(tmp_path: Path) -> None:
    task = PointTask(Growing(point_task().model))
    kept: list[CaptureSummary] = []
    trainer_with(task, small_plan(), tmp_path, capture_for(task, tmp_path, kept=kept)).train()
    assert list(kept[0].missing_shapes.steps) == [2, 3]
    assert (
        "no shapes or dtypes in step 2, 3: its ops or inputs differ from those" in kept[0].report()
    )
    ops = jumar.profiling.read(tmp_path / "profile").ops
    of_layers = ops.filter(pl.col("module").fill_null("") != "")
    assert of_layers.height
    assert not (of_layers["input_shapes"].fill_null("") != "").any()


def test_each_step_marks_data_objective_forward_backward_and_optimizer(profile: Profile) -> None:
    marks = profile.host.filter(pl.col("layer") == "mark")
    for name in ("data", "objective points", "forward", "backward", "optimizer", "module:first"):
        assert marks.filter(pl.col("name") == name).height == 2, name
    steps = profile.steps.select("start_ns", "end_ns").rows()
    inside = marks.filter(pl.col("name") == "optimizer").sort("start_ns")["start_ns"].to_list()
    assert all(start <= at < end for (start, end), at in zip(steps, inside, strict=True))


def test_both_objectives_of_a_gan_are_marked_and_its_layers_named(tmp_path: Path) -> None:
    task = GanTask()
    plan = small_plan(duration="6it", objectives=("discriminator", "generator"))
    trainer_with(task, plan, tmp_path, capture_for(task, tmp_path)).observe(None)
    result = jumar.profiling.read(tmp_path / "profile")
    names = result.host.filter(pl.col("layer") == "mark")["name"].to_list()
    assert names.count("objective discriminator") == 2
    assert names.count("objective generator") == 1
    backward = result.ops.filter(pl.col("type") == "AddmmBackward0")
    assert set(backward["module"].to_list()) == {"g", "d"}
    # Each kind of step took its shapes from a later step of its kind.
    multiplied = result.ops.filter(pl.col("type") == "addmm")
    assert multiplied["input_shapes"].str.contains(";").all()
    assert set(multiplied["step"].to_list()) == {2, 3}
    # The weights that were trained are not those of a run: nothing else is written.
    assert [file.name for file in tmp_path.iterdir()] == ["profile"]


def test_recording_changes_no_bit_of_a_run_nor_of_a_resumed_one(tmp_path: Path) -> None:
    plain = trainer_with(point_task(), small_plan(), tmp_path / "plain", None)
    plain.train()
    task = point_task()
    path = tmp_path / "recorded"
    recorded = trainer_with(task, small_plan(), path, capture_for(task, path))
    recorded.train()
    assert same(everything(plain), everything(recorded))

    other = point_task(seed=99)
    resumed = trainer_with(other, small_plan(), path, capture_for(other, path, warm_up=1))
    resumed.resume(next(c for c in list_checkpoints(path / "checkpoints") if c.step == 3))
    resumed.train()
    assert same(everything(plain), everything(resumed))
    assert jumar.profiling.read(path / "profile").steps["step"].to_list() == [4, 5]


def test_too_short_run_is_refused_before_it_starts(tmp_path: Path) -> None:
    task = point_task()
    trainer = trainer_with(task, small_plan(duration="3it"), tmp_path, capture_for(task, tmp_path))
    with pytest.raises(UserError, match="the run has 3 steps left; the profile needs 6"):
        trainer.train()
    assert list(tmp_path.iterdir()) == []


class Failing(nn.Module):
    """Raises in its third forward."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net
        self.calls = 0

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls == 3:
            raise RuntimeError("as planned")
        return self.net(points)


def test_failing_step_leaves_no_hooks_profiler_or_files(tmp_path: Path) -> None:
    task = PointTask(Failing(point_task().model))
    trainer = trainer_with(task, small_plan(), tmp_path, capture_for(task, tmp_path, warm_up=1))
    with pytest.raises(RuntimeError, match="as planned"):
        trainer.observe(None)
    assert not any(module._forward_hooks for module in task.model.modules())
    assert not torch.autograd._profiler_enabled()
    assert list(tmp_path.iterdir()) == []


def test_hooks_are_gone_after_the_recording(
    recorded: tuple[Path, CaptureSummary], tmp_path: Path
) -> None:
    task = point_task()
    trainer_with(task, small_plan(), tmp_path, capture_for(task, tmp_path)).train()
    modules = list(task.model.modules())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in modules)


@contextmanager
def full_disk(limit: int) -> Iterator[None]:
    """No file may grow beyond a limit, which the system reports as it does a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("limit", [1000, 200_000])
def test_full_disk_is_named_and_keeps_an_earlier_profile(tmp_path: Path, limit: int) -> None:
    def record() -> None:
        task = point_task()
        capture = capture_for(task, tmp_path, warm_up=0)
        trainer_with(task, small_plan(), tmp_path, capture).observe(None)

    record()
    before = {file.name: file.read_bytes() for file in (tmp_path / "profile").iterdir()}
    with full_disk(limit), pytest.raises(UserError, match="the profile cannot be written"):
        record()
    assert [file.name for file in tmp_path.iterdir()] == ["profile"]
    assert before == {file.name: file.read_bytes() for file in (tmp_path / "profile").iterdir()}


@pytest.mark.parametrize("settings", [{"steps": 0}, {"steps": 100_000}, {"warm_up": -1}])
def test_unrecordable_step_counts_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(UserError, match="steps"):
        CaptureSettings(**settings).check()


def test_capture_has_default_settings() -> None:
    assert CaptureSettings() == CaptureSettings(steps=3, warm_up=3, memory=False, shapes=True)
    cpu = open_device("cpu")
    for options, further in (
        ({}, 2),
        ({"steps": 2}, 2),
        ({"steps": 1}, 0),
        ({"shapes": False}, 0),
    ):
        assert CaptureSettings(**options).shaped_steps(cpu) == further

    class Accelerated(Cpu):
        on_host = False

    assert CaptureSettings().shaped_steps(Accelerated(index=0, name="x")) == 0


def test_capture_has_from_1_to_200_steps_after_0_or_more_of_warm_up() -> None:
    for accepted in ({"steps": 1}, {"steps": 200}, {"warm_up": 0}):
        CaptureSettings(**accepted).check()
    for steps in (0, 201):
        with pytest.raises(UserError) as refused:
            CaptureSettings(steps=steps).check()
        assert str(refused.value) == (
            f"--steps: {steps} steps cannot be recorded\n"
            "  Allowed: 1 to 200, because each recorded step needs megabytes."
        )
    with pytest.raises(UserError) as refused:
        CaptureSettings(warm_up=-1).check()
    assert str(refused.value) == (
        "--warm-up: -1 steps of warm-up are not possible\n  Allowed: 0 or more."
    )


class Tape:
    """A profiler that records its calls."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def start(self) -> None:
        self.told.append("start")

    def step(self) -> None:
        self.told.append("step")

    def stop(self) -> None:
        self.told.append("stop")

    def export_chrome_trace(self, path: str) -> None:
        raise NotImplementedError(path)


@dataclass(frozen=True, kw_only=True)
class Taped(Cpu):
    """A CPU whose profiler is a tape."""

    tapes: list[tuple[Recording, Tape]] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)

    def create_recorder(self, recording: Recording) -> Recorder:
        self.tapes.append((recording, Tape()))
        return self.tapes[-1][1]

    def synchronize(self) -> None:
        self.waits.append(len(self.waits))


class TapedElsewhere(Taped):
    """An accelerator whose profiler writes files."""

    on_host = False
    profiler_writes_files = True


def test_timed_steps_have_no_shapes_and_two_more_are_recorded_with_them(tmp_path: Path) -> None:
    device = Taped(index=0, name="x")
    net = nn.Linear(2, 2)
    kept: list[Recorded] = []
    capture = Capture(
        CapturePlan(
            settings=CaptureSettings(steps=2, warm_up=3, memory=True),
            ranges=ModuleRanges({"only": net}),
            device=device,
            folder=tmp_path,
            keep=kept.append,
        )
    )
    assert capture.span == 7
    waits, phases, hooks = [], [], []
    for number in range(9):
        assert capture.is_cut_short is (number < 7)
        capture.begin_step(10 + number)
        phases.append(capture.phase("forward") is not None)
        hooks.append(bool(net._forward_hooks))
        net(torch.zeros(1 + number, 2))
        assert kept == [] or number > 6
        capture.end_step()
        waits.append(len(device.waits))
    recorded = [False, False, True, True, True, True, True, False, False]
    assert (phases, hooks) == (recorded, recorded)
    # The warm-up and the last step of each recording are waited for.
    assert waits == [1, 2, 3, 3, 4, 4, 5, 5, 5]
    common = {"folder": tmp_path, "steps": 2, "warm_up": 1}
    (plain, timed), (further, shaped) = device.tapes
    assert plain == Recording(**common, memory=True, shapes=False)
    assert further == Recording(**common, memory=False, shapes=True)
    assert timed.told == ["start", "step", "step", "step", "stop"]
    assert shaped.told == ["start", "step", "step", "stop"]
    (result,) = kept
    assert (result.recorder, result.shaped, result.first_step) == (timed, shaped, 13)
    assert (len(result.step_ms), len(result.plain_step_ms)) == (2, 1)
    assert all(0 < each < 60_000 for each in (*result.step_ms, *result.plain_step_ms))
    assert result.inputs == {
        step: (("module:only", (torch.Size([step - 9, 2]),)),) for step in range(12, 17)
    }
    capture.end()
    assert shaped.told[-2:] == ["step", "stop"]


@pytest.mark.parametrize("was_there", [True, False])
def test_file_writing_profiler_starts_with_an_empty_folder_and_its_own_shapes(
    tmp_path: Path, was_there: bool
) -> None:
    device = TapedElsewhere(index=0, name="x")
    if was_there:
        (tmp_path / "raw").mkdir()
        (tmp_path / "raw" / "old").touch()
    kept: list[Recorded] = []
    capture = Capture(
        CapturePlan(
            settings=CaptureSettings(steps=2, warm_up=0, memory=True),
            ranges=ModuleRanges({}),
            device=device,
            folder=tmp_path / "raw",
            keep=kept.append,
        )
    )
    for number in range(2):
        capture.begin_step(5 + number)
        capture.end_step()
    assert not (tmp_path / "raw").exists()
    ((recording, tape),) = device.tapes
    assert recording == Recording(
        folder=tmp_path / "raw", steps=2, warm_up=0, memory=True, shapes=True
    )
    assert tape.told == ["start", "step", "step", "stop"]
    (result,) = kept
    assert (result.recorder, result.shaped, result.first_step) == (tape, None, 5)
    assert (len(result.step_ms), result.plain_step_ms) == (2, ())
    assert raw_folder(Path("run"), Ranks(rank=3, world=4, local_world=4)) == Path(
        "run/profile-npu/rank-3"
    )


def test_run_must_be_as_long_as_the_recording(tmp_path: Path) -> None:
    capture = capture_for(point_task(), tmp_path)
    for enough in (6, 7, None):
        capture.check(enough)
    with pytest.raises(UserError) as refused:
        capture.check(5)
    assert str(refused.value) == (
        "--profile: the run has 5 steps left; the profile needs 6 including warm-up\n"
        "  Train for longer, or profile a finished run: jumar profile RUN."
    )
    # Ended before it began, it leaves nothing to stop and does nothing more.
    capture.begin_step(0)
    capture.end()
    capture.begin_step(1)
    capture.end_step()
    assert capture.is_cut_short
    assert capture.phase("forward") is None
