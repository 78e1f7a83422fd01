"""Says which scripts of a tree use the framework that a port is not for."""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from jumar.porting.edits import FileReport, Remark
from jumar.porting.rewriting.registry import Language
from jumar.porting.script.expressions import imported_names
from jumar.porting.script.module import parsed_or_none
from jumar.porting.script.nodes import walk
from jumar.porting.script.project import Project
from jumar.porting.script.source import Lines, Unreadable, decode
from jumar.porting.tree.imports import ported_text


@dataclass(frozen=True, kw_only=True)
class _Framework:
    """How a framework's scripts are recognised.

    Args:
        library: The library whose import a finding is about.
        family: Packages whose scripts a port for it may rewrite.
        npu: What a script imports that has been ported.
    """

    library: str
    family: tuple[str, ...]
    npu: str


_FRAMEWORKS: dict[Language, _Framework] = {
    "tensorflow": _Framework(
        library="tensorflow",
        family=("tensorflow", "keras", "horovod", "tf_slim", "npu_bridge"),
        npu="npu_bridge",
    ),
    "torch": _Framework(
        library="torch",
        family=("torch", "torch_npu", "torchvision", "pytorch_lightning", "lightning"),
        npu="torch_npu",
    ),
}
_RULE = "other-framework"
_SOURCE = "jumar port --help"
_NONE = Remark(
    en="{scripts} {other} and none imports {own}, which this port is for",
    zh="{count} 个脚本导入了 {other}，没有脚本导入 {own}，而本次移植针对 {own}",
    todo_en="port again with --from {other}",
    todo_zh="改用 --from {other} 重新移植",
    severity="blocking",
)
_SOME = replace(
    _NONE,
    en="{scripts} {other} and not {own}: this port does not change that code",
    zh="{count} 个脚本导入了 {other} 而未导入 {own}：本次移植不改动其中的 {other} 代码",
    todo_en="if they have to run on the NPU, port them as well, with --from {other}",
    todo_zh="若它们也要在 NPU 上运行，请再用 --from {other} 移植",
    severity="look",
)


def with_other_framework(
    reports: Mapping[str, FileReport], project: Project, source: Language
) -> dict[str, FileReport]:
    """Add one finding, at the first import, if scripts need a port from the other framework.

    Args:
        reports: The reports of all scripts of a tree, by path.
        project: The tree.
        source: The framework of the port.
    """
    result = dict(reports)
    own = _FRAMEWORKS[source]
    other_name: Language = "torch" if source == "tensorflow" else "tensorflow"
    other = _FRAMEWORKS[other_name]
    texts = {path: _original(report, path, project) for path, report in reports.items()}
    starts = {
        path: place
        for path, text in texts.items()
        if (place := _import_place(text, (other.library,))) is not None
        and _import_place(text, (*own.family, other.npu)) is None
        and not (project.find(other.library, path) or "").endswith(".py")
    }
    if not starts:
        return result
    count = len(starts)
    is_mixed = any(_import_place(text, own.family) is not None for text in texts.values())
    remark = (_SOME if is_mixed else _NONE).filled(
        scripts="1 script imports" if count == 1 else f"{count:,} scripts import",
        count=f"{count:,}",
        other=other.library,
        own=own.library,
    )
    path, (offset, code) = next(iter(starts.items()))
    after = ported_text(reports[path], path, project)
    moved = after.find(code)
    finding = remark.finding(
        rule=_RULE,
        place=Lines(texts[path]).place(offset),
        place_after=Lines(after).place(moved) if moved >= 0 else None,
        code=code,
        source=_SOURCE,
    )
    result[path] = replace(reports[path], findings=(finding, *reports[path].findings))
    return result


def _original(report: FileReport, path: str, project: Project) -> str:
    """The text of a script before the port; empty if it cannot be read."""
    if report.status == "unreadable":
        return ""
    try:
        return decode(project.content(path)).text
    except (OSError, Unreadable):
        return ""


def _import_place(text: str, libraries: tuple[str, ...]) -> tuple[int, str] | None:
    """The offset and text of the first import of a library in code, not in a string."""
    names = "|".join(libraries)
    # Parsing all scripts would take as long as porting them.
    match = re.search(rf"(?m)^[ \t]*((?:from|import)[ \t][^\n]*\b(?:{names})\b[^\n]*)", text)
    if match is None:
        return None
    tree = parsed_or_none(text)
    if tree is None:
        return match.start(1), match[1].strip()
    imports = [
        node
        for node in walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        and any(name.partition(".")[0] in libraries for name in imported_names(node))
    ]
    if not imports:
        return None
    first = min(imports, key=lambda node: node.lineno)
    lines = Lines(text)
    start = lines.offset(first.lineno, first.col_offset)
    return start, text[start : lines.line_end(start)].strip()
