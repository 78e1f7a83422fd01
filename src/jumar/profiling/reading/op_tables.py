"""Op rows of op_summary and kernel_details, in every header they had since CANN 5."""

from pathlib import Path
from typing import Final

import polars as pl

from jumar.profiling.profile import COMMUNICATION, OPS_SCHEMA, Kind, Missing
from jumar.profiling.reading import headers
from jumar.profiling.reading.csv_text import scanned
from jumar.profiling.reading.exact import DIGITS, clean, nanoseconds
from jumar.profiling.reading.part import Part

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
    with scanned(path) as frame:
        names = frame.collect_schema().names()
        wanted, pmu = _columns(names)
        # Streamed, a million rows need 0.7 GB; at once, 1.9 GB.
        ops = frame.select(*wanted.values(), *pmu.values()).collect(engine="streaming")
    ops = ops.with_columns(_core(ops.columns).alias("core"))
    whole = ops
    if ops["duration_ns"].null_count() or ops["name"].null_count():
        whole = ops.filter(pl.col("duration_ns").is_not_null() & pl.col("name").is_not_null())
    missing = _gaps(whole, shown)
    if whole.height < ops.height:
        lost = ops.height - whole.height
        missing.append(Missing(file=shown, what=f"{lost} rows without a name or a duration"))
    return Part(
        file=shown,
        kind=kind,
        producer="jumar" if "Module" in names else _PRODUCERS[kind],
        device=_kind(whole),
        ops=whole,
        missing=tuple(missing),
    )


def _columns(names: list[str]) -> tuple[dict[str, pl.Expr], dict[str, pl.Expr]]:
    """Expressions for the columns of the op table, and for the counters behind them."""
    wanted: dict[str, pl.Expr] = {}
    pmu: dict[str, pl.Expr] = {}
    bases = {headers.column(name).base for name in names}
    for name in names:
        found = headers.column(name)
        target = headers.OPS.get(found.base)
        if found.base == "infer id" and "step id" in bases:
            continue
        if target is None:
            if found.base not in headers.IGNORED:
                # Not stripped: a million rows of 30 counters cost more than all else together,
                # and only times carry a TAB.
                pmu[found.name.strip()] = pl.col(name).cast(pl.Float64, strict=False)
        elif target not in wanted:
            unit = found.unit if found.unit in DIGITS else "us"
            wanted[target] = _value(pl.col(name), target, unit)
    return (
        {target: value.alias(target) for target, value in wanted.items()},
        {name: value.alias(name) for name, value in pmu.items() if name not in wanted},
    )


def _value(column: pl.Expr, target: str, unit: str) -> pl.Expr:
    """One column of the op table from its text."""
    if target.endswith("_shapes"):
        # A scalar alone is `""` in quotes, and is not the same as `N/A`.
        text = column.str.strip_chars(" \t\r\n")
        return pl.when(text != "N/A").then(text.str.strip_chars('"'))
    bare = column.str.strip_chars(' \t\r\n"')
    if target in _TIMES:
        return nanoseconds(bare, unit)
    if OPS_SCHEMA[target].is_integer():
        return bare.cast(OPS_SCHEMA[target], strict=False)
    text = clean(column)
    if target.endswith("_types"):
        return text.str.replace_all("DT_", "", literal=True)
    if target.endswith("_formats"):
        return text.str.replace_all("FORMAT_", "", literal=True)
    return text


def _core(present: list[str]) -> pl.Expr:
    """The core in today's words. Level 0 tells no core but that of collectives, by their name."""
    core = pl.col("core") if "core" in present else pl.lit(None, pl.String)
    collective = core.is_null() & pl.col("name").str.contains(_COLLECTIVE)
    return pl.when(collective).then(pl.lit(COMMUNICATION)).otherwise(core.replace(_CORES))


def _kind(ops: pl.DataFrame) -> Kind:
    """Where the ops ran: files of ours hold those of CUDA and of the CPU, too."""
    cores = {str(core) for core in ops["core"].drop_nulls().unique()}
    if any(core.startswith("CUDA") for core in cores):
        return "cuda"
    return "cpu" if "CPU" in cores else "npu"


def _gaps(ops: pl.DataFrame, shown: str) -> list[Missing]:
    """What the table does not hold, with the analyses that need it."""
    found: list[Missing] = []
    of_device = (pl.col("core") != COMMUNICATION).fill_null(True)
    for column, what, needed_for in _NEEDED:
        there = ops.select(of_device.alias("asked"), known=_known(column, ops.columns))
        if there["asked"].any() and not (there["asked"] & there["known"]).any():
            found.append(Missing(file=shown, what=what, needed_for=needed_for))
    return found


def _known(column: str, present: list[str]) -> pl.Expr:
    return pl.col(column).is_not_null() if column in present else pl.lit(False)
