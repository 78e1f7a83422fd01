"""`jumar tune aoe`."""

import re
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from jumar.cli.options import Token
from jumar.ground.errors import UserError
from jumar.ground.paths import is_file, is_folder, missing, read_text
from jumar.ground.text import print_plain
from jumar.launching.aoe import Tuned, aoe_files, notes, refuse_other_steps
from jumar.launching.writing import write_launch

Chip = Literal["910", "910b", "a3"]


def aoe(
    what: Annotated[Path, Parameter(name="SCRIPT|RUN")],
    /,
    *arguments: Annotated[Token, Parameter(name="ARGUMENTS")],
    to: Path,
    chip: Chip = "910",
    cann: Annotated[str, Parameter(metavar="RELEASE")] = "",
    python: Annotated[str, Parameter(metavar="PYTHON")] = "python3",
) -> int:
    """Write the files that Ascend's tuner AOE needs for a ported script or a run.

    These are numbered shell scripts in the vendor's order: sub-graphs first, then operators. The
    first and the last record a profile, and `jumar profile compare` shows the gain. None of them
    has been tested on an NPU.

    Parameters
    ----------
    what
        A script of TensorFlow 1.15 (ported by `jumar port`) or PyTorch, or a run directory.
    arguments
        Arguments for the script, after `--`.
    to
        Folder for the files.
    chip
        The NPU: 910 (Atlas training products), or 910b (Atlas A2) or a3, which do not support
        sub-graph tuning.
    cann
        The CANN release, such as 8.3.RC1; by default the scripts detect it.
    python
        The Python interpreter to run the scripts with.
    """
    describe = _run if is_folder(what) else _script
    tuned = describe(what, arguments, chip, cann, python)
    files = aoe_files(tuned)
    refuse_other_steps(to, files)
    summary = {"aoe": str(what), "framework": tuned.framework, "chip": chip, "cann": cann}
    write_launch(to, files, summary)
    for name in files:
        print_plain(f"written: {to / name}")
    for note in notes(tuned):
        print_plain(f"note: {note}")
    if tuned.framework == "tensorflow" and "aoe_mode" in read_text(what):
        print_plain(
            f"note: {what} sets aoe_mode itself, which overrides AOE_MODE in the numbered scripts: "
            "remove it from the script"
        )
    print_plain(f"next: bash {to}/1-before.sh, then the others in order")
    return 0


def _run(run: Path, arguments: tuple[str, ...], chip: Chip, cann: str, python: str) -> Tuned:
    """Describe a run, of which some steps are profiled."""
    if not is_file(run / "recipe.json"):
        raise UserError(
            f"'{run}' is not a run directory: it has no recipe.json",
            todo="Give a run, or the script that trains.",
        )
    command = (
        python,
        *("-m", "jumar", "profile", str(run.absolute()), "--device", "npu"),
        *arguments,
    )
    return Tuned(
        framework="torch",
        folder=str(Path.cwd()),
        # Profiling writes into the run by default.
        command=(*command, "--steps", "1", "--warm-up", "1"),
        profile=command,
        chip=chip,
        cann=cann,
    )


def _script(script: Path, arguments: tuple[str, ...], chip: Chip, cann: str, python: str) -> Tuned:
    """Describe a training script."""
    if not is_file(script):
        raise missing(script, "script or run directory")
    text = read_text(script)
    is_torch = re.search(r"^\s*(?:import|from)\s+torch", text, re.MULTILINE)
    is_tensorflow = re.search(
        r"^\s*(?:import|from)\s+(?:tensorflow|npu_bridge|keras)", text, re.MULTILINE
    )
    if not is_torch and not is_tensorflow:
        raise UserError(
            "imports neither TensorFlow nor torch, so the graphs to tune are unknown",
            where=str(script),
            todo="Give the script that builds the network.",
        )
    path = script.absolute()
    return Tuned(
        framework="tensorflow" if is_tensorflow else "torch",
        folder=str(path.parent),
        command=(python, path.name, *arguments),
        chip=chip,
        cann=cann,
    )
