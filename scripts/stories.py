"""Run every command of the stories, and write one page with what they print and draw.

Each story runs in a folder of its own, as if that were a checkout, from its first command to its
last. A command that fails costs no other command its turn: all failures are listed in the end, and
the exit code is then 1.
"""

import argparse
import base64
import html
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.documents import PROGRAMS, Command, WrittenFile, read

CHECKOUT = Path(__file__).resolve().parents[1]
FOLDER = Path("runs/stories")
NAMES = ("homework", "delivery", "contest", "table")
LIMIT_S = 900
"""Ends what hangs."""
VARIABLE = "JUMAR_STORIES"
"""Set here and nowhere else: `run: with JUMAR_STORIES` is what the tests have no time for."""

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem }
pre { background: #f4f4f4; overflow-x: auto; padding: .6rem; font-size: 13px; max-height: 34rem }
pre.failed { border-left: 4px solid #c00 }
code { font-weight: 600 } img { max-width: 100%; image-rendering: pixelated; display: block }
small { color: #666; font-weight: 400 }
"""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A command that ran, or was left out."""

    command: Command
    heading: str
    state: str
    """`ok`, `left out: WHY` or `FAILED: WHY`."""
    printed: str
    seconds: float
    pictures: Sequence[Path]


def main() -> int:
    """Run the stories of the command line; the exit code is 1 if a command failed."""
    parser = argparse.ArgumentParser(description="Run the stories of docs/stories.")
    parser.add_argument("names", nargs="*", metavar="STORY", help=", ".join(NAMES))
    names = parser.parse_args().names or list(NAMES)
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        parser.error(f"no story is called {unknown[0]}; there are {', '.join(NAMES)}")
    if not (CHECKOUT.parent / "shared").is_dir():
        parser.error(
            f"the stories need the reference data: {CHECKOUT.parent / 'shared'} is missing"
        )
    outcomes: dict[str, list[Outcome]] = {}
    try:
        for name in names:
            outcomes[name] = []
            tell_story(name, outcomes[name])
    except KeyboardInterrupt:
        print("\ninterrupted; the page has what was finished", file=sys.stderr)
        write_page(outcomes)
        return 130
    return summarise(outcomes, write_page(outcomes))


def tell_story(name: str, outcomes: list[Outcome]) -> None:
    """Run a story's commands in their order, and add what became of each."""
    document = f"docs/stories/{name}.md"
    steps = read(CHECKOUT / document, document)
    lines = (CHECKOUT / document).read_text(encoding="utf-8").splitlines()
    folder = CHECKOUT / FOLDER / name / "jumar"
    # Commands do not write over what an earlier call left, so each call begins with nothing.
    shutil.rmtree(folder.parent, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder.parent / "shared").symlink_to(CHECKOUT.parent / "shared")
    commands = sum(isinstance(step, Command) for step in steps)
    number = 0
    for step in steps:
        if isinstance(step, WrittenFile):
            (folder / step.name).parent.mkdir(parents=True, exist_ok=True)
            (folder / step.name).write_text(step.text, encoding="utf-8")
            continue
        number += 1
        print(f"{name} {number}/{commands}  $ {shlex.join(step.words)}", flush=True)
        outcome = run(step, folder, heading_above(lines, step.line))
        print(f"    {outcome.state}, {outcome.seconds:.1f} s", flush=True)
        outcomes.append(outcome)


def run(command: Command, folder: Path, heading: str) -> Outcome:
    """Execute a command in a story's folder."""
    state, printed, seconds = left_out(command), "", 0.0
    if not state:
        program, *arguments = command.words
        words = [*PROGRAMS.get(program, (program,)), *arguments]
        start = time.monotonic()
        try:
            done = subprocess.run(
                words,
                check=False,
                cwd=folder,
                env=environment(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=LIMIT_S,
            )
            printed = done.stdout.decode(errors="replace")
            state = "ok"
            if done.returncode != command.status:
                state = f"FAILED: exit code {done.returncode} instead of {command.status}"
        except FileNotFoundError:
            state = f"FAILED: no program {program}"
        except subprocess.TimeoutExpired as late:
            printed = (late.stdout or b"").decode(errors="replace")
            state = f"FAILED: still running after {LIMIT_S} s"
        seconds = time.monotonic() - start
    pictures = [folder / picture for picture in command.pictures]
    missing = [picture.name for picture in pictures if not picture.is_file()]
    if state == "ok" and missing:
        state = f"FAILED: it left no {missing[0]}"
    return Outcome(
        command=command,
        heading=heading,
        state=state,
        printed=printed,
        seconds=seconds,
        pictures=[picture for picture in pictures if picture.is_file()],
    )


def left_out(command: Command) -> str:
    """Why a command is not executed here; empty where it is."""
    if command.not_run:
        return f"left out: {command.not_run}"
    if command.variable not in ("", VARIABLE) and not os.environ.get(command.variable):
        return f"left out: {command.variable} is not set"
    return ""


def environment(command: Command) -> dict[str, str]:
    """The variables of a command: those of a user, with `jumar` of this checkout on the path."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MAKE", "MFLAGS", "PYTHON"))
    }
    variables["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{variables.get('PATH', '')}"
    variables |= {"PYTHONUNBUFFERED": "1", "COLUMNS": "100", "NO_COLOR": "1"}
    return variables | command.variables


def heading_above(lines: Sequence[str], number: int) -> str:
    """The last heading of a document before a line."""
    above = [line for line in lines[:number] if line.startswith("#")]
    return above[-1].lstrip("# ") if above else ""


def write_page(outcomes: dict[str, list[Outcome]]) -> Path:
    """Write the page with all outputs, times and pictures, and return its path."""
    parts = [f"<!doctype html><meta charset=utf-8><title>Stories</title><style>{STYLE}</style>"]
    for name, story in outcomes.items():
        spent = sum(outcome.seconds for outcome in story)
        parts.append(f"<h1>{name} <small>{len(story)} commands, {spent / 60:.1f} min</small></h1>")
        heading = ""
        for outcome in story:
            if outcome.heading != heading:
                heading = outcome.heading
                parts.append(f"<h2>{html.escape(heading)}</h2>")
            parts += outcome_html(outcome)
    page = CHECKOUT / FOLDER / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(parts) + "\n", encoding="utf-8")
    return page


def outcome_html(outcome: Outcome) -> list[str]:
    """A command with what it printed and drew."""
    shown = html.escape(shlex.join(outcome.command.words))
    took = f"{html.escape(outcome.state)}, {outcome.seconds:.1f} s"
    parts = [f"<p><code>$ {shown}</code> <small>{took}</small></p>"]
    if outcome.printed:
        failed = " class=failed" if outcome.state.startswith("FAILED") else ""
        parts.append(f"<pre{failed}>{html.escape(outcome.printed)}</pre>")
    for picture in outcome.pictures:
        name = html.escape(picture.name)
        if picture.suffix in (".png", ".jpg"):
            kind = "jpeg" if picture.suffix == ".jpg" else "png"
            data = base64.b64encode(picture.read_bytes()).decode()
            parts.append(f'<img alt="{name}" src="data:image/{kind};base64,{data}">')
        else:
            link = html.escape(picture.relative_to(CHECKOUT / FOLDER).as_posix())
            parts.append(f'<p><a href="{link}">{name}</a></p>')
    return parts


def summarise(outcomes: dict[str, list[Outcome]], page: Path) -> int:
    """Print what was left out and what failed, and where the page is; return the exit code."""
    everything = [outcome for story in outcomes.values() for outcome in story]
    for outcome in everything:
        if outcome.state != "ok":
            place = f"{outcome.command.document}:{outcome.command.line}"
            print(f"{outcome.state}  {place}  {shlex.join(outcome.command.words)}")
    failed = sum(outcome.state.startswith("FAILED") for outcome in everything)
    spent = sum(outcome.seconds for outcome in everything) / 60
    place = page.relative_to(CHECKOUT)
    print(f"{len(everything)} commands, {failed} failed, {spent:.1f} min: {place}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
