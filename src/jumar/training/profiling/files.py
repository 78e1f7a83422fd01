"""Writing a recording to the folder `profile` of a run."""

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

import polars as pl

import jumar.profiling
from jumar.devices.contract import Device, Recorder
from jumar.ground.files import folder_beside
from jumar.ground.paths import unwritable
from jumar.ground.text import counted
from jumar.observer import DATA
from jumar.profiling.profile import STEPS_SCHEMA, Profile
from jumar.profiling.views.step_split import step_split
from jumar.profiling.writing import write_csv
from jumar.training.parallel.ranks import Ranks
from jumar.training.profiling.capture import STEP, CaptureSettings, Recorded, raw_folder
from jumar.training.profiling.layers import Event, add_layers, launched_layers
from jumar.training.profiling.memory import base_of, memory_tables
from jumar.training.profiling.rates import cpu_rates
from jumar.training.profiling.shapes import MissingShapes, copy_shapes
from jumar.training.profiling.work import work_of
from jumar.training.run_directory import write_json

_WHAT = "the profile cannot be written"
_MORE = "A profile takes about 1 MB per step, and 20 times that while it is being written."

FOLDER: Final = "profile"
"""Name of the folder within a run."""
TRACE: Final = "trace.json.gz"
ENVIRONMENT: Final = "environment.json"
CHIP: Final = "chip.json"
MUCH_SLOWER: Final = 0.15
"""Overhead of recording, as a share of a step, above which a hint is printed."""


@dataclass(frozen=True, kw_only=True)
class CaptureSummary:
    """The summary of a capture for the console.

    Attributes:
        folder: The folder with the files.
        ops: Number of rows in the op table.
        in_layers: Share of op time in ops with a known layer.
        step_ms: Median time of the recorded steps.
        plain_step_ms: Median time of the preceding steps; None if there were none.
        with_shapes: Whether the timed steps were recorded with shapes.
        missing_shapes: Steps and ops without shapes, although others have them.
    """

    folder: Path
    ops: int
    in_layers: float
    step_ms: float
    plain_step_ms: float | None
    with_shapes: bool
    missing_shapes: MissingShapes = field(default_factory=MissingShapes)

    def report(self) -> str:
        """The lines for the console."""
        plain_time = overhead_note = ""
        if self.plain_step_ms is not None:
            plain_time = f" ({self.plain_step_ms:.1f} ms without recording)"
            share = self.step_ms / self.plain_step_ms - 1
            if self.with_shapes and share > MUCH_SLOWER:
                overhead_note = (
                    f"\nrecording made steps {100 * share:.0f} % longer; --no-shapes gives more "
                    "accurate times, but no shapes or dtypes"
                )
        shapes_note = ""
        if self.missing_shapes.steps:
            steps = ", ".join(map(str, self.missing_shapes.steps))
            shapes_note = (
                f"\nno shapes or dtypes in step {steps}: its ops or inputs differ from those of "
                "the steps recorded with shapes; --steps 1 records one step with its shapes"
            )
        if self.missing_shapes.data_ops:
            data_ops = counted(self.missing_shapes.data_ops, "op")
            shapes_note += (
                f"\nno shapes or dtypes for {data_ops} that prepared data, which may differ from "
                "batch to batch"
            )
        return (
            f"profile: {self.folder}: {counted(self.ops, 'op')}, {100 * self.in_layers:.0f} % of "
            f"their time in layers, {self.step_ms:.1f} ms per recorded step{plain_time}"
            f"{overhead_note}{shapes_note}"
        )


def profile_folder(run: Path, ranks: Ranks) -> Path:
    """The folder of a rank's capture."""
    return run / FOLDER if ranks.world == 1 else run / FOLDER / f"rank-{ranks.rank}"


def write_profile(
    recorded: Recorded,
    run: Path,
    *,
    device: Device,
    ranks: Ranks,
    settings: CaptureSettings,
    environment: Mapping[str, Any],
) -> CaptureSummary:
    """Write a recording as tables and a trace into a temporary folder, which is then moved.

    Args:
        recorded: The recording.
        run: The run directory.
        device: The device the steps ran on.
        ranks: The rank that recorded; with several ranks, each has its own folder.
        settings: The capture settings, for `environment.json`.
        environment: Versions, machine and recipe, for `environment.json`.

    Raises:
        UserError: The files cannot be written.
    """
    target = profile_folder(run, ranks)
    try:
        with folder_beside(target, what=_WHAT, more=_MORE, replacing=True) as temporary:
            events, metadata = _events(recorded, run, temporary, device, ranks)
            missing_shapes = _copy_shapes(recorded, events, temporary)
            add_layers(events)
            _write_trace(temporary / TRACE, events, metadata)
            if device.on_host:
                write_json(temporary / CHIP, {"chips": [cpu_rates()]})
            raw = raw_folder(run, ranks) if device.profiler_writes_files else None
            summary = replace(
                _tables(recorded, temporary, events, base_of(metadata), target=target, raw=raw),
                missing_shapes=missing_shapes,
            )
            record = {
                "device": {"kind": device.kind, **asdict(device)},
                "rank": ranks.rank,
                "world": ranks.world,
                "capture": {
                    **asdict(settings),
                    "first_step": recorded.first_step,
                    "step_ms": list(recorded.step_ms),
                    "plain_step_ms": list(recorded.plain_step_ms),
                },
                **environment,
            }
            write_json(temporary / ENVIRONMENT, record)
    except (RuntimeError, ValueError, pl.exceptions.PolarsError) as error:
        raise unwritable(target, error, what=_WHAT, more=_MORE) from error
    return summary


