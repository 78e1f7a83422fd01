"""The command `jumar`: parses, calls one function, prints.

Commands are loaded when they are called, so that `jumar --help` does not wait for torch.
"""

import math
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console

from jumar import __version__
from jumar.cli import ctrl_c, last_resort, several_ranks
from jumar.errors import EXIT_CODE, UserError
from jumar.plain_text import print_plain

_LARGEST_WHOLE = 2**63 - 1


def _check_number(_: Any, value: Any) -> None:
    """Hold every number of the command line against what files and tensors can hold.

    Raises:
        ValueError: NaN, infinity or more than 63 bits; the command line names the option.
    """
    for number in value if isinstance(value, tuple) else (value,):
        if isinstance(number, float) and not math.isfinite(number):
            raise ValueError(f"{number} is no finite number.")
        if isinstance(number, int) and abs(number) > _LARGEST_WHOLE:
            raise ValueError(f"At most {_LARGEST_WHOLE}.")


app = App(
    name="jumar",
    default_parameter=Parameter(validator=_check_number),
    help="Bring deep-learning models up onto Ascend NPUs; the same commands on CPU, CUDA and NPU.",
    version=__version__,
)
app.command("jumar.cli.train:train", help="Train a recipe, or go on with a run.")
app.command("jumar.cli.evaluate:evaluate", help="Score the kept checkpoints of a run.")
app.command("jumar.cli.generate:generate", help="Draw pictures with a trained generator.")
app.command("jumar.cli.denoise:denoise", help="Take noise from pictures, frames or a video.")
app.command("jumar.cli.predict:predict", help="Say what clips or pictures are.")
app.command("jumar.cli.sweep:sweep", help="Train in every combination of some fields; compare.")
app.command("jumar.cli.report:report", help="Write report.html for a run or a sweep.")
app.command("jumar.cli.recipes:app", name="recipes", help="List and show recipes.")
app.command("jumar.cli.weights:app", name="weights", help="Show, import and export weights.")
app.command("jumar.cli.data:app", name="data", help="Prepare data sets.")
app.command("jumar.cli.precision:app", name="precision", help="Check op lists; show modes and ops.")
app.command(
    "jumar.cli.profile:app", name="profile", help="Record and read profiles; say what to do."
)
app.command("jumar.cli.port:app", name="port", help="Rewrite scripts for the NPU; check and lint.")
app.command("jumar.cli.doctor:doctor", help="Say what this machine has and lacks.")


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code.

    Errors that the user can mend are printed without a traceback, with exit code 2; Ctrl-C
    outside of training leaves with 130; a reader of our output that went away with 141. What the
    system refuses (a path, memory, a full disk) is such an error too; a defect keeps its traceback
    under one line that says what happened, with exit code 1.
    """
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    with ctrl_c.noting_ctrl_c() as interruptions:
        try:
            _check_for_emptiness(tokens)
            code = _called(tokens) if several_ranks.takes_part(app.parse_commands(tokens)[0]) else 0
        except KeyboardInterrupt:
            code = ctrl_c.EXIT_CODE
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 141
        except Exception as error:
            code = ctrl_c.EXIT_CODE if interruptions else _say(error, tokens)
    sys.exit(code if isinstance(code, int) else 0)


def _check_for_emptiness(tokens: Sequence[str]) -> None:
    """Refuse an empty argument: as a path it would be the present folder.

    Arguments behind `--` belong to somebody else's script.

    Raises:
        UserError: One is empty, as an unset variable of a shell leaves it.
    """
    ours = tokens[: tokens.index("--")] if "--" in tokens else tokens
    for place, token in enumerate(ours):
        if not token or re.fullmatch(r"--[\w-]+=", token):
            before = ours[place - 1] if place and not token else token
            raise UserError(
                "an argument is empty",
                where=f"after {before}" if before else "the first one",
                todo="Is a variable of the shell not set? To leave an option at its default, "
                "omit it.",
            )


def _called(tokens: Sequence[str]) -> object:
    return app(
        list(tokens),
        error_console=Console(stderr=True),
        print_error=True,
        exit_on_error=False,
        result_action="return_value",
    )


def _say(error: Exception, tokens: Sequence[str]) -> int:
    """Print an error that the user can mend; one of the command line itself is printed already."""
    if isinstance(error, CycloptsError):
        return EXIT_CODE
    told = error if isinstance(error, UserError) else last_resort.mendable(error, tokens)
    sys.stdout.flush()
    if told is None:
        sys.stderr.write(f"{last_resort.headline(error, tokens)}\n")
        raise error
    print_plain(f"jumar: {told}", sys.stderr)
    return EXIT_CODE
