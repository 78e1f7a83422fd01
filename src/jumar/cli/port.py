"""`jumar port`, `jumar port report` and `jumar port rules`."""

import dataclasses
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Group, Parameter

from jumar.cli.counts import check_count
from jumar.cli.options import OPTIONS, JsonFlag
from jumar.ground.errors import UserError
from jumar.ground.machine import checked_count
from jumar.ground.paths import is_folder
from jumar.ground.text import Language, print_aside, print_plain

if TYPE_CHECKING:
    from jumar.cli.port_interrupted import Progress
    from jumar.porting.edits import FileReport, TreeReport
    from jumar.porting.options import PortOptions
    from jumar.porting.tree.additions import Additions
    from jumar.porting.tree.source_tree import SourceTree
    from jumar.porting.tree.writing import Written

app = App(
    name="port",
    help="Port TensorFlow 1.15 and PyTorch scripts to Ascend NPUs; check and lint them.",
    usage="Usage: jumar port [OPTIONS] PATH\n       jumar port COMMAND",
    group_parameters=OPTIONS,
)
app.command(
    "jumar.cli.port_check:check",
    help="Run a ported script on a CPU and compare it with the original.",
    usage="Usage: jumar port check [OPTIONS] PORTED -- SCRIPT [ARGUMENTS...]",
)
app.command("jumar.cli.port_lint:lint", help="Check scripts for invalid NPU options.")

Reports = tuple[Path, ...]
Framework = Literal["tensorflow", "torch"]

_PORTED = Parameter(group=Group("Extent of the port", sort_key=1))
_TRAINING = Parameter(group=Group("Training with the ported scripts", sort_key=2))
_WRITTEN = Parameter(group=Group("Output", sort_key=3))

_MAX_NAMED = 10


@app.default
def port(
    path: Path,
    /,
    *,
    to: Annotated[Path | None, _WRITTEN] = None,
    in_place: Annotated[bool, _WRITTEN] = False,
    force: Annotated[bool, _WRITTEN] = False,
    from_: Annotated[Framework, Parameter(name="--from"), _PORTED] = "tensorflow",
    minimal: Annotated[bool, _PORTED] = False,
    precision: Annotated[str | None, Parameter(metavar="MODE"), _TRAINING] = None,
    mixlist: Annotated[Path | None, _TRAINING] = None,
    loss_scale: Annotated[str | None, Parameter(metavar="SCALE"), _TRAINING] = None,
    devices: Annotated[int, _TRAINING] = 1,
    profiling: Annotated[bool, _TRAINING] = False,
    overflow_dump: Annotated[bool, _TRAINING] = False,
    auto_tune: Annotated[bool, _TRAINING] = False,
    iterations_per_loop: Annotated[int, _TRAINING] = 1,
    modelarts: Annotated[bool, _PORTED] = False,
    entry: Annotated[str, Parameter(metavar="SCRIPT"), _PORTED] = "",
    report: Reports = (),
    lang: Language = "en",
    jobs: int | None = None,
    json_: Annotated[
        JsonFlag,
        Parameter(help="Print the report as JSON instead of the diff and the summary."),
    ] = False,
    quiet: bool = False,
    exit_code: bool = False,
) -> int:
    """Port a script or a project to the NPU: show the changes, or write them (--to, --in-place).

    Everything else in the scripts stays the same, byte for byte. Symbolic links are never followed;
    .git is not copied.

    Parameters
    ----------
    path
        A script, or the folder of a project.
    to
        Write the ported project to this folder, with copies of all other files, or a single script
        to this file or folder.
    in_place
        Change the scripts themselves, provided that git can restore them.
    force
        Allow --in-place even if git cannot restore them.
    from_
        The framework of the scripts; tensorflow means 1.15.
    minimal
        Only change code that prevents a script from running on the NPU.
    precision
        Precision mode, such as allow_mix_precision.
    mixlist
        modify_mixlist file (JSON) for the mixed precision modes; it is copied beside the scripts.
    loss_scale
        fixed:SCALE, such as fixed:1024; or exponential:SCALE,STEPS,OVERFLOWS,FACTOR, such as
        exponential:2**32,1000,2,0.5: doubled after STEPS steps without overflow, multiplied by
        FACTOR after OVERFLOWS overflows.
    devices
        Number of NPUs; above 1 a rank table and a launch script are added.
    profiling
        Turn on profiling.
    overflow_dump
        Turn on the overflow dump: ops that overflow are written to files.
    auto_tune
        Turn on auto-tuning of operators.
    iterations_per_loop
        Number of training steps per session run.
    modelarts
        Add the arguments and file transfers of training jobs on ModelArts.
    entry
        The script that starts training, for launch scripts; by default it is detected.
    report
        Also write a report, as .md, .json or .html; may be repeated.
    lang
        Language of summary and reports.
    jobs
        Number of processes; by default one per processor.
    quiet
        Print errors only.
    exit_code
        Exit with 1 if anything is or would be changed.
    """
    from jumar.cli.port_interrupted import until_interrupted
    from jumar.porting.options import PortOptions, parse_loss_scale, precision_mode
    from jumar.porting.report.saving import report_suffix

    _check(to, in_place, force, jobs)
    for report_path in report:
        report_suffix(report_path)
    options = PortOptions(
        source=from_,
        minimal=minimal,
        precision=precision_mode(precision) if precision else None,
        mixlist=str(mixlist) if mixlist else "",
        loss_scale=parse_loss_scale(loss_scale) if loss_scale else None,
        devices=devices,
        profiling=profiling,
        overflow_dump=overflow_dump,
        auto_tune=auto_tune,
        iterations_per_loop=iterations_per_loop,
        modelarts=modelarts,
    )
    output = _Output(
        to=to,
        in_place=in_place,
        force=force,
        reports=report,
        lang=lang,
        json=json_,
        quiet=quiet,
        exit_code=exit_code,
    )
    return until_interrupted(
        lambda progress: _port(path, options, output, progress, entry=entry, jobs=jobs)
    )


