"""Writes files that start Ascend's tuner, AOE, for TensorFlow 1.15 and PyTorch.

AOE compiles sub-graphs and operators in different ways, times them on the NPU and stores the best
in a bank. The facts are in `aoe.json`, each with its source. None of this has been run, since we
have no machine with an NPU.
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

UNTESTED: Final = "written from the vendor's documentation, but not yet run on an NPU"
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
        command: The training command.
        profile: The command that records a profile, without its output folder; empty to record
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
    """Return the files, by name; the steps are numbered in the order in which to run them."""
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
        UserError: There are such steps, which would be run along with the new ones.
    """
    if not is_folder(to):
        return
    stale_steps = sorted(path.name for path in to.glob("[0-9]-*.sh") if path.name not in files)
    if stale_steps:
        raise UserError(
            f"contains steps for another chip or framework: {', '.join(stale_steps)}",
            where=f"--to {to}",
            todo="Specify another folder, or delete them.",
        )


def notes(tuned: Tuned) -> list[str]:
    """Return notes about the files, one sentence each."""
    sentences = [UNTESTED, _reason("gradients")]
    if tuned.chip != "910":
        sentences.append(f"no step for sub-graphs: {_reason('no_subgraph')}")
    if tuned.framework == "tensorflow":
        sentences.append(_reason("tensorflow"))
    sentences.append(
        "AOE takes hours, requires exclusive use of the NPU, and tunes fixed shapes for one kind "
        "of chip; keep the folder `bank` and set TUNE_BANK_PATH in every later training run"
    )
    return sentences


def _script(about: str, body: str, *, with_environment: bool = True) -> str:
    head = _HEAD.format(about=comment(f"{about[0].upper()}{about[1:]}"))
    set_here = _HERE if with_environment or "$here" in body else ""
    return f"{head}{set_here}{_SOURCED if with_environment else ''}{body}"


def _environment(tuned: Tuned) -> str:
    lines = "\n".join(f"{_commented(fact)}{fact['line']}" for fact in facts("aoe")["environment"])
    return _script(
        f"The environment of every step; {UNTESTED}.",
        f"{environment_text(tuned.cann)}{lines}\n",
        with_environment=False,
    )


def _train(tuned: Tuned) -> str:
    return _script(
        "The training to tune, in the environment of the calling step. A few training steps are "
        "enough, since AOE tunes when graphs are compiled.",
        f'cd {shlex.quote(tuned.folder)}\nexec {shlex.join(tuned.command)} "$@"\n',
        with_environment=False,
    )


def _profiled(tuned: Tuned, name: str) -> str:
    is_before = name == "before"
    about = (
        "The speed without AOE."
        if is_before
        else "The speed with the bank, without further tuning: AOE_MODE is not set."
    )
    bank = "# The bank must not be used yet.\nunset TUNE_BANK_PATH AOE_MODE\n" if is_before else ""
    if tuned.profile:
        body = (
            f"cd {shlex.quote(tuned.folder)}\n"
            f'{shlex.join(tuned.profile)} --run-dir "$here/{name}" "$@"\n'
        )
    else:
        body = (
            "# CANN's profiler; jumar profile reads its output.\n"
            f'msprof --output="$here/{name}" bash "$here/train.sh" "$@"\n'
        )
    return _script(about, f"{bank}{body}")


def _graphs(tuned: Tuned) -> str:
    python, *arguments = tuned.command
    return _script(
        f"The graphs that AOE tunes: {_reason_and_source('graphs')}",
        f'cd {shlex.quote(tuned.folder)}\nmkdir -p "$here/graphs"\n'
        f'{shlex.quote(python)} "$here/record_graphs.py" "$here/graphs" '
        f'{shlex.join(arguments)} "$@"\n',
    )


def _job(tuned: Tuned, name: str, job_type: int) -> str:
    if tuned.framework == "tensorflow":
        fact = "tensorflow"
        command = f'export AOE_MODE={job_type}\nbash "$here/train.sh" "$@"\n'
    else:
        fact = "offline"
        command = f'aoe --job_type={job_type} --model_path="$here/graphs" "$@"\n'
    return _script(_reason_and_source(name), f"{_commented(facts('aoe')[fact])}{command}")


def _commented(fact: Mapping[str, str]) -> str:
    return f"{comment(fact['reason'])}\n{comment('Source: ' + fact['source'])}\n"


def _reason(name: str) -> str:
    return facts("aoe")[name]["reason"]


def _reason_and_source(name: str) -> str:
    return f"{_reason(name)}. Source: {facts('aoe')[name]['source']}."
