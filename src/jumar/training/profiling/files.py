"""The output of a capture: the folder `profile` of a run."""

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
from jumar.training.profiling.layers import Event, launched_layers, note_modules
from jumar.training.profiling.memory import base_of, memory_tables
from jumar.training.profiling.rates import cpu_rates
from jumar.training.profiling.shapes import Lacking, take_shapes
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
"""Recorded steps that are longer by this share are reported."""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Where a capture is, and what recording cost.

    Attributes:
        folder: The folder with its files.
        ops: Number of rows in the op table.
        in_layers: Share of op time spent in ops whose layer is known.
        step_ms: Median of the recorded steps.
        plain_step_ms: Median of the steps before them; None if there were none to compare with.
        with_shapes: Whether the timed steps were recorded with shapes.
        lacking: Steps and ops that have no shapes, although others do.
    """

    folder: Path
    ops: int
    in_layers: float
    step_ms: float
    plain_step_ms: float | None
    with_shapes: bool
    lacking: Lacking = field(default_factory=Lacking)

    def line(self) -> str:
        """What the console shows."""
        plain = slower = ""
        if self.plain_step_ms is not None:
            plain = f" ({self.plain_step_ms:.1f} ms without recording)"
            share = self.step_ms / self.plain_step_ms - 1
            if self.with_shapes and share > MUCH_SLOWER:
                slower = (
                    f"\nrecording made steps {100 * share:.0f} % longer; --no-shapes gives more "
                    "accurate times, but no shapes or dtypes"
                )
        lacking = ""
        if self.lacking.steps:
            steps = ", ".join(map(str, self.lacking.steps))
            lacking = (
                f"\nno shapes or dtypes in step {steps}: its ops or inputs differ from those of "
                "the steps recorded with shapes; --steps 1 records a step with its own"
            )
        if self.lacking.data_ops:
            lacking += (
                f"\nno shapes or dtypes for {counted(self.lacking.data_ops, 'op')} that prepared "
                "data, which may differ from batch to batch"
            )
        return (
            f"profile: {self.folder}: {counted(self.ops, 'op')}, {100 * self.in_layers:.0f} % of "
            f"their time in layers, {self.step_ms:.1f} ms per recorded step{plain}{slower}{lacking}"
        )


def profile_folder(run: Path, ranks: Ranks) -> Path:
    """Where the capture of a rank is."""
    return run / FOLDER if ranks.world == 1 else run / FOLDER / f"rank-{ranks.rank}"


def write_profile(
    recorded: Recorded,
    run: Path,
    *,
    device: Device,
    ranks: Ranks,
    settings: CaptureSettings,
    environment: Mapping[str, Any],
) -> Kept:
    """Turn a recording into tables and a trace, write them to a temporary folder and move it.

    Args:
        recorded: The stopped profiler.
        run: The run directory.
        device: The device the steps ran on.
        ranks: Which rank recorded; with several ranks, each has its own folder.
        settings: The capture settings, for `environment.json`.
        environment: Versions, machine and recipe.

    Raises:
        UserError: The files cannot be written.
    """
    final = profile_folder(run, ranks)
    try:
        with folder_beside(final, what=_WHAT, more=_MORE, replacing=True) as beside:
            events, metadata = _events(recorded, run, beside, device, ranks)
            lacking = _shapes_taken(recorded, events, beside)
            note_modules(events)
            _write_trace(beside / TRACE, events, metadata)
            if device.on_host:
                write_json(beside / CHIP, {"chips": [cpu_rates()]})
            raw = raw_folder(run, ranks) if device.profiler_writes_files else None
            summary = replace(
                _tables(recorded, beside, events, base_of(metadata), final=final, raw=raw),
                lacking=lacking,
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
            write_json(beside / ENVIRONMENT, record)
    except (RuntimeError, ValueError, pl.exceptions.PolarsError) as error:
        raise unwritable(final, error, what=_WHAT, more=_MORE) from error
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
    # The name holds the temporary path that the file was written to.
    trace.pop("traceName", None)
    return _within_steps(trace.pop("traceEvents")), trace


def _exported(recorder: Recorder, folder: Path) -> dict[str, Any]:
    plain = folder / "trace.json"
    recorder.export_chrome_trace(str(plain))
    trace = json.loads(plain.read_text(encoding="utf-8"))
    plain.unlink()
    return trace


def _shapes_taken(recorded: Recorded, events: Sequence[Event], folder: Path) -> Lacking:
    """Add the shapes from the steps recorded for them."""
    if recorded.shaped is None:
        return Lacking()
    return take_shapes(events, _exported(recorded.shaped, folder)["traceEvents"], recorded.inputs)


def _within_steps(events: Sequence[Event]) -> list[Event]:
    """The events, without those of the profiler's own warm-up step."""
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
    final: Path,
    raw: Path | None,
) -> Kept:
    """Write the tables the readers make from the trace, plus what the trace does not contain."""
    if raw is not None:
        profile = _with_layers(jumar.profiling.read(raw), events)
    else:
        profile = _with_work(jumar.profiling.read(folder / TRACE), events)
        memory = memory_tables(events, base_ns)
        profile = replace(profile, statistics={**profile.statistics, **memory})
    write_csv(replace(profile, steps=_steps(profile)), folder)
    times = profile.ops.select(
        pl.col("duration_ns").sum().alias("all"),
        pl.col("duration_ns").filter(pl.col("module").is_not_null()).sum().alias("known"),
    ).row(0)
    return Kept(
        folder=final,
        ops=profile.ops.height,
        in_layers=times[1] / times[0] if times[0] else 0.0,
        step_ms=median(recorded.step_ms),
        plain_step_ms=median(recorded.plain_step_ms) if recorded.plain_step_ms else None,
        with_shapes=recorded.shaped is None and (profile.ops["input_shapes"] != "").any(),
    )


def _steps(profile: Profile) -> pl.DataFrame:
    """The split of each step, with the time it waited for data."""
    steps = step_split(profile)
    waits = profile.host.filter(pl.col("layer") == "mark", pl.col("name") == DATA)
    begins = waits.select("start_ns", pl.col("duration_ns").alias("data_ns")).sort("start_ns")
    bounds = steps.select("rank", "step", "start_ns", "end_ns").sort("start_ns")
    step_waits = (
        begins.join_asof(bounds, on="start_ns", strategy="backward")
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
    module_table = pl.DataFrame(
        {"start_ns": list(layers), "module": list(layers.values())},
        schema={"start_ns": pl.Int64, "module": pl.String},
    ).sort("start_ns")
    ops = profile.ops.with_row_index("place").drop("module").sort("start_ns", nulls_last=True)
    # The table and the trace round their times independently.
    joined = ops.join_asof(module_table, on="start_ns", strategy="nearest", tolerance=2).sort(
        "place"
    )
    return replace(profile, ops=joined.select(profile.ops.columns))