@dataclass(frozen=True, kw_only=True)
class _Output:
    """What is written where, and printed."""

    to: Path | None
    in_place: bool
    force: bool
    reports: Reports
    lang: Language
    json: bool
    quiet: bool
    exit_code: bool


def _port(
    path: Path,
    options: "PortOptions",
    output: _Output,
    progress: "Progress",
    *,
    entry: str,
    jobs: int | None,
) -> int:
    from jumar.porting.report.json_report import dumps
    from jumar.porting.report.saving import save_report
    from jumar.porting.tree.additions import additions
    from jumar.porting.tree.porting import port_tree
    from jumar.porting.tree.source_tree import SourceTree

    tree = SourceTree(path)
    ported = port_tree(tree, options, jobs=jobs)
    added = additions(ported, tree, options, entry=entry)
    ported = dataclasses.replace(ported, added=tuple(added.files))
    written = _write(ported, tree, added.files, output, progress)
    for report_path in output.reports:
        save_report(ported, report_path, output.lang)
        progress.note(report_path)
    if output.json:
        print(dumps(ported))
    elif not output.quiet:
        _print(ported, added, written, output.lang, to=output.to)
    defects = [file for file in ported.files if file.defect]
    for file in defects:
        note = file.note.in_language(output.lang) if file.note else ""
        print_aside(f"jumar: {file.path}: {note}")
    changes = bool(ported.count("ported") or added.files)
    return int(bool(defects) or (output.exit_code and changes))


def _check(to: Path | None, in_place: bool, force: bool, jobs: int | None) -> None:
    if to is not None and in_place:
        raise UserError("--to and --in-place cannot be combined", todo="Use one of them.")
    if force and not in_place:
        raise UserError("--force requires --in-place", todo="Omit it, or add --in-place.")
    if jobs is not None:
        check_count(jobs, "--jobs")
        checked_count(jobs, "processes", "--jobs")


