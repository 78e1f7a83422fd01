"""`jumar port`, `jumar port report` and `jumar port rules`."""

import dataclasses
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from jumar.errors import UserError
from jumar.host import checked_count
from jumar.paths import is_folder
from jumar.plain_text import print_plain

if TYPE_CHECKING:
    from jumar.porting.edits import TreeReport
    from jumar.porting.tree.additions import Additions
    from jumar.porting.tree.writing import Written

app = App(
    name="port",
    help="Rewrite TensorFlow 1.15 and PyTorch scripts for Ascend NPUs; check and lint them.",
)
app.command("jumar.cli.port_check:check", help="Run ported scripts on a CPU, beside the original.")
app.command("jumar.cli.port_lint:lint", help="Look for wrong NPU options in scripts.")

Flag = Annotated[bool, Parameter(negative=())]
JsonFlag = Annotated[bool, Parameter(name="--json", negative=())]
Reports = Annotated[tuple[Path, ...], Parameter(negative=(), consume_multiple=False)]
Lang = Literal["en", "zh"]

NAMES_SHOWN = 10


@app.default
def port(
    path: Path,
    /,
    *,
    to: Path | None = None,
    in_place: Flag = False,
    force: Flag = False,
    from_: Annotated[Literal["tensorflow", "torch"], Parameter(name="--from")] = "tensorflow",
    minimal: Flag = False,
    precision: str | None = None,
    mixlist: Path | None = None,
    loss_scale: str | None = None,
    devices: int = 1,
    profiling: Flag = False,
    overflow_dump: Flag = False,
    auto_tune: Flag = False,
    iterations_per_loop: int = 1,
    modelarts: Flag = False,
    entry: str = "",
    report: Reports = (),
    lang: Lang = "en",
    jobs: int | None = None,
    json_: JsonFlag = False,
    quiet: Flag = False,
    exit_code: Flag = False,
) -> int:
    """Show what porting to the NPU changes in a script or a tree; with --to or --in-place, do it.

    Everything that is not rewritten stays byte for byte. Links are never followed; .git is not
    copied.

    Parameters
    ----------
    path
        A script, or the folder of a project.
    to
        Write the ported tree to this folder, with copies of all other files; for a script, to
        this file or into this folder.
    in_place
        Change the scripts themselves, if git could give them back.
    force
        With --in-place, also where git could not.
    from_
        What the scripts use: tensorflow (1.15) or torch.
    minimal
        Only what a script needs to run on the NPU.
    precision
        A precision mode, such as allow_mix_precision.
    mixlist
        An op list (JSON) for the mixed precision modes; it is copied beside the scripts.
    loss_scale
        fixed:1024, or exponential:2**32,1000,2,0.5.
    devices
        How many NPUs; above 1 with rank table and launch script.
    profiling
        Profile the training.
    overflow_dump
        Dump operators that overflow.
    auto_tune
        Tune the operators.
    iterations_per_loop
        Training steps for each session run.
    modelarts
        Arguments and copies for training jobs on ModelArts.
    entry
        The script that starts training, for launch scripts; by default it is looked for.
    report
        Also write a report: .md, .json or .html; may be given several times.
    lang
        Language of summary and reports: en or zh.
    jobs
        Processes; by default one a processor.
    json_
        Print the report as JSON instead of diff and summary.
    quiet
        Print nothing but errors.
    exit_code
        Leave with 1 where something is or would be changed.
    """
    from jumar.porting.options import PortOptions, parse_loss_scale, precision_mode
    from jumar.porting.report.json_report import dumps
    from jumar.porting.report.saving import report_suffix, save_report
    from jumar.porting.tree.additions import additions
    from jumar.porting.tree.porting import port_tree

    _check(to, in_place, force, jobs)
    for each in report:
        report_suffix(each)
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
    ported = port_tree(path, options, jobs=jobs)
    added = additions(ported, path, options, entry=entry)
    ported = dataclasses.replace(ported, added=tuple(added.files))
    written = _write(ported, path, added.files, to=to, in_place=in_place, force=force)
    for each in report:
        save_report(ported, each, lang)
    if json_:
        print(dumps(ported))
    elif not quiet:
        _print(ported, added, written, lang, to=to)
    defects = [file for file in ported.files if file.defect]
    for file in defects:
        said = file.note.in_language(lang) if file.note else ""
        print_plain(f"jumar: {file.path}: {said}", sys.stderr)
    changes = bool(ported.count("ported") or added.files)
    return int(bool(defects) or (exit_code and changes))


