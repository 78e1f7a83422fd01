"""Formats the outcome of a check as text, Markdown or JSON."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from rich.cells import cell_len, set_cell_size

from jumar import __version__
from jumar.ground.tables import markdown_lines, markdown_text
from jumar.ground.text import Language, Text
from jumar.porting.check.losses import Comparison, LossPair
from jumar.porting.check.result import CheckResult
from jumar.porting.check.standin_wording import standin_lines, standin_sentence

_MARKS = {
    "passed": Text(en="pass", zh="通过"),
    "failed": Text(en="FAIL", zh="失败"),
    "not reached": Text(en="-   ", zh="-   "),
}
_HEAD_STEPS = 3

_STATUS = {
    "passed": Text(en="passed", zh="通过"),
    "failed": Text(en="failed", zh="失败"),
    "not reached": Text(en="not reached", zh="未到达"),
}
_COLUMNS = {
    "step": Text(en="step", zh="步"),
    "original": Text(en="original", zh="原脚本"),
    "port": Text(en="port", zh="移植结果"),
    "difference": Text(en="difference", zh="差异"),
    "relative": Text(en="relative difference", zh="相对差异"),
    "loss": Text(en="loss", zh="损失"),
    "stage": Text(en="stage", zh="阶段"),
    "result": Text(en="result", zh="结果"),
    "seconds": Text(en="seconds", zh="秒"),
    "why": Text(en="why", zh="原因"),
}
_TITLE = Text(en="Port check", zh="移植检查")
_OF_PROCESS = Text(en="process {number}: {name}", zh="进程 {number}：{name}")
_NOTE = Text(en="note: {note}", zh="注意：{note}")
_COMMAND = Text(en="command: {command}", zh="命令：{command}")
_WITH = Text(en="with: {interpreter}", zh="解释器：{interpreter}")
_ALL = Text(en="all stages passed in {seconds} s", zh="所有阶段均通过，用时 {seconds} 秒")
_NOT_ALL = Text(
    en="not all stages passed in {seconds} s", zh="并非所有阶段都通过，用时 {seconds} 秒"
)
_LAST_LINES = Text(en="Last lines of output ({status}):", zh="“{status}”时输出的最后几行：")


def as_lines(result: CheckResult, language: Language = "en") -> Iterator[str]:
    """Yield the lines of the report for a terminal or a log, without colours."""

    def localized(text: Text) -> str:
        return text.in_language(language)

    width = max(cell_len(localized(stage.name)) for stage in result.stages)
    for stage in result.stages:
        mark = localized(_MARKS[stage.status])
        time = f"{stage.seconds:7.1f} s" if stage.status != "not reached" else " " * 9
        name = set_cell_size(localized(stage.name), width)
        yield f"{mark}  {name}  {time}  {localized(stage.reason)}".rstrip()
        for line in stage.details:
            yield f"        | {line}"
    if result.comparison is not None and result.comparison.pairs:
        yield ""
        yield from _loss_lines(result.comparison, language)
    standin = [localized(line) for line in standin_lines(result.standin)]
    if standin:
        yield ""
        yield from standin
    if result.notes:
        yield ""
        yield from (localized(_NOTE.filled(note=note)) for note in result.notes)
    yield ""
    yield localized(_COMMAND.filled(command=" ".join(result.command)))
    yield localized(_WITH.filled(interpreter=result.interpreter))
    outcome = _ALL if result.passed else _NOT_ALL
    yield localized(outcome.filled(seconds=f"{result.seconds:.1f}"))


def _loss_lines(comparison: Comparison, language: Language) -> Iterator[str]:
    headers = {key: text.in_language(language) for key, text in _COLUMNS.items()}
    cells = (("step", 6), ("original", 14), ("port", 14), ("difference", 10))
    row = [" " * (width - cell_len(headers[key])) + headers[key] for key, width in cells]
    yield "  ".join([*row, headers["loss"]])
    pairs = _pairs_to_show(comparison)
    previous: LossPair | None = None
    for pair in pairs:
        if previous is not None and pair.step > previous.step + 1:
            yield f"{'...':>6}"
        yield (
            f"{pair.step:6}  {pair.original:14.8g}  {pair.port:14.8g}  "
            f"{pair.relative_difference:10.1e}  {_name(pair, comparison, language)}"
        )
        previous = pair


def _name(pair: LossPair, comparison: Comparison, language: Language) -> str:
    """Return the name of the loss, with the number of its process if several trained."""
    if comparison.pairs[-1].process == comparison.pairs[0].process:
        return pair.name
    return _OF_PROCESS.filled(number=pair.process + 1, name=pair.name).in_language(language)


def _pairs_to_show(comparison: Comparison) -> list[LossPair]:
    """Return the losses of the first steps, the last one, and the first that differs."""
    last = comparison.pairs[-1].step
    difference = comparison.first_different
    steps = {*range(1, _HEAD_STEPS + 1), last, *([difference.step] if difference else [])}
    return [pair for pair in comparison.pairs if pair.step in steps]


def as_markdown(result: CheckResult, language: Language = "en") -> str:
    """Return the report as a Markdown page."""

    def localized(text: Text) -> str:
        return text.in_language(language)

    def headers(*keys: str) -> list[str]:
        return [localized(_COLUMNS[key]) for key in keys]

    lines = [
        f"# {localized(_TITLE)}",
        "",
        f"`{' '.join(result.command)}`",
        "",
        result.interpreter,
        "",
    ]
    stages = [
        [
            *map(localized, (stage.name, _STATUS[stage.status])),
            f"{stage.seconds:.1f}",
            localized(stage.reason),
        ]
        for stage in result.stages
    ]
    lines += markdown_lines([headers("stage", "result", "seconds", "why"), *stages], numeric=[2])
    for stage in result.stages:
        if stage.details:
            lines += ["", localized(_LAST_LINES.filled(status=_STATUS[stage.status])), "", "```"]
            lines += [*(line.replace("```", "'''") for line in stage.details), "```"]
    if result.comparison is not None and result.comparison.pairs:
        losses = [
            [
                f"{pair.step}",
                f"{pair.original:.9g}",
                f"{pair.port:.9g}",
                f"{pair.relative_difference:.1e}",
                _name(pair, result.comparison, language),
            ]
            for pair in result.comparison.pairs
        ]
        names = headers("step", "original", "port", "relative", "loss")
        lines += ["", *markdown_lines([names, *losses], numeric=range(4))]
    remarks = [*standin_lines(result.standin), *result.notes]
    lines += ["", *(f"- {markdown_text(localized(line))}" for line in remarks)]
    return "\n".join([*lines, "", f"jumar {__version__}, {result.seconds:.1f} s", ""])


def as_json(result: CheckResult, language: Language = "en") -> str:
    """Return the report for programs; values that JSON lacks are null.

    `stage` and `status` are the same in every language.
    """
    comparison = result.comparison
    value: dict[str, Any] = {
        "version": __version__,
        "passed": result.passed,
        "command": list(result.command),
        "interpreter": result.interpreter,
        "seconds": round(result.seconds, 3),
        "stages": [
            {
                "stage": stage.key,
                "name": stage.name.in_language(language),
                "status": stage.status,
                "seconds": round(stage.seconds, 3),
                "reason": stage.reason.in_language(language),
                "output": list(stage.details),
            }
            for stage in result.stages
        ],
        "losses": None if comparison is None else _losses(comparison, language),
        "npu_bridge": [_event(event, language) for event in result.standin],
        "notes": [note.in_language(language) for note in result.notes],
    }
    return json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n"


def _event(event: Mapping[str, Any], language: Language) -> dict[str, Any]:
    """Return an event with its sentence, if it has one, in the language."""
    translated = dict(event)
    if "text" in translated:
        translated["text"] = standin_sentence(event).in_language(language)
    return translated


def _losses(comparison: Comparison, language: Language) -> dict[str, Any]:
    difference = comparison.first_different
    return {
        "tolerance": comparison.tolerance,
        "equal": comparison.equal,
        "largest_relative_difference": _finite_or_none(comparison.largest_difference),
        "first_different_step": difference.step if difference else None,
        "mismatch": comparison.mismatch.in_language(language),
        "steps": [
            {
                "step": pair.step,
                "name": pair.name,
                "process": pair.process,
                "original": _finite_or_none(pair.original),
                "port": _finite_or_none(pair.port),
                "relative_difference": _finite_or_none(pair.relative_difference),
            }
            for pair in comparison.pairs
        ],
    }


def _finite_or_none(number: float) -> float | None:
    return number if math.isfinite(number) else None
