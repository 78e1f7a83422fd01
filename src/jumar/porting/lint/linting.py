"""Checks the options, arguments and names in scripts that already use npu_bridge.

Nothing is changed and nothing is run.
"""

import os
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.paths import is_file, is_folder, missing, unreadable
from jumar.porting.edits import FileReport, Finding, Text, TreeReport
from jumar.porting.lint.blocks import find_blocks, lint_blocks
from jumar.porting.lint.calls import lint_calls
from jumar.porting.lint.names import lint_names
from jumar.porting.lint.overridden import lint_overridden
from jumar.porting.lint.rewriters import lint_rewriters
from jumar.porting.script.project import MAX_SCRIPT_BYTES, Project
from jumar.porting.script.source import Unreadable, decode

_MARKS = (
    "npu_",
    "NPU",
    "hccl",
    "parameter_map",
    "custom_optimizers",
    "LossScaleManager",
    "RANK_",
    "DEVICE_ID",
)
"""A script without any of these, such as most scripts of a tree, has nothing to check."""


def lint_source(path: str, text: str, *, project: Project | None = None) -> tuple[Finding, ...]:
    """Return the findings about a script's use of npu_bridge, in source order.

    Args:
        path: The path of the script within its tree, with forward slashes.
        text: The source of the script.
        project: The tree, to resolve names that other modules of it define.

    Raises:
        SyntaxError: Python 3 cannot parse the script.
    """
    if not any(mark in text for mark in _MARKS):
        return ()
    module = (project or Project(Path(os.devnull))).parsed(text, path)
    blocks = find_blocks(module)
    findings = [
        *lint_blocks(module, blocks),
        *lint_calls(module),
        *lint_names(module),
        *lint_overridden(module, blocks),
        *lint_rewriters(module, blocks),
    ]
    return tuple(sorted(findings, key=lambda item: (item.place, item.rule)))


def lint_tree(root: Path) -> TreeReport:
    """Return the findings about a script, or about all scripts of a folder.

    Links are not followed, and hidden folders are skipped. For a script that cannot be read or
    parsed, the report contains the reason.

    Raises:
        UserError: The path does not exist, or contains no script that can be read.
    """
    if is_file(root):
        folder, paths, closed = root.parent, [root.name], []
    elif is_folder(root):
        folder, (paths, closed) = root, _scripts(root)
    else:
        raise missing(root, more="Specify a Python file or a folder.")
    project = Project(folder)
    files = [_lint_file(path, project) for path in paths] + closed
    if all(file.status == "unreadable" for file in files):
        raise _nothing_read(root, files)
    return TreeReport(root=str(root), files=tuple(sorted(files, key=lambda file: file.path)))


def _scripts(root: Path) -> tuple[list[str], list[FileReport]]:
    """The scripts of a folder, and the folders in it that cannot be read."""
    scripts: list[str] = []
    closed: list[FileReport] = []

    def record(error: OSError) -> None:
        if Path(error.filename) == root:
            raise unreadable(root, error) from error
        path = Path(error.filename).relative_to(root).as_posix()
        closed.append(FileReport(path=path, status="unreadable", note=_unreadable_note(error)))

    for folder, folders, names in os.walk(root, onerror=record, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        within = Path(folder).relative_to(root)
        scripts += [
            (within / name).as_posix()
            for name in names
            if name.endswith(".py") and not (Path(folder) / name).is_symlink()
        ]
    return scripts, closed


def _nothing_read(root: Path, files: list[FileReport]) -> UserError:
    """The error for a path of which nothing was checked, which must not pass for a clean one."""
    if not files:
        todo = "Specify a Python file, or a folder that contains some."
        return UserError("contains no Python script", where=str(root), todo=todo)
    first = files[0]
    reason = first.note.en if first.note else "cannot be read"
    if is_file(root):
        return UserError(f"nothing was checked: {reason}", where=str(root))
    return UserError(
        f"nothing was checked, since none of {len(files)} scripts and folders can be read"
        if len(files) > 1
        else "nothing was checked, since its only script or folder cannot be read",
        where=str(root),
        todo=f"{first.path}: {reason}",
    )


def _unreadable_note(error: OSError) -> Text:
    return Text(en=f"cannot be read: {error.strerror}", zh=f"无法读取：{error.strerror}")


def _lint_file(path: str, project: Project) -> FileReport:
    try:
        content = project.content(path)
        if len(content) > MAX_SCRIPT_BYTES:
            raise Unreadable(Text(en="larger than 5 MB", zh="超过 5 MB"))
        text = decode(content).text
        return FileReport(
            path=path, status="unchanged", findings=lint_source(path, text, project=project)
        )
    except Unreadable as unreadable:
        note = unreadable.note
    except OSError as error:
        note = _unreadable_note(error)
    except SyntaxError as error:
        note = Text(
            en=f"Python 3 cannot parse line {error.lineno}: {error.msg}",
            zh=f"Python 3 无法解析第 {error.lineno} 行：{error.msg}",
        )
    except (ValueError, RecursionError, MemoryError) as error:
        note = Text(en=f"cannot be parsed: {error}", zh=f"无法解析：{error}")
    return FileReport(path=path, status="unreadable", note=note)
