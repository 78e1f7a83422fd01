"""Ports a whole tree, in several processes if it is large."""

import ast
import re
import traceback
import warnings
from dataclasses import replace
from pathlib import Path

from jumar import __version__
from jumar.ground.errors import UserError
from jumar.ground.machine import usable_cores
from jumar.ground.paths import is_file, is_folder
from jumar.ground.text import counted
from jumar.porting.edits import FileReport, Place, Remark, Text, TreeReport
from jumar.porting.options import PortOptions
from jumar.porting.python2.conversion import to_python3, with_python3_names
from jumar.porting.rewriting.concerned import rules_may_apply
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.rewriting.registry import rule_index
from jumar.porting.script.project import MAX_SCRIPT_BYTES, Project
from jumar.porting.script.source import SourceText, Unreadable, decode
from jumar.porting.tree.divisions import with_divisions
from jumar.porting.tree.imports import keras_through_imports
from jumar.porting.tree.other_framework import with_other_framework
from jumar.porting.tree.source_tree import SourceTree, as_tree
from jumar.porting.tree.unreached import with_unreached_training
from jumar.porting.tree.walking import Entry
from jumar.porting.tree.workers import in_processes

LONGEST_LINE = 1_000_000

SMALL_TREE = 400_000
"""Bytes of scripts that take less time to port than processes take to start."""

_LIBRARY_INDEPENDENT = ("python2-", "old-libraries")
"""Prefixes of the rules that also apply to a tree that uses neither library."""
_LIBRARY = {"tensorflow": "TensorFlow", "torch": "PyTorch"}


def port_tree(
    root: Path | SourceTree, options: PortOptions, *, jobs: int | None = None
) -> TreeReport:
    """Port every script of a folder, or a single one; nothing is written.

    Args:
        root: A folder, a script, or its tree as already read.
        options: The port's options.
        jobs: Number of processes; by default one per processor, and none for a small tree.

    Raises:
        UserError: The path does not exist, or contains no script that can be read.
    """
    tree = as_tree(root)
    scripts = tree.scripts
    if not scripts:
        raise _no_script(tree.root, tree.entries)
    # A bug in loading the rules shows up here, not once per script; forked processes inherit the
    # loaded rules.
    rule_index(options.source, options.minimal)
    tensorflow = options.source == "tensorflow"
    forced = keras_through_imports(scripts, tree.project) if tensorflow else frozenset[str]()
    port = ScriptPort(tree.project, options, forced)
    num_processes = jobs or usable_cores()
    small = sum(scripts.values()) <= SMALL_TREE and jobs in (None, 1)
    if small:
        reports = {path: port(path) for path in scripts}
    else:
        tree.project.read(scripts)
        finished = in_processes(port, scripts, processes=min(num_processes, len(scripts)))
        # They end in any order, but a finding about the whole tree is at the first script.
        reports = {path: finished[path] for path in scripts}
    if all(report.status == "unreadable" and not report.defect for report in reports.values()):
        raise _none_readable(tree.root, list(reports.values()))
    reports = _without_needless_conversion(reports, options)
    reports = with_divisions(reports, tree.project)
    if tensorflow:
        reports = with_unreached_training(reports, tree.project)
    reports = with_other_framework(reports, tree.project, options.source)
    return TreeReport(
        root=str(tree.root),
        files=tuple(
            reports[entry.path]
            if entry.kind == "script"
            else _not_a_script(tree.project, entry, options)
            for entry in tree.entries
            if entry.kind != "folder" and (entry.kind != "left out" or entry.note)
        ),
        options=options.as_typed(),
        version=__version__,
    )


class ScriptPort:
    """Ports the scripts of a tree one by one; instances are sent to worker processes.

    Args:
        project: The tree.
        options: The port's options.
        forced: Scripts to port even if their text does not mention the library.
    """

    def __init__(
        self, project: Project, options: PortOptions, forced: frozenset[str] = frozenset()
    ) -> None:
        self._options = options
        self._forced = forced
        self._project = project

    def __call__(self, path: str) -> FileReport:
        """Return the report of one script; never raises, so that no script can stop the port."""
        with warnings.catch_warnings():
            # Python warns of escapes such as '\d' in the scripts that it parses.
            warnings.simplefilter("ignore")
            try:
                return self._port(path)
            except Unreadable as error:
                return FileReport(path=path, status="unreadable", note=error.note)
            except OSError as error:
                return FileReport(
                    path=path,
                    status="unreadable",
                    note=Text(
                        en=f"cannot be read ({error.strerror}): left out of the copy",
                        zh=f"无法读取（{error.strerror}），未复制",
                    ),
                )
            except (RecursionError, MemoryError) as error:
                return FileReport(path=path, status="unreadable", note=_exhausted(error))
            except Exception as error:  # a bug in a rule, reported with the file that triggers it
                return FileReport(path=path, status="unreadable", note=_defect(error), defect=True)

    def _port(self, path: str) -> FileReport:
        source = decode(_size_checked(self._project.content(path)))
        is_forced = path in self._forced
        if not is_forced and not rules_may_apply(source, self._options):
            return _python2(source, path, self._project)
        return port_file(source, path, self._project, self._options, force=is_forced)


def _no_script(root: Path, entries: tuple[Entry, ...]) -> UserError:
    notebooks = [entry.shown for entry in entries if entry.path.endswith(".ipynb")]
    unreadable = [entry for entry in entries if entry.is_unreadable]
    what = "contains no Python script" if is_folder(root) else "is not a Python script"
    todo = "Specify a .py file, or a folder that contains some."
    if unreadable and is_file(root):
        what, todo = _reason(unreadable[0].note), "Check its permissions."
    elif notebooks:
        name = notebooks[0]
        todo = f"Convert the notebook first: jupyter nbconvert --to script {name}"
    elif is_file(root) and is_file(root.with_suffix(".py")):
        todo = f"Did you mean '{root.with_suffix('.py')}'?"
    elif unreadable:
        what = "contains no Python script that can be read"
        todo = f"{unreadable[0].shown}: {_reason(unreadable[0].note)}"
    return UserError(what, where=str(root), todo=todo)


