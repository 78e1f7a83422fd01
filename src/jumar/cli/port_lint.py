"""`jumar port lint`: check scripts that already use npu_bridge."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from jumar.cli.options import JsonFlag
from jumar.ground.text import Language, print_plain

if TYPE_CHECKING:
    from jumar.porting.edits import TreeReport

_SEVERITIES = {"blocking": "阻塞", "accuracy": "精度", "speed": "性能", "look": "请确认"}


def lint(
    path: Path,
    /,
    *,
    json_: JsonFlag = False,
    lang: Language = "en",
) -> int:
    """Check for invalid NpuOptimizer options, NPURunConfig arguments and npu_bridge names.

    Scripts are neither changed nor executed. The exit code is 1 if there are findings or scripts
    that cannot be read, and 2 if none can be read.

    Parameters
    ----------
    path
        A Python file, or a folder of Python files.
    lang
        Language of the findings.
    """
    from jumar.porting.lint.linting import lint_tree

    report = lint_tree(path)
    if json_:
        print(json.dumps(_as_json(report, lang), indent=2, ensure_ascii=False))
    else:
        print_plain("\n".join(_as_text(report, lang)))
    return int(any(file.findings or file.status == "unreadable" for file in report.files))


def _as_text(report: "TreeReport", lang: Language) -> Iterator[str]:
    chinese = lang == "zh"
    for file in report.files:
        for finding in file.findings:
            severity = _SEVERITIES[finding.severity] if chinese else finding.severity
            yield f"{file.path}:{finding.place}: {severity} [{finding.rule}]"
            yield f"    {finding.code}"
            yield f"    {finding.reason.in_language(lang)}"
            yield f"    -> {finding.todo.in_language(lang)}"
        if file.note is not None:
            yield f"{file.path}: {file.note.in_language(lang)}"
    findings = sum(len(file.findings) for file in report.files)
    unreadable = report.count("unreadable")
    scripts = len(report.files)
    if chinese:
        yield f"共 {scripts} 个脚本，{findings} 个问题，{unreadable} 个无法读取。"
    else:
        yield f"Scripts: {scripts}. Findings: {findings}. Not readable: {unreadable}."


def _as_json(report: "TreeReport", lang: Language) -> dict[str, object]:
    return {
        "root": report.root,
        "scripts": len(report.files),
        "findings": [
            {
                "path": file.path,
                "line": finding.place.line,
                "column": finding.place.column,
                "rule": finding.rule,
                "severity": finding.severity,
                "confidence": finding.confidence,
                "code": finding.code,
                "reason": finding.reason.in_language(lang),
                "todo": finding.todo.in_language(lang),
                "source": finding.source,
            }
            for file in report.files
            for finding in file.findings
        ],
        "unreadable": [
            {"path": file.path, "reason": file.note.in_language(lang)}
            for file in report.files
            if file.note is not None
        ],
    }
