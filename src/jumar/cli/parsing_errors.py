"""Messages for arguments that are missing or too many, in place of the parser's own."""

from cyclopts import (
    App,
    CycloptsError,
    CycloptsPanel,
    MissingArgumentError,
    UnusedCliTokensError,
)
from rich.console import RenderableType
from rich.text import Text


def panel(error: CycloptsError, command: App) -> RenderableType:
    """Return what is printed for an error of parsing.

    Args:
        error: The error.
        command: The command whose arguments were parsed.
    """
    message = ""
    if isinstance(error, UnusedCliTokensError):
        message = _too_many(error, command)
    elif type(error) is MissingArgumentError and "Did you mean" not in str(error):
        message = _missing(error)
    # As text, since square brackets in an argument are no markup.
    return CycloptsPanel(Text(message) if message else error)


def _too_many(error: UnusedCliTokensError, command: App) -> str:
    names = [
        argument.name.lstrip("-")
        for argument in command.assemble_argument_collection()
        if argument.field_info.is_positional
    ]
    taken = f"{len(names)} arguments: {', '.join(names)}" if names else "no arguments"
    if len(names) == 1:
        taken = f"one {names[0]}"
    unused = ", ".join(f"'{token}'" for token in error.unused_tokens or ())
    return f"{_command(error)} takes {taken}; also given: {unused}."


def _missing(error: MissingArgumentError) -> str:
    argument = error.argument
    if argument is None or argument.token_count()[0] != 1:
        return ""
    given = [error.keyword, *(token.keyword for token in argument.tokens)]
    option = next(filter(None, given), "")
    if option:
        return f"{option} requires a value: {_command(error)} {option} VALUE"
    return f"{argument.name} is missing: {_command(error)} requires it."


def _command(error: CycloptsError) -> str:
    return " ".join(["jumar", *(error.command_chain or ())])