def _none_readable(root: Path, reports: list[FileReport]) -> UserError:
    first = reports[0]
    if is_file(root):
        return UserError(
            f"cannot be ported: {_reason(first.note)}",
            where=str(root),
            todo="Nothing was written.",
        )
    return UserError(
        f"none of its {counted(len(reports), 'script')} can be ported",
        where=str(root),
        todo=f"{first.path}: {_reason(first.note)}\n  Nothing was written.",
    )


def _reason(note: Text | None) -> str:
    """Return a note without what becomes of the file in the copy, for an error without a copy."""
    return re.sub(r": (copied as it is|left out of the copy)$", "", note.en if note else "")


def _size_checked(content: bytes) -> bytes:
    """Return the bytes of a script.

    Raises:
        Unreadable: The script or one of its lines is too large.
    """
    if len(content) > MAX_SCRIPT_BYTES:
        raise Unreadable(
            Text(
                en=f"larger than {MAX_SCRIPT_BYTES // 1_000_000} MB: data rather than a script",
                zh=f"超过 {MAX_SCRIPT_BYTES // 1_000_000} MB：更像数据而不是脚本",
            )
        )
    if max(map(len, re.split(b"[\r\n]", content))) > LONGEST_LINE:
        raise Unreadable(
            Text(
                en=f"has a line of more than {LONGEST_LINE // 1_000_000} MB: data, not a script",
                zh=f"有超过 {LONGEST_LINE // 1_000_000} MB 的行：是数据而不是脚本",
            )
        )
    return content


def _exhausted(error: RecursionError | MemoryError) -> Text:
    if isinstance(error, RecursionError):
        return Text(en="too deeply nested to be read", zh="嵌套过深，无法读取")
    return Text(en="needs too much memory to be read", zh="读取所需内存过多")


def _defect(error: Exception) -> Text:
    innermost = traceback.extract_tb(error.__traceback__)[-1]
    location = f"{Path(innermost.filename).name}:{innermost.lineno}"
    description = f"{type(error).__name__}: {error} ({location})"
    return Text(
        en=f"a bug in jumar, please report it: {description}",
        zh=f"jumar 的缺陷，请反馈：{description}",
    )


def _python2(source: SourceText, path: str, project: Project) -> FileReport:
    """Return the report of a script with nothing to port, which may be Python 2."""
    try:
        tree = ast.parse(source.text)
    except SyntaxError as error:
        converted = to_python3(source.text)
        if converted is None:
            note = Text(
                en=f"is not Python 3: {error.msg} (line {error.lineno})",
                zh=f"不是 Python 3：{error.msg}（第 {error.lineno} 行）",
            )
            return FileReport(path=path, status="unreadable", note=note)
    else:
        converted = with_python3_names(
            source.text, tree, lambda name: project.find(name, path) is not None
        )
        if converted is None:
            return FileReport(path=path, status="unchanged")
    is_changed = converted.text != source.text
    mark = "\ufeff" if source.bom else ""
    return FileReport(
        path=path,
        status="ported" if is_changed else "unchanged",
        edits=converted.edits,
        findings=converted.findings,
        before=f"{mark}{source.text}" if is_changed else "",
        after=f"{mark}{converted.text}" if is_changed else "",
    )


def _without_needless_conversion(
    reports: dict[str, FileReport], options: PortOptions
) -> dict[str, FileReport]:
    """Undo conversions from Python 2 in a tree that has nothing else to port."""
    if any(
        not item.rule.startswith(_LIBRARY_INDEPENDENT)
        for report in reports.values()
        for item in (*report.edits, *report.findings, *report.kept)
    ):
        return reports
    library = _LIBRARY[options.source]
    note = Text(
        en=f"Python 2: left as it is, since nothing in the tree uses {library}",
        zh=f"Python 2 源码；此处未使用 {library}，保持原样",
    )
    return {
        path: FileReport(path=path, status="unreadable", note=note)
        if report.status == "ported" and not _parses(report.before)
        else replace(report, status="unchanged", edits=(), findings=(), before="", after="")
        if report.status == "ported" or report.findings
        else report
        for path, report in reports.items()
    }


def _parses(text: str) -> bool:
    try:
        ast.parse(text.removeprefix("\ufeff"))
    except SyntaxError:
        return False
    return True


def _not_a_script(project: Project, entry: Entry, options: PortOptions) -> FileReport:
    status = "unreadable" if entry.kind == "left out" else "copied"
    report = FileReport(path=entry.shown, status=status, note=entry.note)
    if entry.kind != "file" or not entry.path.endswith(".ipynb") or entry.size > MAX_SCRIPT_BYTES:
        return report
    try:
        content = project.content(entry.path)
    except OSError:
        return report
    if options.source.encode() not in content:
        return report
    start = Place(line=1, column=1)
    remark = Remark(
        en=f"This notebook uses {_LIBRARY[options.source]}, but only scripts are ported.",
        zh=f"使用 {_LIBRARY[options.source]} 的 notebook；只移植脚本。",
        todo_en="Convert it first: jupyter nbconvert --to script FILE",
        todo_zh="先转换为脚本：jupyter nbconvert --to script FILE",
        severity="blocking",
    )
    finding = remark.finding(
        rule="notebook", place=start, place_after=start, code=entry.shown, source="jumar"
    )
    return replace(report, findings=(finding,))
