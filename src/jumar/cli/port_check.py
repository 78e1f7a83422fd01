"""`jumar port check`."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from jumar.cli.options import JsonFlag, Token
from jumar.ground.errors import UserError
from jumar.ground.text import Language, plain_text


def check(
    ported: Path,
    /,
    *script: Token,
    against: Path | None = None,
    python: Path | None = None,
    make_env: Path | None = None,
    steps: int = 5,
    seed: int = 1,
    tolerance: float = 1e-5,
    timeout: Annotated[str, Parameter(metavar="DURATION")] = "10min",
    json_: Annotated[JsonFlag, Parameter(help="Print the report as JSON.")] = False,
    report: Path | None = None,
    lang: Language = "en",
) -> int:
    """Run a ported script on a CPU with TensorFlow 1.15, stage by stage, next to the original.

    The script and its arguments follow at the end, after `--`:
    `jumar port check OUT --against ORIGINAL -- train.py --batch_size 2`. The exit code is 1
    if a stage fails.

    Parameters
    ----------
    ported
        The folder of the ported project, which is not changed.
    script
        The script, relative to the folder, with its arguments; `NAME=value` before it sets an
        environment variable.
    against
        The folder of the original, to compare the losses of each step.
    python
        A Python 3.7 with TensorFlow 1.15, as a path or a command on PATH; by default
        JUMAR_TF115_PYTHON, `python3.7`, or pyenv's, whichever is found first.
    make_env
        Create a virtual environment with TensorFlow 1.15 in this folder, or use the one in it.
    steps
        Number of training steps to run.
    seed
        Random seed of both scripts.
    tolerance
        Largest relative difference between losses that count as equal.
    timeout
        Time limit of each script, such as 90s, 10min or 1h.
    report
        Also write the report to this file, as JSON if it ends in .json, else as Markdown.
    lang
        Language of the report, printed and written.
    """
    from jumar.porting.check.checking import CheckRequest, run_check
    from jumar.porting.check.durations import seconds_of
    from jumar.porting.check.interpreter import find_interpreter
    from jumar.porting.check.output import write_report
    from jumar.porting.check.show import as_json, as_lines
    from jumar.porting.check.side import read_command
    from jumar.porting.check.workspace import find_script

    command = read_command(script)
    if command is None:
        raise UserError(
            "the script is missing",
            where="-- SCRIPT",
            todo="Add it at the end of the command, for instance: -- train.py --batch_size 2",
        )
    for folder in filter(None, (ported, against)):  # both now, instead of one minutes later
        find_script(folder, command.script, module=command.module)
    request = CheckRequest(
        ported=ported,
        original=against,
        command=command,
        interpreter=find_interpreter(python=python, make_env=make_env, environment=os.environ),
        steps=steps,
        seed=seed,
        timeout_s=seconds_of(timeout, where="--timeout"),
        timeout=timeout,
        tolerance=tolerance,
    )
    result = run_check(request, say=lambda text: _print_progress(text.in_language(lang)))
    if report is not None:
        write_report(result, report, lang)
    if json_:
        sys.stdout.write(as_json(result, lang))
    else:
        _print(as_lines(result, lang))
    return 0 if result.passed else 1


def _print(lines: Iterable[str]) -> None:
    """Print the report; on a terminal, the verdicts of the stages are coloured."""
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, soft_wrap=True, highlight=False)
    styles = {
        **dict.fromkeys(("pass", "通过"), "green"),
        **dict.fromkeys(("FAIL", "失败"), "bold red"),
        **dict.fromkeys(("ignored option", "被忽略的选项"), "yellow"),
    }
    for line in lines:
        text = Text(plain_text(line, keep="\n\t"))
        for word, style in styles.items():
            if line.startswith(word):
                text.stylize(style, 0, len(word))
        console.print(text)


def _print_progress(text: str) -> None:
    """Print progress to a terminal, not to files and pipes."""
    if sys.stderr.isatty():
        print(f"{text} ...", file=sys.stderr)