def _write(
    ported: "TreeReport",
    tree: "SourceTree",
    added: Mapping[str, str],
    output: _Output,
    progress: "Progress",
) -> "Written | None":
    if output.to is not None:
        from jumar.porting.tree.writing import write_tree

        done = partial(progress.note, output.to)
        return write_tree(ported, tree, output.to, added, done=done)
    if output.in_place:
        from jumar.porting.tree.in_place import write_in_place

        done = partial(progress.note, tree.root)
        return write_in_place(ported, tree, added, force=output.force, done=done)
    return None


def _print(
    ported: "TreeReport",
    added: "Additions",
    written: "Written | None",
    lang: Language,
    *,
    to: Path | None,
) -> None:
    from rich.console import Console

    from jumar.porting.report.showing import one_line
    from jumar.porting.report.terminal import command_to_write, print_diff, print_summary

    console = Console(file=sys.stdout)
    if written is None:
        print_diff(ported, console)
    next_command = ""
    if written is None and ported.count("ported"):
        next_command = command_to_write(ported)
    elif to and is_folder(to) and added.entry and "torch" not in ported.options:
        # A script that was ported alone is checked against the folder that contains it.
        original = Path(ported.root)
        folder = original if is_folder(original) else original.parent
        words = ["jumar", "port", "check", str(to), "--against", str(folder)]
        next_command = shlex.join([*words, "--", added.entry])
    print_summary(ported, console, lang, next_command=next_command)
    english = lang == "en"
    colon = ": " if english else "："
    for file in _unreadable(ported)[:_MAX_NAMED]:
        note = file.note.in_language(lang) if file.note else ""
        print_plain(f"{one_line(file.path)}{colon}{note}")
    lines = [
        ("added" if english else "新增", list(added.files)),
        ("kept existing files that differ" if english else "已有同名文件，保留原样", added.kept),
        ("written" if english else "已写入", [str(to or ported.root)] if written else []),
        ("left out" if english else "未复制", written.left_out if written else []),
    ]
    for label, names in lines:
        if names:
            names_text = ", ".join(map(one_line, names[:_MAX_NAMED]))
            print(f"{label}{colon}{names_text}{', …' if len(names) > _MAX_NAMED else ''}")


def _unreadable(ported: "TreeReport") -> list["FileReport"]:
    """Return the unreadable scripts, without those already printed as errors of jumar itself."""
    return [file for file in ported.files if file.status == "unreadable" and not file.defect]


@app.command(name="report")
def render(file: Path, /, *, to: Reports = (), lang: Language = "en") -> int:
    """Convert a JSON report to Markdown or HTML, in either language.

    Parameters
    ----------
    file
        A report written by `jumar port --report FILE.json`.
    to
        File to write, as .md, .json or .html; may be repeated. By default Markdown is printed.
    lang
        Language of the report.
    """
    from jumar.porting.report.json_report import read_report
    from jumar.porting.report.markdown import markdown
    from jumar.porting.report.saving import report_suffix, save_report

    for path in to:
        report_suffix(path)
    report = read_report(file)
    for path in to:
        save_report(report, path, lang)
        print_plain(f"{'已写入：' if lang == 'zh' else 'written: '}{path}")
    if not to:
        sys.stdout.write(markdown(report, lang))
    return 0


@app.command
def rules(
    *,
    from_: Annotated[Framework | None, Parameter(name="--from")] = None,
    lang: Language = "en",
    json_: JsonFlag = False,
) -> int:
    """List the rules that rewrite scripts.

    Parameters
    ----------
    from_
        Only the rules for this framework.
    lang
        Language of the titles.
    """
    import json

    from jumar.porting.rewriting.registry import all_rules

    selected_rules = [rule for rule in all_rules() if from_ in (None, rule.language)]
    if json_:
        rows = [
            {
                "id": rule.id,
                "from": rule.language,
                "minimal": rule.minimal,
                "title": rule.title.in_language(lang),
                "source": rule.source,
            }
            for rule in selected_rules
        ]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    width = max((len(rule.id) for rule in selected_rules), default=0)
    for rule in selected_rules:
        print(f"{rule.id:{width}}  {rule.language:10}  {rule.title.in_language(lang)}")
    return 0
