"""Reads op rows of op_summary and kernel_details, from all releases since CANN 5."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import polars as pl

from jumar.ground.text import counted
from jumar.profiling.profile import COMMUNICATION, OPS_SCHEMA, DeviceKind, Missing
from jumar.profiling.reading.exact import DIGITS, clean
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.files import headers
from jumar.profiling.reading.tables.column_values import convert_distinct, integers, times
from jumar.profiling.reading.tables.csv_text import CsvText, scanned

_TIMES: Final = ("start_ns", "duration_ns", "wait_ns", "launch_ns")
_PRODUCERS: Final = {"op_summary": "msprof", "kernel_details": "torch_npu"}
_EXPECTED_COLUMNS: Final = (
    ("type", "types of ops (profiler level 0)", ("casts", "AI CPU", "compare by type")),
    ("core", "cores of ops (profiler level 0)", ("AI CPU", "low core use")),
    ("input_types", "types of inputs", ("casts", "precision")),
    ("input_shapes", "shapes of inputs", ("roofline", "casts")),
    ("start_ns", "start times", ("step split", "timeline")),
)
_CORE_NAMES: Final = {"AICPU": "AI_CPU", "HCCL": COMMUNICATION, "AIV": "AI_VECTOR_CORE"}
_COLLECTIVE: Final = r"^hcom_[a-zA-Z]"


def read_ops(path: Path, display_name: str, kind: str) -> FileContent:
    """Read the op rows of a CSV file."""
    with scanned(path, display_name) as text:
        names = text.names
        op_columns, counters = _columns(names)
        # The columns are not assigned to a name, so that each is freed once it is converted.
        ops = _op_table(
            text.columns([*op_columns.values(), *counters.values()], _column_type),
            text,
            op_columns,
            counters,
        )
    complete = ops
    if ops["duration_ns"].null_count() or ops["name"].null_count():
        complete = ops.filter(pl.col("duration_ns").is_not_null() & pl.col("name").is_not_null())
    missing = _gaps(complete, display_name)
    if complete.height < ops.height:
        dropped = ops.height - complete.height
        missing.append(
            Missing(
                file=display_name,
                what=f"{counted(dropped, 'row')} without a name or a duration",
            )
        )
    return FileContent(
        file=display_name,
        kind=kind,
        producer="jumar" if "Module" in names else _PRODUCERS[kind],
        device=_device_kind(complete),
        ops=complete,
        missing=(*missing, *text.unreadable.missing()),
    )


def _column_type(name: str) -> pl.DataType | None:
    """The type of a column when reading: floats for counters, categories for repetitive text."""
    base = headers.column(name).base
    target = headers.OP_COLUMNS.get(base)
    if target is None:
        return None if base in headers.IGNORED_COLUMNS else pl.Float64()
    return pl.Categorical() if OPS_SCHEMA[target] == pl.String else None


def _columns(names: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The file's column names by op table column, and those of counters by counter."""
    op_columns: dict[str, str] = {}
    counters: dict[str, str] = {}
    bases = {headers.column(name).base for name in names}
    for name in names:
        column = headers.column(name)
        target = headers.OP_COLUMNS.get(column.base)
        if column.base == "infer id" and "step id" in bases:
            continue
        if target is not None:
            op_columns.setdefault(target, name)
        elif column.base not in headers.IGNORED_COLUMNS:
            counters[column.name.strip()] = name
    return op_columns, {name: header for name, header in counters.items() if name not in op_columns}


def _op_table(
    fields: list[pl.Series],
    text: CsvText,
    op_columns: Mapping[str, str],
    counters: Mapping[str, str],
) -> pl.DataFrame:
    """The op table from the columns of a file; empties the list to free memory."""
    columns = {column.name: column for column in fields}
    fields.clear()
    converted: dict[str, pl.Series] = {}
    for target, name in op_columns.items():
        field = columns.pop(name).rechunk()
        converted[target] = _value(field, target, headers.column(name).unit)
        if target == "duration_ns":
            converted[target] = converted[target].set(converted[target] < 0, None)
        if OPS_SCHEMA[target].is_integer():
            text.checked(field, converted[target])
    converted["core"] = _cores(converted["name"], converted.get("core"))
    counter_columns = {target: columns.pop(name) for target, name in counters.items()}
    return pl.DataFrame(
        [column.alias(name) for name, column in (converted | counter_columns).items()]
    )


def _value(text: pl.Series, target: str, unit: str) -> pl.Series:
    """One column of the op table from its text."""
    if target in _TIMES:
        return times(text, unit if unit in DIGITS else "us")
    if OPS_SCHEMA[target].is_integer():
        return integers(text, OPS_SCHEMA[target])
    return convert_distinct(text, partial(_current_text, target=target))


def _current_text(column: pl.Expr, target: str) -> pl.Expr:
    """A text column in msprof's current terms."""
    if target.endswith("_shapes"):
        # A lone scalar is written as `""`, which differs from a missing `N/A`.
        text = column.str.strip_chars(" \t\r\n")
        return pl.when(text != "N/A").then(text.str.strip_chars('"'))
    # jumar writes text that a spreadsheet would take for a formula with a leading apostrophe.
    text = clean(column).str.replace(r"^'([=+@-])", "$1")
    if target.endswith("_types"):
        return text.str.replace_all("DT_", "", literal=True)
    if target.endswith("_formats"):
        return text.str.replace_all("FORMAT_", "", literal=True)
    return text


def _cores(names: pl.Series, cores: pl.Series | None) -> pl.Series:
    """Cores in msprof's current terms; at Level 0, only collectives have one."""
    if cores is None:
        cores = names.clear().extend_constant(None, names.len())
    if cores.null_count():
        collective = cores.is_null() & names.str.contains(_COLLECTIVE).fill_null(False)
        cores = cores.set(collective, COMMUNICATION)
    return convert_distinct(cores, lambda core: core.replace(_CORE_NAMES))


def _device_kind(ops: pl.DataFrame) -> DeviceKind:
    """The kind of device the ops ran on: jumar's own files may have ops of CUDA or the CPU."""
    cores = {str(core) for core in ops["core"].drop_nulls().unique()}
    if any(core.startswith("CUDA") for core in cores):
        return "cuda"
    return "cpu" if "CPU" in cores else "npu"


def _gaps(ops: pl.DataFrame, display_name: str) -> list[Missing]:
    """The data that the table lacks, with the analyses that need it."""
    gaps: list[Missing] = []
    is_device_op = (pl.col("core") != COMMUNICATION).fill_null(True)
    for column, what, needed_for in _EXPECTED_COLUMNS:
        rows = ops.select(
            is_device_op.alias("is_device_op"),
            has_value=pl.col(column).is_not_null() if column in ops.columns else False,
        )
        if rows["is_device_op"].any() and not (rows["is_device_op"] & rows["has_value"]).any():
            gaps.append(Missing(file=display_name, what=what, needed_for=needed_for))
    return gaps
