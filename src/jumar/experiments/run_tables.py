"""The tables on the page of a single run, other than its results."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from jumar.experiments.json_reading import finite_number, read_object, section, text_of
from jumar.experiments.run_reading import Load, Run
from jumar.experiments.table_forms import memory_text
from jumar.ground.json_text import flattened
from jumar.ground.text import counted, time_text
from jumar.report.content import PageTable
from jumar.training.device_load import idle_finding
from jumar.training.run_directory import RunDirectory

_PARTS = ("train", "eval")


def run_tables(run: Run) -> list[PageTable]:
    """Return tables of a run's data, time, precision and device, without empty ones."""
    tables = [data_table(run), time_table(run), precision_table(run), device_table(run.loads)]
    return [table for table in tables if table.rows]


def data_table(run: Run) -> PageTable:
    """Return the table of the data that the run found at the paths of its settings."""
    resolved = read_object(RunDirectory(run.directory).resolved, [])
    samples, fingerprints = section(resolved, "samples"), section(resolved, "fingerprints")
    rows = [
        (f"{part} samples", f"{count:,.0f}")
        for part in _PARTS
        if (count := finite_number(samples.get(part))) is not None
    ]
    rows += [(field, text_of(path)) for field, path in section(resolved, "places").items()]
    rows += [
        (f"fingerprint of the {part} items", text_of(fingerprints.get(part)))
        for part in _PARTS
        if text_of(fingerprints.get(part))
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
    return PageTable(title="Data", header=("fact", "value"), rows=rows)


def time_table(run: Run) -> PageTable:
    """Return the breakdown of the time, as far as it was measured."""
    times = [(record.step_ms, record.data_ms) for record in run.train]
    complete_times = [(step, data) for step, data in times if step and data is not None]
    results, rows = run.results, list[tuple[str, str, str]]()
    steps = results.steps or run.last_step
    if complete_times and steps:
        mean = statistics.fmean(step for step, _ in complete_times)
        waiting_share = statistics.fmean(data for _, data in complete_times) / mean
        elapsed_s = results.elapsed_s
        steps_s = mean * steps / 1000
        evaluations_s = sum(evaluation.seconds or 0.0 for evaluation in run.evaluations)
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
        title="Time",
        header=("part", "time", "%"),
        rows=rows,
        numeric=(1, 2),
        notes=["The time of a step is the mean over log lines, without the first steps."],
    )


def precision_table(run: Run) -> PageTable:
    """Return the table of the requested precision and the dtype that was computed in."""
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
        title="Precision", header=("setting", "value"), rows=[row for row in rows if row[1]]
    )


def mean_reading(loads: Sequence[tuple[float | None, int]]) -> float | None:
    """Return the mean of values weighted by their numbers of readings; None without readings."""
    present = [(value, readings) for value, readings in loads if value is not None]
    count = sum(readings for _, readings in present)
    return sum(value * readings for value, readings in present) / count if count else None


def device_table(loads: Sequence[Load]) -> PageTable:
    """Return the table of device readings over the whole run."""
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
            "memory in use, maximum",
            f"{memory_text(round(memory))} of {memory_text(round(total))}" if memory else "",
        ),
        ("power, mean", "" if power is None else f"{power:.0f} W"),
        ("temperature, maximum", f"{temperature:.0f} °C" if temperature else ""),
        ("readings", f"{sum(load.readings for load in with_readings):,}" if with_readings else ""),
        ("unreadable", next((load.unreadable for load in loads if load.unreadable), "")),
    ]
    return PageTable(
        title="Device", header=("reading", "value"), rows=[row for row in rows if row[1]]
    )


def device_finding(run: Run) -> str:
    """Return a problem with the load of the run's device; empty if there is none."""
    if run.results.device_kind in ("", "cpu"):
        return ""
    busy = [load.busy_percent for load in run.loads for _ in range(min(load.readings, 1000))]
    return idle_finding(run.results.device_kind, busy)


def environment_table(run: Run) -> list[PageTable]:
    """Return the table of versions and machine of the last start, if they are known."""
    data = read_object(RunDirectory(run.directory).environment, [])
    facts = {name: data[name] for name in ("system", "versions", "processor") if name in data}
    accelerators = data.get("accelerators")
    rows = [(name, str(value)) for name, value in flattened(facts).items() if value is not None]
    if isinstance(accelerators, list):
        for number, item in enumerate(accelerators):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            if isinstance(item, Mapping):
                accelerator: Mapping[str, Any] = item  # pyright: ignore[reportUnknownVariableType]
                name = f"{accelerator.get('kind', '')} {accelerator.get('name', '')}".strip()
                rows.append((f"accelerator {number}", name))
    if not rows:
        return []
    return [PageTable(title="Environment", header=("fact", "value"), rows=rows)]


def _listed(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return str(value)
