"""The tables on the page of a single run, besides its results."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from jumar.experiments.json_reading import finite_number, read_object, section, text_of
from jumar.experiments.run_reading import Load, Run, flattened
from jumar.experiments.table_forms import memory_text
from jumar.ground.text import counted, time_text
from jumar.report.content import PageTable
from jumar.training.device_load import idle_finding
from jumar.training.run_directory import RunDirectory

_PARTS = ("train", "eval")


def run_tables(run: Run) -> list[PageTable]:
    """Data, time, precision and device of a run; a table without rows is left out."""
    tables = [data_table(run), time_table(run), precision_table(run), device_table(run.loads)]
    return [table for table in tables if table.rows]


def data_table(run: Run) -> PageTable:
    """The data that the run found at the paths of its settings."""
    resolved = read_object(RunDirectory(run.directory).resolved, [])
    samples, marks = section(resolved, "samples"), section(resolved, "fingerprints")
    rows = [
        (f"{part} samples", f"{count:,.0f}")
        for part in _PARTS
        if (count := finite_number(samples.get(part))) is not None
    ]
    rows += [(field, text_of(path)) for field, path in section(resolved, "places").items()]
    rows += [
        (f"fingerprint of the {part} items", text_of(marks.get(part)))
        for part in _PARTS
        if text_of(marks.get(part))
    ]
    outputs = resolved.get("outputs")
    if isinstance(outputs, list) and outputs:
        names: list[str] = [str(name) for name in outputs]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        suffix = f" and {len(names) - 12} more" if len(names) > 12 else ""
        rows.append((f"{len(names)} classes", ", ".join(names[:12]) + suffix))
    rows += [
        (f"{name} (from the data)", str(value))
        for name, value in flattened(section(resolved, "settings")).items()
    ]
    return PageTable(title="Data", header=("what", "value"), rows=rows)


def time_table(run: Run) -> PageTable:
    """Breakdown of the time, as far as the trainer measured it."""
    times = [(each.step_ms, each.data_ms) for each in run.train]
    complete_times = [(step, data) for step, data in times if step and data is not None]
    results, rows = run.results, list[tuple[str, str, str]]()
    steps = results.steps or run.last_step
    if complete_times and steps:
        mean = statistics.fmean(step for step, _ in complete_times)
        waiting_share = sum(data for _, data in complete_times) / sum(
            step for step, _ in complete_times
        )
        elapsed_s = results.elapsed_s
        steps_s = mean * steps / 1000
        evaluations_s = sum(each.seconds or 0.0 for each in run.evaluations)
        parts = [
            (f"{counted(steps, 'step')} of {mean:.4g} ms", steps_s),
            ("of which waiting for data", steps_s * waiting_share),
            (counted(len(run.evaluations), "evaluation"), evaluations_s),
        ]
        if elapsed_s is not None and elapsed_s > steps_s + evaluations_s:
            parts.append(
                ("first steps, checkpoints, log lines", elapsed_s - steps_s - evaluations_s)
            )
        total = max(elapsed_s or 0.0, steps_s + evaluations_s)
        rows = [
            (name, time_text(seconds), f"{100 * seconds / total:.1f}") for name, seconds in parts
        ]
    return PageTable(
        title="Where the time went",
        header=("what", "time", "%"),
        rows=rows,
        numeric=(1, 2),
        notes=["A step's time is the mean over log lines, excluding the first steps."],
    )


def precision_table(run: Run) -> PageTable:
    """The requested precision, and the one that was computed in."""
    results = run.results
    requested = section(dict(run.settings or {}), "precision")
    rows = [
        ("mode", results.precision_mode or text_of(requested.get("mode"))),
        ("computed in", results.computed),
        ("note", results.precision_note),
    ]
    rows += [
        (f"precision.{name}", _listed(value))
        for name, value in flattened(requested).items()
        if name != "mode" and value not in (None, "", [], False)
    ]
    return PageTable(
        title="Precision", header=("what", "value"), rows=[row for row in rows if row[1]]
    )


def mean_reading(loads: Sequence[tuple[float | None, int]]) -> float | None:
    """The mean of values with the number of readings behind each; None if there is no reading."""
    present = [(value, readings) for value, readings in loads if value is not None]
    count = sum(readings for _, readings in present)
    return sum(value * readings for value, readings in present) / count if count else None


def device_table(loads: Sequence[Load]) -> PageTable:
    """Device readings over the whole run."""
    with_readings = [load for load in loads if load.readings]
    busy = mean_reading([(load.busy_percent, load.readings) for load in with_readings])
    machine_busy = mean_reading(
        [(load.machine_busy_percent, load.readings) for load in with_readings]
    )
    power = mean_reading([(load.power_w, load.readings) for load in with_readings])
    memory = max((load.memory_used_bytes or 0.0 for load in with_readings), default=0.0)
    total = max((load.memory_total_bytes or 0.0 for load in with_readings), default=0.0)
    temperature = max((load.temperature_c or 0.0 for load in with_readings), default=0.0)
    rows = [
        ("device busy, mean", "" if busy is None else f"{busy:.0f} %"),
        (
            "all cores of the machine busy, mean",
            "" if machine_busy is None else f"{machine_busy:.0f} %",
        ),
        (
            "memory in use, most",
            f"{memory_text(round(memory))} of {memory_text(round(total))}" if memory else "",
        ),
        ("power, mean", "" if power is None else f"{power:.0f} W"),
        ("temperature, highest", f"{temperature:.0f} °C" if temperature else ""),
        ("readings", f"{sum(load.readings for load in with_readings):,}" if with_readings else ""),
        ("not readable", next((load.unreadable for load in loads if load.unreadable), "")),
    ]
    return PageTable(title="Device", header=("what", "value"), rows=[row for row in rows if row[1]])


def device_finding(run: Run) -> str:
    """Problems with the load of the run's device; empty if there are none."""
    if run.results.device_kind in ("", "cpu"):
        return ""
    busy = [load.busy_percent for load in run.loads for _ in range(min(load.readings, 1000))]
    return idle_finding(run.results.device_kind, busy)


def environment_table(run: Run) -> list[PageTable]:
    """Versions and machine of the last start, flat; nothing for a run without them."""
    data = read_object(RunDirectory(run.directory).environment, [])
    facts = {name: data[name] for name in ("system", "versions", "processor") if name in data}
    accelerators = data.get("accelerators")
    rows = [(name, str(value)) for name, value in flattened(facts).items() if value is not None]
    if isinstance(accelerators, list):
        for number, each in enumerate(accelerators):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            if isinstance(each, Mapping):
                accelerator: Mapping[str, Any] = each  # pyright: ignore[reportUnknownVariableType]
                words = (str(accelerator.get("kind", "")), str(accelerator.get("name", "")))
                rows.append((f"accelerator {number}", " ".join(words).strip()))
    if not rows:
        return []
    return [PageTable(title="Environment", header=("what", "value"), rows=rows)]


def _listed(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return str(value)
