"""The command `jumar`: parses the command line and calls a command's function.

Commands are imported when they are called, so that `jumar --help` does not wait for torch.
"""

import os
import re
import sys
from collections.abc import Sequence
from itertools import takewhile

from cyclopts import App, CycloptsError
from rich.console import Console

from jumar import __version__
from jumar.cli import ctrl_c, last_resort, parsing_errors, several_ranks, stores
from jumar.cli.options import EVERY_OPTION, OPTIONS
from jumar.cli.restarting import RestartNeeded, restart
from jumar.ground.errors import EXIT_CODE, UserError
from jumar.ground.text import print_aside
from jumar.recipes.own_modules import keep_runs_from_being_imported

app = App(
    name="jumar",
    help="Bring up deep-learning models on Ascend NPUs; same commands on CPU, CUDA and NPU.",
    version=__version__,
    default_parameter=EVERY_OPTION,
    group_parameters=OPTIONS,
)
app.command(
    "jumar.cli.train:train",
    help="Train a recipe, or resume a run.",
    usage="Usage: jumar train [OPTIONS] [RECIPE]",
)
app.command("jumar.cli.evaluate:evaluate", help="Evaluate the checkpoints of a run.")
app.command("jumar.cli.generate:generate", help="Generate images with a trained generator.")
app.command("jumar.cli.denoise:denoise", help="Denoise images, frames or a video.")
app.command("jumar.cli.detect:detect", help="Find the words in images.")
app.command(
    "jumar.cli.predict:predict",
    help="Apply a trained network to audio clips, images or texts.",
    usage="Usage: jumar predict [OPTIONS] RUN FILES...",
)
app.command("jumar.cli.sweep:sweep", help="Train all combinations of some fields and compare them.")
app.command("jumar.cli.tune:app", name="tune", help="Choose settings by measuring them.")
app.command(
    "jumar.cli.report:report",
    usage="Usage: jumar report [OPTIONS] RUNS...",
    help="Write one page for a run or a sweep, or comparing any runs.",
)
app.command("jumar.cli.recipes:app", name="recipes", help="List and show recipes.")
app.command("jumar.cli.weights:app", name="weights", help="Show, import and export weights.")
app.command(
    "jumar.cli.export:export", help="Export a network to ONNX, torch.export or an Ascend .om."
)
app.command("jumar.cli.data:app", name="data", help="Prepare data sets.")
app.command(
    "jumar.cli.precision:app",
    name="precision",
    help="Show precision modes and op lists; lint op lists; dump training steps.",
)
app.command("jumar.cli.profile:app", name="profile", help="Record, show and compare profiles.")
app.command("jumar.cli.port:app", name="port", help="Port scripts to the NPU; check and lint them.")
app.command(
    "jumar.cli.launch:app",
    name="launch",
    help="Write the files that start training on this or other machines, and start it.",
)
app.command(
    "jumar.cli.explain:explain",
    help="Explain why a job failed, from the logs of its ranks.",
    usage="Usage: jumar explain [OPTIONS] LOGS...",
)
app.command(
    "jumar.cli.doctor:doctor",
    help="Show this machine's hardware and software, and what is missing.",
)


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its exit code.

    Errors that the user can fix are printed without a traceback, with exit code 2; Ctrl-C outside
    of training exits with 130, a broken pipe with 141. Errors of the operating system (a path,
    memory, a full disk) and missing extras are such errors too. For a bug, a line of explanation
    and the traceback are printed, with exit code 1.
    """
    keep_runs_from_being_imported()
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    with ctrl_c.noting_ctrl_c() as interruptions:
        try:
            _refuse_empty_arguments(tokens)
            document_in_full(tokens)
            command = app.parse_commands(tokens)[0]
            takes_part = several_ranks.takes_part(command)
            code = stores.with_local_paths(tokens, command, _run_app) if takes_part else 0
        except KeyboardInterrupt:
            code = ctrl_c.EXIT_CODE
        except RestartNeeded as request:
            code = restart(request, tokens, replaces=arguments is None)
        except (BrokenPipeError, SystemExit) as error:
            # When rich prints, as on help pages, it turns a broken pipe into an exit with 1.
            if not any(isinstance(cause, BrokenPipeError) for cause in (error, error.__context__)):
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 141
        except Exception as error:
            code = ctrl_c.EXIT_CODE if interruptions else _print_error(error, tokens)
    sys.exit(code if isinstance(code, int) else 0)


def _refuse_empty_arguments(tokens: Sequence[str]) -> None:
    """Reject empty arguments, which as paths would mean the current folder.

    Arguments after `--` belong to the user's script.

    Raises:
        UserError: An argument is empty, as from an unset shell variable.
    """
    own_tokens = tokens[: tokens.index("--")] if "--" in tokens else tokens
    for position, token in enumerate(own_tokens):
        if not token or re.fullmatch(r"--[\w-]+=", token):
            previous = own_tokens[position - 1] if position and not token else token
            raise UserError(
                "an argument is empty",
                where=f"after {previous}" if previous else "first argument",
                todo="A shell variable may be unset. To leave an option at its default, omit it.",
            )


def _run_app(tokens: Sequence[str]) -> object:
    return app(
        list(tokens),
        print_error=False,
        exit_on_error=False,
        result_action="return_value",
    )


def document_in_full(tokens: Sequence[str]) -> None:
    """Let the help page of a command show its docstring, not the line of the list of commands."""
    # The parser takes the flags for commands of their own.
    words = takewhile(lambda token: token not in app.help_flags, tokens)
    command = _command(list(words))
    if command.default_command is not None:
        command.help = None


def _command(tokens: Sequence[str]) -> App:
    return app.parse_commands(list(tokens))[1][-1]


def _print_error(error: Exception, tokens: Sequence[str]) -> int:
    """Print an error that the user can fix."""
    if isinstance(error, CycloptsError):
        Console(stderr=True).print(parsing_errors.panel(error, _command(tokens)))
        return EXIT_CODE
    user_error = error if isinstance(error, UserError) else last_resort.as_user_error(error, tokens)
    sys.stdout.flush()
    if user_error is None:
        sys.stderr.write(f"{last_resort.headline(error, tokens)}\n")
        raise error
    print_aside(f"jumar: {user_error}")
    return EXIT_CODE
