"""`jumar precision results`."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jumar.cli.counts import check_top
from jumar.cli.options import JsonFlag
from jumar.cli.output import print_table
from jumar.ground.errors import UserError
from jumar.ground.json_text import finite_or_text
from jumar.ground.tables import aligned_lines
from jumar.ground.text import counted, print_plain
from jumar.precision.dumps.cann_results import (
    AscendResult,
    Overflow,
    is_record,
    read_overflow,
    read_results,
)
from jumar.precision.dumps.cann_summary import (
    COSINE,
    THRESHOLD,
    Summary,
    dump_name,
    dumps_of,
    is_bad,
    is_compared,
    is_zero_on_one_side,
    summarised,
)

_MAX_NAMES = 10
_HEADINGS = {
    "CosineSimilarity": "cosine",
    "RelativeEuclideanDistance": "relative distance",
    "MaxAbsoluteError": "largest error",
    "MeanRelativeError": "mean relative error",
}
"""The metrics that the table shows, as far as the file has them; `--json` has all."""


@dataclass(frozen=True, kw_only=True)
class _Comparison:
    path: Path
    summary: Summary


@dataclass(frozen=True, kw_only=True)
class _Record:
    path: Path
    overflows: Sequence[Overflow]


def results(
    file: Path,
    /,
    *more: Path,
    below: float = THRESHOLD,
    top: int = 15,
    json_: JsonFlag = False,
) -> int:
    """Explain results of Ascend's tools: comparisons by msaccucmp, and overflow records.

    Of a `result_*.csv`, shows the worst tensors, what was not compared and why, and the first op
    that is wrong. Of a decoded `Opdebug.Node_OpDebug` file, shows what overflowed, and the files of
    the op. The exit code is 1 if a tensor is wrong, an overflow was recorded, or no tensor has a
    cosine similarity.

    Parameters
    ----------
    file
        A `result_*.csv` of msaccucmp, or an overflow record decoded to JSON.
    more
        Further files of either kind.
    below
        A tensor is wrong if its cosine similarity is below this number, or not a number; by
        default that of msaccucmp's advisor.
    top
        Number of tensors to show; 0 for all.
    """
    check_top(top)
    if not -1 < below <= 1:
        raise UserError(
            f"cannot be {below:g}", where="--below", todo="Allowed: more than -1, at most 1."
        )
    parts = [_read(path, below) for path in (file, *more)]
    if json_:
        print(json.dumps([_to_json(part, below) for part in parts], indent=1))
    else:
        for number, part in enumerate(parts):
            if number:
                print()
            _print(part, below, top)
    return int(any(map(_is_bad, parts)))


def _read(path: Path, below: float) -> _Comparison | _Record:
    if is_record(path):
        return _Record(path=path, overflows=read_overflow(path))
    return _Comparison(path=path, summary=summarised(read_results(path), below))


def _is_bad(part: _Comparison | _Record) -> bool:
    if isinstance(part, _Record):
        return bool(part.overflows)
    return part.summary.first is not None or part.summary.metric != COSINE


def _print(part: _Comparison | _Record, below: float, top: int) -> None:
    if isinstance(part, _Record):
        print_plain("\n".join(_overflow_lines(part)))
        return
    print_plain("\n".join(_lines(part, below)))
    rows = part.summary.compared[: top or None]
    if rows:
        print()
        print_table(_table(rows, part.summary.metric))
    if hidden := len(part.summary.compared) - len(rows):
        print_plain(f"{counted(hidden, 'further tensor')} not shown")


def _lines(part: _Comparison, below: float) -> Iterator[str]:
    summary = part.summary
    yield f"{part.path}: {counted(summary.rows, 'row')} of {counted(summary.ops, 'op')}"
    without = f" ({summary.without_cosine} without a cosine similarity)"
    yield f"compared: {len(summary.compared)}{without if summary.without_cosine else ''}"
    yield f"not compared: {sum(summary.reasons.values())}"
    reasons = [[str(number), reason] for reason, number in summary.reasons.items()]
    for line in aligned_lines(reasons, numeric=(0,)) if reasons else ():
        yield f"  {line}"
    yield _overflow_line(summary)
    yield from _verdict(summary, below)


def _overflow_line(summary: Summary) -> str:
    if not summary.checked:
        return "overflow: not checked (msaccucmp checks it with -overflow_detection)"
    names = ", ".join(summary.overflowed[:_MAX_NAMES])
    if hidden := len(summary.overflowed) - _MAX_NAMES:
        names += f" and {hidden} more" if hidden > 0 else ""
    found = f"{len(summary.overflowed)} of {counted(summary.checked, 'checked op')}"
    return f"overflow: {found}{': ' if names else ''}{names}"


def _verdict(summary: Summary, below: float) -> Iterator[str]:
    first = summary.first
    if first is not None:
        name = f"{first.tensor} of {first.npu}" if first.tensor else first.npu
        yield f"first wrong tensor: {name} ({first.op_type}), {_cosine(first, below)}"
        yield f"  {_about_inputs(first, summary.inputs, below)}"
    elif summary.metric == COSINE:
        yield f"no tensor is wrong: no cosine similarity is below {below:g}"
    elif summary.metric:
        yield f"no {COSINE}, so no tensor can be judged; ordered by {summary.metric}"
    else:
        yield "no tensor can be judged, because none was compared"


def _cosine(row: AscendResult, below: float) -> str:
    if is_zero_on_one_side(row):
        return "all elements of one side are zero"
    cosine = row.numbers[COSINE]
    limit = "" if math.isnan(cosine) else f", below {below:g}"
    return f"cosine similarity {cosine:.6g}{limit}"


def _about_inputs(first: AscendResult, inputs: Sequence[AscendResult], below: float) -> str:
    if first.tensor.startswith("input"):
        return "it is an input, so the error arises in an op before it"
    compared = [row for row in inputs if is_compared(row)]
    if any(is_bad(row, below) for row in compared):
        return "its inputs are wrong too"
    if not compared:
        return "none of its inputs was compared, so the error may arise in an op before it"
    if len(compared) < len(inputs):
        return f"its compared inputs ({len(compared)} of {len(inputs)}) are not wrong"
    return "its inputs are not wrong, so the error seems to arise in this op"


def _table(rows: Sequence[AscendResult], metric: str) -> list[dict[str, str]]:
    known = dict.fromkeys([metric, *_HEADINGS] if metric else _HEADINGS)
    present = [name for name in known if any(name in row.numbers for row in rows)]
    names = present or list(dict.fromkeys(name for row in rows for name in row.numbers))[:3]
    overflow = {True: "yes", False: "no", None: ""}
    return [
        {
            "op type": row.op_type,
            "op": row.npu,
            "tensor": row.tensor,
            **{
                _HEADINGS.get(name, name): f"{row.numbers[name]:.6g}" if name in row.numbers else ""
                for name in names
            },
            "overflow": overflow[row.overflowed],
        }
        for row in rows
    ]


def _overflow_lines(part: _Record) -> Iterator[str]:
    yield f"{part.path}: {counted(len(part.overflows), 'overflow')}"
    for overflow in part.overflows:
        place = [
            f"{kind} {number}"
            for kind, number in (("task", overflow.task), ("stream", overflow.stream))
            if number is not None
        ]
        meaning = ", ".join(overflow.meanings) or "unknown cause"
        yield f"  {', '.join([overflow.unit, *place])}: {meaning} (status {overflow.status:#x})"
        if overflow.is_task_from_name:
            yield "    the record has no task; that of the file's name may be another one"
        files = dumps_of(overflow, part.path.parent)
        ops = dict.fromkeys(f"{match['name']} ({match['type']})" for match in files)
        for op in [*ops][:_MAX_NAMES]:
            yield f"    op: {op}"
        for match in files[:_MAX_NAMES]:
            yield f"    its dump: {match[0]}"
        if not files and overflow.task is not None:
            yield f"    its dump: {dump_name(overflow)}, next to the record that was decoded"
        elif not files:
            yield "    its dump cannot be named, because the task is unknown"


def _to_json(part: _Comparison | _Record, below: float) -> dict[str, Any]:
    if isinstance(part, _Record):
        return {
            "file": str(part.path),
            "kind": "overflow",
            "overflows": [
                {
                    "unit": overflow.unit,
                    "task": overflow.task,
                    "stream": overflow.stream,
                    "status": overflow.status,
                    "meanings": list(overflow.meanings),
                    "is_task_from_name": overflow.is_task_from_name,
                    "dump_name": dump_name(overflow),
                    "dumps": [match[0] for match in dumps_of(overflow, part.path.parent)],
                }
                for overflow in part.overflows
            ],
        }
    summary = part.summary
    return {
        "file": str(part.path),
        "kind": "comparison",
        "rows": summary.rows,
        "ops": summary.ops,
        "compared": len(summary.compared),
        "without_cosine": summary.without_cosine,
        "not_compared": dict(summary.reasons),
        "checked_for_overflow": summary.checked,
        "overflowed": list(summary.overflowed),
        "metric": summary.metric,
        "below": below,
        "first": None if summary.first is None else _row(summary.first),
        "tensors": [_row(row) for row in summary.compared],
    }


def _row(row: AscendResult) -> dict[str, Any]:
    return {
        "op_type": row.op_type,
        "op": row.npu,
        "partner": row.golden,
        "tensor": row.tensor,
        "overflowed": row.overflowed,
        "numbers": {name: finite_or_text(number) for name, number in row.numbers.items()},
        "reason": row.reason,
    }