def _check(to: Path | None, in_place: bool, force: bool, jobs: int | None) -> None:
    if to is not None and in_place:
        raise UserError("--to and --in-place at once", todo="Give one of them.")
    if force and not in_place:
        raise UserError("--force without --in-place", todo="Leave it away, or add --in-place.")
    if jobs is not None and jobs < 1:
        raise UserError(f"{jobs} processes", where="--jobs", todo="Give 1 or more.")
    checked_count(jobs or 1, "processes", "--jobs")


def _write(
    ported: "TreeReport",
    path: Path,
    added: Mapping[str, str],
    *,
    to: Path | None,
    in_place: bool,
    force: bool,
) -> "Written | None":
    if to is not None:
        from jumar.porting.tree.writing import write_tree

        return write_tree(ported, path, to, added)
    if in_place:
        from jumar.porting.tree.in_place import write_in_place

        return write_in_place(ported, path, added, force=force)
    return None


def _print(
    ported: "TreeReport",
    added: "Additions",
    written: "Written | None",
    lang: Lang,
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
        words = ["jumar", "port", "check", str(to), "--against", ported.root]
        next_command = shlex.join([*words, "--", added.entry])
    print_summary(ported, console, lang, next_command=next_command)
    for file in [file for file in ported.files if file.status == "unreadable"][:NAMES_SHOWN]:
        print_plain(f"{one_line(file.path)}: {file.note.in_language(lang) if file.note else ''}")
    english = lang == "en"
    lines = [
        ("added" if english else "新增", list(added.files)),
        ("kept, though other than ours" if english else "已有同名文件，保留原样", added.kept),
        ("written" if english else "已写入", [str(to or ported.root)] if written else []),
        ("left out" if english else "未复制", written.left_out if written else []),
    ]
    for said, names in lines:
        if names:
            shown = ", ".join(map(one_line, names[:NAMES_SHOWN]))
            print(f"{said}: {shown}{', …' if len(names) > NAMES_SHOWN else ''}")


@app.command(name="report")
def render(file: Path, /, *, to: Reports = (), lang: Lang = "en") -> int:
    """Write a report again, from its JSON: as Markdown or as a page, in the other language.

    Parameters
    ----------
    file
        A report that `jumar port --report FILE.json` wrote.
    to
        Where to: .md, .json or .html; may be given several times. Without, Markdown is printed.
    lang
        Language of the report: en or zh.
    """
    from jumar.porting.report.json_report import read_report
    from jumar.porting.report.markdown import markdown
    from jumar.porting.report.saving import report_suffix, save_report

    for each in to:
        report_suffix(each)
    found = read_report(file)
    for each in to:
        save_report(found, each, lang)
        print_plain(f"{'已写入' if lang == 'zh' else 'written'}: {each}")
    if not to:
        sys.stdout.write(markdown(found, lang))
    return 0


@app.command
def rules(
    *,
    from_: Annotated[Literal["tensorflow", "torch"] | None, Parameter(name="--from")] = None,
    lang: Lang = "en",
    json_: JsonFlag = False,
) -> int:
    """List the rules by which scripts are rewritten.

    Parameters
    ----------
    from_
        Only those for tensorflow, or for torch.
    lang
        Language of the titles: en or zh.
    json_
        Print JSON.
    """
    import json

    from jumar.porting.rewriting.registry import all_rules

    found = [rule for rule in all_rules() if from_ in (None, rule.language)]
    if json_:
        rows = [
            {
                "id": rule.id,
                "from": rule.language,
                "minimal": rule.minimal,
                "title": rule.title.in_language(lang),
                "source": rule.source,
            }
            for rule in found
        ]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    width = max((len(rule.id) for rule in found), default=0)
    for rule in found:
        print(f"{rule.id:{width}}  {rule.language:10}  {rule.title.in_language(lang)}")
    return 0