def _events(
    recorded: Recorded, run: Path, folder: Path, device: Device, ranks: Ranks
) -> tuple[list[Event], dict[str, Any]]:
    """The events of the trace, and the trace's other fields."""
    if device.profiler_writes_files:
        raw = raw_folder(run, ranks)
        traces = sorted(raw.glob("*/ASCEND_PROFILER_OUTPUT/trace_view.json"))
        if not traces:
            raise ValueError(f"the NPU's profiler left no trace_view.json in {raw}")
        return json.loads(traces[-1].read_text(encoding="utf-8")), {}
    trace = _exported(recorded.recorder, folder)
    # This name contains the temporary path of the file.
    trace.pop("traceName", None)
    return _within_steps(trace.pop("traceEvents")), trace


def _exported(recorder: Recorder, folder: Path) -> dict[str, Any]:
    plain = folder / "trace.json"
    recorder.export_chrome_trace(str(plain))
    trace = json.loads(plain.read_text(encoding="utf-8"))
    plain.unlink()
    return trace


def _copy_shapes(recorded: Recorded, events: Sequence[Event], folder: Path) -> MissingShapes:
    """Copy the shapes from the steps recorded for them; returns what lacks shapes."""
    if recorded.shaped is None:
        return MissingShapes()
    return copy_shapes(events, _exported(recorded.shaped, folder)["traceEvents"], recorded.inputs)


def _within_steps(events: Sequence[Event]) -> list[Event]:
    """The events without those of the profiler's warm-up step."""
    first = min(event["ts"] for event in events if str(event.get("name")).startswith(STEP))
    return [event for event in events if event.get("ph") == "M" or event.get("ts", first) >= first]


def _write_trace(path: Path, events: Sequence[Event], metadata: Mapping[str, Any]) -> None:
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=6) as file:
        file.write(json.dumps({**metadata, "traceEvents": events}, separators=(",", ":")))


def _tables(
    recorded: Recorded,
    folder: Path,
    events: Sequence[Event],
    base_ns: int,
    *,
    target: Path,
    raw: Path | None,
) -> CaptureSummary:
    """Read tables from the trace, add what it lacks, and write them."""
    if raw is not None:
        profile = _with_layers(jumar.profiling.read(raw), events)
    else:
        profile = _with_work(jumar.profiling.read(folder / TRACE), events)
        memory = memory_tables(events, base_ns)
        profile = replace(profile, statistics={**profile.statistics, **memory})
    write_csv(replace(profile, steps=_steps(profile)), folder)
    op_times = profile.ops.select(
        pl.col("duration_ns").sum().alias("all"),
        pl.col("duration_ns").filter(pl.col("module").is_not_null()).sum().alias("known"),
    ).row(0)
    return CaptureSummary(
        folder=target,
        ops=profile.ops.height,
        in_layers=op_times[1] / op_times[0] if op_times[0] else 0.0,
        step_ms=median(recorded.step_ms),
        plain_step_ms=median(recorded.plain_step_ms) if recorded.plain_step_ms else None,
        with_shapes=recorded.shaped is None and (profile.ops["input_shapes"] != "").any(),
    )


def _steps(profile: Profile) -> pl.DataFrame:
    """The breakdown of each step, with the time it waited for data."""
    steps = step_split(profile)
    waits = profile.host.filter(pl.col("layer") == "mark", pl.col("name") == DATA)
    wait_starts = waits.select("start_ns", pl.col("duration_ns").alias("data_ns")).sort("start_ns")
    bounds = steps.select("rank", "step", "start_ns", "end_ns").sort("start_ns")
    step_waits = (
        wait_starts.join_asof(bounds, on="start_ns", strategy="backward")
        .filter(pl.col("start_ns") < pl.col("end_ns"))
        .group_by("rank", "step")
        .agg(pl.col("data_ns").sum())
    )
    columns = [name for name in STEPS_SCHEMA if name in steps.columns and name != "data_ns"]
    return steps.select(columns).join(
        step_waits, on=["rank", "step"], how="left", maintain_order="left"
    )


def _with_work(profile: Profile, events: Sequence[Event]) -> Profile:
    """A CPU profile with the outputs and floating-point operations of each op added."""
    if profile.kind != "cpu":
        return profile
    work = work_of(events)
    added_columns = [name for name in work.columns if name != "correlation"]
    ops = profile.ops.drop(added_columns).join(
        work, on="correlation", how="left", maintain_order="left"
    )
    return replace(profile, ops=ops.select(profile.ops.columns))


def _with_layers(profile: Profile, events: Sequence[Event]) -> Profile:
    """An NPU profile with the layer of each kernel added."""
    layers = launched_layers(events)
    layer_table = pl.DataFrame(
        {"start_ns": list(layers), "module": list(layers.values())},
        schema={"start_ns": pl.Int64, "module": pl.String},
    ).sort("start_ns")
    ops = profile.ops.with_row_index("row").drop("module").sort("start_ns", nulls_last=True)
    # Table and trace round their times independently.
    joined = ops.join_asof(layer_table, on="start_ns", strategy="nearest", tolerance=2).sort("row")
    return replace(profile, ops=joined.select(profile.ops.columns))
