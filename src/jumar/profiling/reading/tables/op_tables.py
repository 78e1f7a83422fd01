"""Op rows of op_summary and kernel_details, with every header since CANN 5."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import polars as pl

from jumar.profiling.profile import COMMUNICATION, OPS_SCHEMA, Kind, Missing
from jumar.profiling.reading.exact import DIGITS, clean
from jumar.profiling.reading.files import headers
from jumar.profiling.reading.part import Part
from jumar.profiling.reading.tables.column_values import each_once, integers, times
from jumar.profiling.reading.tables.csv_text import CsvText, scanned

_TIMES: Final = ("start_ns", "duration_ns", "wait_ns", "launch_ns")
_PRODUCERS: Final = {"op_summary": "msprof", "kernel_details": "torch_npu"}
_NEEDED: Final = (
    ("type", "types of ops (profiler level 0)", ("casts", "AI CPU", "compare by type")),
    ("core", "cores of ops (profiler level 0)", ("AI CPU", "low core use")),
    ("input_types", "types of inputs", ("casts", "precision")),
    ("input_shapes", "shapes of inputs", ("roofline", "casts")),
    ("start_ns", "start times", ("step split", "timeline")),
)
_CORES: Final = {"AICPU": "AI_CPU", "HCCL": COMMUNICATION, "AIV": "AI_VECTOR_CORE"}
_COLLECTIVE: Final = r"^hcom_[a-zA-Z]"


def read_ops(path: Path, shown: str, kind: str) -> Part:
    """The op rows of a CSV file."""
    with scanned(path, shown) as text:
        names = text.names
        wanted, counters = _columns(names)
        # Bound to no name here, so that text is freed as soon as it is converted.
        ops = _converted(
            text.columns([*wanted.values(), *counters.values()], _read_as), text, wanted, counters
        )
    whole = ops
    if ops["duration_ns"].null_count() or ops["name"].null_count():
        whole = ops.filter(pl.col("duration_ns").is_not_null() & pl.col("name").is_not_null())
    missing = _gaps(whole, shown)
    if whole.height < ops.height:
        lost = ops.height - whole.height
        missing.append(
            Missing(
                file=shown,
                what=f"{lost} {'row' if lost == 1 else 'rows'} without a name or a duration",
            )
        )
    return Part(
        file=shown,
        kind=kind,
        producer="jumar" if "Module" in names else _PRODUCERS[kind],
        device=_kind(whole),
        ops=whole,
        missing=(*missing, *text.unreadable.missing()),
    )


def _read_as(name: str) -> pl.DataType | None:
    """The type of a column; most are counters, and texts repeat in nearly every row."""
    base = headers.column(name).base
    target = headers.OPS.get(base)
    if target is None:
        return None if base in headers.IGNORED else pl.Float64()
    return pl.Categorical() if OPS_SCHEMA[target] == pl.String else None


def _columns(names: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Names in the file by those of the op table, and by those of the counters after them."""
    wanted: dict[str, str] = {}
    counters: dict[str, str] = {}
    bases = {headers.column(name).base for name in names}
    for name in names:
        column = headers.column(name)
        target = headers.OPS.get(column.base)
        if column.base == "infer id" and "step id" in bases:
            continue
        if target is not None:
            wanted.setdefault(target, name)
        elif column.base not in headers.IGNORED:
            counters[column.name.strip()] = name
    return wanted, {name: own for name, own in counters.items() if name not in wanted}


def _converted(
    fields: list[pl.Series], text: CsvText, wanted: Mapping[str, str], counters: Mapping[str, str]
) -> pl.DataFrame:
    """The op table from the columns of a file; empties the list of columns."""
    columns = {column.name: column for column in fields}
    fields.clear()
    known: dict[str, pl.Series] = {}
    for target, name in wanted.items():
        field = columns.pop(name).rechunk()
        known[target] = _value(field, target, headers.column(name).unit)
        if target == "duration_ns":
            known[target] = known[target].set(known[target] < 0, None)
        if OPS_SCHEMA[target].is_integer():
            text.checked(field, known[target])
    known["core"] = _cores(known["name"], known.get("core"))
    rest = {target: columns.pop(name) for target, name in counters.items()}
    return pl.DataFrame([column.alias(name) for name, column in (known | rest).items()])


def _value(text: pl.Series, target: str, unit: str) -> pl.Series:
    """One column of the op table from its text."""
    if target in _TIMES:
        return times(text, unit if unit in DIGITS else "us")
    if OPS_SCHEMA[target].is_integer():
        return integers(text, OPS_SCHEMA[target])
    return each_once(text, partial(_text, target=target))


def _text(column: pl.Expr, target: str) -> pl.Expr:
    """One text column in current terms."""
    if target.endswith("_shapes"):
        # A scalar alone is `""` in quotes, and is not the same as `N/A`.
        text = column.str.strip_chars(" \t\r\n")
        return pl.when(text != "N/A").then(text.str.strip_chars('"'))
    # What would be a formula in a spreadsheet is written with an apostrophe before it.
    text = clean(column).str.replace(r"^'([=+@-])", "$1")
    if target.endswith("_types"):
        return text.str.replace_all("DT_", "", literal=True)
    if target.endswith("_formats"):
        return text.str.replace_all("FORMAT_", "", literal=True)
    return text


def _cores(names: pl.Series, cores: pl.Series | None) -> pl.Series:
    """The cores in current terms. Level 0 has no cores except those of collectives, by name."""
    if cores is None:
        cores = names.clear().extend_constant(None, names.len())
    if cores.null_count():
        collective = cores.is_null() & names.str.contains(_COLLECTIVE).fill_null(False)
        cores = cores.set(collective, COMMUNICATION)
    return each_once(cores, lambda core: core.replace(_CORES))


def _kind(ops: pl.DataFrame) -> Kind:
    """Where the ops ran: our own files may have ops of CUDA and of the CPU."""
    cores = {str(core) for core in ops["core"].drop_nulls().unique()}
    if any(core.startswith("CUDA") for core in cores):
        return "cuda"
    return "cpu" if "CPU" in cores else "npu"


def _gaps(ops: pl.DataFrame, shown: str) -> list[Missing]:
    """What the table lacks, with the analyses that need it."""
    gaps: list[Missing] = []
    of_device = (pl.col("core") != COMMUNICATION).fill_null(True)
    for column, what, needed_for in _NEEDED:
        presence = ops.select(of_device.alias("asked"), known=_known(column, ops.columns))
        if presence["asked"].any() and not (presence["asked"] & presence["known"]).any():
            gaps.append(Missing(file=shown, what=what, needed_for=needed_for))
    return gaps


def _known(column: str, present: list[str]) -> pl.Expr:
    return pl.col(column).is_not_null() if column in present else pl.lit(False)
