"""A tree that trains while nothing in it carries the NPU's options: it would stay on the CPU."""

import re
from collections.abc import Mapping
from dataclasses import replace

from jumar.porting.edits import OF_THE_TREE, FileReport, Finding, Text
from jumar.porting.script.project import Project
from jumar.porting.script.source import Lines, Unreadable, decode

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
_REASON = Text(
    en="the tree trains here, but no session, estimator or Keras model in it carries the NPU's "
    "options: training would stay on the CPU",
    zh="此处进行训练，但整个工程中没有任何会话、Estimator 或 Keras 模型带有 NPU 选项："
    "训练将停留在 CPU 上",
)
_ADVICE = Text(
    en="find where the session is opened: pass config=npu_config_proto() to tf.Session, "
    "config=npu_run_config_init(...) to an estimator, or call set_keras_session_npu_config() "
    "before a Keras model is built; port the folder that holds that script as well",
    zh="找到创建会话的位置：为 tf.Session 传入 config=npu_config_proto()，为 Estimator 传入 "
    "config=npu_run_config_init(...)，或在构建 Keras 模型之前调用 set_keras_session_npu_config()；"
    "并一并移植该脚本所在的目录",
)


def with_unreached_training(
    reports: Mapping[str, FileReport], project: Project
) -> dict[str, FileReport]:
    """The reports, with one blocking finding if something trains and nothing has the options.

    Args:
        reports: Those of all scripts of a tree, by path.
        project: The tree.
    """
    texts = {path: _text(report, path, project) for path, report in reports.items()}
    result = dict(reports)
    if any(_OPTIONS.search(text) for text in texts.values()):
        return result
    keras = any(_KERAS.search(text) for text in texts.values())
    for path, text in texts.items():
        training = _training(text, keras=keras)
        if training is not None:
            report = reports[path]
            original = report.before.removeprefix("\ufeff") or text
            # The same line may have moved in the port; the call's text has not changed.
            start = original.find(training[1])
            finding = Finding(
                rule=OF_THE_TREE,
                place=Lines(original).place(max(start, 0)),
                place_after=Lines(text).place(training[0]),
                code=training[1],
                reason=_REASON,
                todo=_ADVICE,
                severity="blocking",
                confidence="likely",
                source="npu_init.py of Ascend/tensorflow",
            )
            result[path] = replace(report, findings=(finding, *report.findings))
            break
    return result


def _training(text: str, *, keras: bool) -> tuple[int, str] | None:
    """The first call that trains: its offset and its beginning."""
    match = _TRAINS.search(text) if _LIBRARY.search(text) else None
    if match is None and keras and not _OTHER_FITS.search(text):
        match = _FITS.search(text)
    return (match.start(1), match[1]) if match else None


def _text(report: FileReport, path: str, project: Project) -> str:
    """The ported text of a script, or its own; nothing where it cannot be read."""
    if report.after or report.status == "unreadable":
        return report.after.removeprefix("\ufeff")
    try:
        return decode(project.content(path)).text
    except (OSError, Unreadable):
        return ""
