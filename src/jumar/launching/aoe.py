"""Files that start Ascend's own tuner, AOE, for TensorFlow 1.15 and PyTorch.

AOE compiles sub-graphs and operators in different ways, times them on the NPU and keeps the best in
a bank. The facts are in `aoe.json`, each with its source. None of it has been run, since we have no
machine with an NPU.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from jumar.ground.errors import UserError
from jumar.ground.paths import is_folder
from jumar.launching.cann import environment_text, facts
from jumar.launching.templates import comment, script_text

Chip = Literal["910", "910b", "a3"]

UNPROVED: Final = "written from the vendor's documentation; we have not run it on an NPU"
_HEAD: Final = """\
#!/usr/bin/env bash
{about}
set -euo pipefail
"""
_HERE: Final = """\
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"""
_SOURCED: Final = """\
# shellcheck source=/dev/null
. "$here/environment.sh"
"""


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """A tuning request.

    Attributes:
        framework: Framework whose graphs AOE tunes.
        folder: Working folder of the command.
        command: The command that trains.
        profile: The command that records a profile, without the folder for it; empty to record
            with msprof.
        chip: The NPU, as in the tags of CANN's images.
        cann: The CANN release; empty to detect it on the machine.
    """

    framework: Literal["tensorflow", "torch"]
    folder: str
    command: Sequence[str]
    profile: Sequence[str] = ()
    chip: Chip = "910"
    cann: str = ""


def aoe_files(tuned: Tuned) -> dict[str, str]:
    """The files, by name; the steps are numbered in the order to run them."""
    steps = {"before": _profiled(tuned, "before")}
    files = {"environment.sh": _environment(tuned), "train.sh": _train(tuned)}
    if tuned.framework == "torch":
        files["record_graphs.py"] = script_text("record_graphs.txt")
        steps["graphs"] = _graphs(tuned)
    if tuned.chip == "910":
        steps["subgraphs"] = _job(tuned, "subgraph", 1)
    steps["operators"] = _job(tuned, "operator", 2)
    steps["after"] = _profiled(tuned, "after")
    steps["compare"] = _script(
        "The gain from AOE: steps before and after, and the operators that changed.",
        'jumar profile compare "$here/before" "$here/after" --page "$here/aoe.html" "$@"\n',
        with_environment=False,
    )
    numbered_steps = {
        f"{number}-{name}.sh": text for number, (name, text) in enumerate(steps.items(), 1)
    }
    return {**files, **numbered_steps}


def refuse_other_steps(to: Path, files: Mapping[str, str]) -> None:
    """Reject a folder with steps that these files would not replace.

    Raises:
        UserError: Following the numbers would run them too.
    """
    if not is_folder(to):
        return
    stale_steps = sorted(path.name for path in to.glob("[0-9]-*.sh") if path.name not in files)
    if stale_steps:
        raise UserError(
            f"contains steps for another chip or framework: {', '.join(stale_steps)}",
            where=f"--to {to}",
            todo="Give another folder, or delete them.",
        )


def notes(tuned: Tuned) -> list[str]:
    """Notes about the files, one sentence each."""
    sentences = [UNPROVED, _reason("gradients")]
    if tuned.chip != "910":
        sentences.append(f"no step for sub-graphs: {_reason('no_subgraph')}")
    if tuned.framework == "tensorflow":
        sentences.append(_reason("tensorflow"))
    sentences.append(
        "AOE takes hours, needs the NPU to itself, and tunes fixed shapes of one kind of chip; "
        "keep the folder `bank` and set TUNE_BANK_PATH in every later training"
    )
    return sentences


def _script(about: str, body: str, *, with_environment: bool = True) -> str:
    head = _HEAD.format(about=comment(f"{about[0].upper()}{about[1:]}"))
    set_here = _HERE if with_environment or "$here" in body else ""
    return f"{head}{set_here}{_SOURCED if with_environment else ''}{body}"


def _environment(tuned: Tuned) -> str:
    lines = "\n".join(
        f"{comment(fact['reason'])}\n{comment('Source: ' + fact['source'])}\n{fact['line']}"
        for fact in facts("aoe")["environment"]
    )
    return _script(
        f"What every step needs; {UNPROVED}.",
        f"{environment_text(tuned.cann)}{lines}\n",
        with_environment=False,
    )


def _train(tuned: Tuned) -> str:
    return _script(
        "What is tuned, in the environment of the step that calls it. A few steps of training are "
        "enough, since AOE does its work when graphs are compiled.",
        f'cd {shlex.quote(tuned.folder)}\nexec {shlex.join(tuned.command)} "$@"\n',
        with_environment=False,
    )


def _profiled(tuned: Tuned, name: str) -> str:
    is_before = name == "before"
    about = (
        "How fast it is without AOE."
        if is_before
        else "How fast it is with the bank, without tuning: AOE_MODE is not set."
    )
    bank = "# The bank must not be used yet.\nunset TUNE_BANK_PATH AOE_MODE\n" if is_before else ""
    if tuned.profile:
        body = (
            f"cd {shlex.quote(tuned.folder)}\n"
            f'{shlex.join(tuned.profile)} --run-dir "$here/{name}" "$@"\n'
        )
    else:
        body = (
            "# CANN's recorder; jumar profile reads what it leaves.\n"
            f'msprof --output="$here/{name}" bash "$here/train.sh" "$@"\n'
        )
    return _script(about, f"{bank}{body}")


def _graphs(tuned: Tuned) -> str:
    python, *words = tuned.command
    return _script(
        f"The graphs that AOE tunes: {_reason('graphs')}. Source: {_source('graphs')}.",
        f'cd {shlex.quote(tuned.folder)}\nmkdir -p "$here/graphs"\n'
        f'{shlex.quote(python)} "$here/record_graphs.py" "$here/graphs" {shlex.join(words)} "$@"\n',
    )


def _job(tuned: Tuned, name: str, job_type: int) -> str:
    about = f"{_reason(name)}. Source: {_source(name)}."
    if tuned.framework == "tensorflow":
        return _script(
            about,
            f"{comment(_reason('tensorflow'))}\n{comment('Source: ' + _source('tensorflow'))}\n"
            f"export AOE_MODE={job_type}\n"
            'bash "$here/train.sh" "$@"\n',
        )
    return _script(
        about,
        f"{comment(_reason('offline'))}\n{comment('Source: ' + _source('offline'))}\n"
        f'aoe --job_type={job_type} --model_path="$here/graphs" "$@"\n',
    )


def _reason(name: str) -> str:
    return facts("aoe")[name]["reason"]


def _source(name: str) -> str:
    return facts("aoe")[name]["source"]
