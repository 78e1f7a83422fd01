"""Finds training code that would run without the NPU options.

If nothing in a tree has the options, all training would stay on the CPU. Otherwise, a script that
is started on its own may still have been missed: neither it nor its imports have them.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from jumar.porting.edits import WHOLE_TREE_RULE, FileReport, Kept, Remark, Text
from jumar.porting.script.project import Project
from jumar.porting.script.source import Lines
from jumar.porting.tree.imports import import_graph, ported_text, reached

_LIBRARY = re.compile(r"\b(?:tensorflow|keras|tf)\b")
_KERAS = re.compile(r"^\s*(?:from|import)\s+[\w., ]*\bkeras\b", re.MULTILINE)
_TRAINS = re.compile(
    r"^[^#\n]*?(\b[\w.()\[\]]+\.(?:minimize|apply_gradients|train_and_evaluate)|slim\.learning\.train)"
    r"\s*\(",
    re.MULTILINE,
)
_FITS = re.compile(
    r"^[^#\n]*?(\b[\w.]*\w\.(?:fit|fit_generator|train_on_batch))\s*\(", re.MULTILINE
)
_OTHER_FITS = re.compile(r"\b(?:sklearn|xgboost|lightgbm|statsmodels|scipy|hmmlearn)\b")
_OPTIONS = re.compile(
    r"\b(?:NpuOptimizer|npu_config_proto|npu_session_config|npu_run_config_init|NPURunConfig"
    r"|NPUEstimator|set_keras_session_npu_config|npu_clear_session|init_resource)\b"
)
_RUNS = re.compile(
    r"\.run\s*\(|Session\s*\(|\.fit\w*\s*\(|train_on_batch\s*\(|train_and_evaluate\s*\("
    r"|\.train\s*\("
)
"""Code that runs training rather than only building it."""
_TESTS = re.compile(r"(?:^|/)test_[^/]*\.py$|_test\.py$")
"""Tests open their own sessions, if they are run at all."""
_MAIN_GUARD = re.compile(r"^if\s+__name__\s*==", re.MULTILINE)
_NONE = Remark(
    en="the tree trains here, but none of its sessions, estimators or Keras models has the NPU "
    "options: training would stay on the CPU",
    zh="此处进行训练，但整个工程中没有任何会话、Estimator 或 Keras 模型带有 NPU 选项："
    "训练将停留在 CPU 上",
    todo_en="find where the session is opened: pass config=npu_config_proto() to tf.Session, "
    "config=npu_run_config_init(...) to an estimator, or call set_keras_session_npu_config() "
    "before a Keras model is built; also port the folder that contains that script",
    todo_zh="找到创建会话的位置：为 tf.Session 传入 config=npu_config_proto()，为 Estimator 传入 "
    "config=npu_run_config_init(...)，或在构建 Keras 模型之前调用 set_keras_session_npu_config()；"
    "并一并移植该脚本所在的目录",
    severity="blocking",
    confidence="likely",
)
_KERAS_SESSION = "keras-session"
_SET_SESSION = "set_keras_session_npu_config("
_SET_ABOVE = Text(
    en="a script that imports this module sets the Keras session at its beginning",
    zh="导入此模块的脚本已在开头设置 Keras 会话",
)
_MISSED = replace(
    _NONE,
    en="a script that is started on its own trains here; neither it nor its imports have the NPU "
    "options, although other scripts of the tree do: its training would stay on the CPU",
    zh="单独启动的脚本在此训练，而它及其导入的模块均未带有 NPU 选项（工程中其他脚本带有）："
    "该训练将停留在 CPU 上",
)


def with_unreached_training(
    reports: Mapping[str, FileReport], project: Project
) -> dict[str, FileReport]:
    """Add a blocking finding wherever training would run without the NPU options.

    Args:
        reports: The reports of all scripts of a tree, by path.
        project: The tree.
    """
    texts = {path: ported_text(report, path, project) for path, report in reports.items()}
    result = _without_set_sessions(reports, texts, project)
    keras = any(_KERAS.search(text) for text in texts.values())
    trains = {
        path: training
        for path, text in texts.items()
        if (training := _training(text, keras=keras)) is not None
    }
    if not trains:
        return result
    if not any(_OPTIONS.search(text) for text in texts.values()):
        # A lone script that only builds a train op is run by another script.
        path = next(iter(trains))
        if len(texts) > 1 or _RUNS.search(texts[path]):
            result[path] = _with_finding(result[path], texts[path], trains[path], _NONE)
        return result
    for path in _missed(texts, trains, project):
        result[path] = _with_finding(result[path], texts[path], trains[path], _MISSED)
    return result


def _without_set_sessions(
    reports: Mapping[str, FileReport], texts: Mapping[str, str], project: Project
) -> dict[str, FileReport]:
    """Drop the advice to set a Keras session where an importing script already sets it."""
    result = dict(reports)
    advised_paths = {
        path
        for path, report in reports.items()
        if any(finding.rule == _KERAS_SESSION for finding in report.findings)
    }
    starts = [path for path, text in texts.items() if _SET_SESSION in text]
    if not advised_paths or not starts:
        return result
    imports = import_graph(texts, project)
    covered_paths = {part for start in starts for part in reached(start, imports)} - set(starts)
    for path in advised_paths & covered_paths:
        report = reports[path]
        findings = [finding for finding in report.findings if finding.rule == _KERAS_SESSION]
        other_findings = tuple(finding for finding in report.findings if finding not in findings)
        kept_entries = [
            Kept(rule=finding.rule, place=finding.place, code=finding.code, reason=_SET_ABOVE)
            for finding in findings
        ]
        result[path] = replace(report, findings=other_findings, kept=(*report.kept, *kept_entries))
    return result


def _missed(
    texts: Mapping[str, str], trains: Mapping[str, tuple[int, str]], project: Project
) -> list[str]:
    """Return the training scripts of programs that lack the options in all their parts."""
    imports = import_graph(texts, project)
    imported_paths = {inner for inners in imports.values() for inner in inners}
    missed_paths: list[str] = []
    for path, text in texts.items():
        if (path in imported_paths and not _MAIN_GUARD.search(text)) or _TESTS.search(path):
            continue
        parts = reached(path, imports)
        training_parts = [part for part in parts if part in trains]
        runs = any(_RUNS.search(texts[part]) for part in parts)
        if training_parts and runs and not any(_OPTIONS.search(texts[part]) for part in parts):
            missed_paths += training_parts[:1]
    return list(dict.fromkeys(missed_paths))


def _with_finding(
    report: FileReport, text: str, training: tuple[int, str], remark: Remark
) -> FileReport:
    original = report.before.removeprefix("\ufeff") or text
    # The same line may have moved in the port; the call's text has not changed.
    start = original.find(training[1])
    finding = remark.finding(
        rule=WHOLE_TREE_RULE,
        place=Lines(original).place(max(start, 0)),
        place_after=Lines(text).place(training[0]),
        code=training[1],
        source="npu_init.py of Ascend/tensorflow",
    )
    return replace(report, findings=(finding, *report.findings))


def _training(text: str, *, keras: bool) -> tuple[int, str] | None:
    """Return the offset and the text of the first training call, if there is one."""
    match = _TRAINS.search(text) if _LIBRARY.search(text) else None
    if match is None and keras and not _OTHER_FITS.search(text):
        match = _FITS.search(text)
    return (match.start(1), match[1]) if match else None
