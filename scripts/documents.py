"""Reader of the commands in the documents; the convention stands in CONTRIBUTING.md.

The tests run them at small settings, `make stories` those of the stories as they stand.
"""

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

NOT_RUN = ("git", "cd", "make")
"""Programs that a block with `run: no` may show for any reason; others only where they need
something (hardware, a network) that a test machine has not."""

CHECKS = ("", "output", "numbers")
"""What of the lines below a command is compared: nothing, their words, their numbers too."""

COMMENTS = re.compile(r"<!-- *(run|check|file|small|picture): *(.*?) *-->")

PROGRAMS = {
    "jumar": (sys.executable, "-m", "jumar"),
    "python": (sys.executable,),
    "torchrun": (sys.executable, "-m", "torch.distributed.run"),
}
"""Programs that are taken from the environment of this Python."""

SHELL = re.compile(r"[|&;<>`$*?(){}\[\]]")


class UnreadableError(Exception):
    """A document that does not keep to the convention, with its place."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command of a `console` block, and what is promised of it."""

    document: str
    line: int
    words: Sequence[str]
    variables: dict[str, str] = field(default_factory=dict)
    status: int = 0
    dry: bool = False
    not_run: str = ""
    """Why it is not executed; empty where it is."""
    variable: str = ""
    """The environment variable that names what it needs; only `make stories` runs it."""
    small: Sequence[str] = ()
    """Words that the tests add, so that it takes seconds."""
    pictures: Sequence[str] = ()
    """Files that it leaves for people to look at."""
    output: Sequence[str] | None = None
    """The lines shown below it, where they are checked."""
    exact: bool = False
    """Whether the numbers in these lines are checked too."""


@dataclass(frozen=True, kw_only=True)
class WrittenFile:
    """A block that the reader is told to keep as a file."""

    document: str
    line: int
    name: str
    text: str


@dataclass(frozen=True)
class _Block:
    line: int
    language: str
    lines: Sequence[str]
    options: dict[str, str]


def read(path: Path, name: str) -> list[Command | WrittenFile]:
    """The files and commands of a document, in their order.

    Raises:
        UnreadableError: A comment, block or command outside of the convention.
    """
    steps: list[Command | WrittenFile] = []
    for block in _blocks(path.read_text(encoding="utf-8").splitlines(), name):
        if "file" in block.options:
            text = "".join(f"{line}\n" for line in block.lines)
            file = block.options["file"]
            steps.append(WrittenFile(document=name, line=block.line, name=file, text=text))
        elif block.language == "console":
            steps += _commands(block, name)
        elif block.language in ("bash", "sh", "shell", "zsh") or any(
            line.startswith("$ ") for line in block.lines
        ):
            raise UnreadableError(f"{name}:{block.line}: commands stand in blocks named console")
    return steps


def _blocks(lines: Sequence[str], name: str) -> Iterator[_Block]:
    options: dict[str, str] = {}
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        comments = line if line.lstrip().startswith("<!--") else ""
        found = COMMENTS.findall(comments)
        options |= dict(found)
        fence = re.match(r"( *)```(\S*)", line)
        if fence is None:
            if options and line.strip() and not found:
                raise UnreadableError(f"{name}:{number}: the comment above belongs to no block")
            continue
        start = number
        while number < len(lines) and lines[number].strip() != "```":
            number += 1
        if number == len(lines):
            raise UnreadableError(f"{name}:{start}: the block does not end")
        body = [text.removeprefix(fence[1]) for text in lines[start:number]]
        yield _Block(start, fence[2], body, options)
        options = {}
        number += 1


def _commands(block: _Block, name: str) -> Iterator[Command]:
    promised = _promises(block, name)
    number = 0
    while number < len(block.lines):
        place = block.line + number + 1
        text = block.lines[number]
        number += 1
        if not text.startswith("$ "):
            if number == 1:
                raise UnreadableError(f"{name}:{place}: a console block begins with '$ '")
            continue
        while text.endswith("\\") and number < len(block.lines):
            text = f"{text[:-1]} {block.lines[number].strip()}"
            number += 1
        words = shlex.split(text[2:], comments=True)
        unquoted = re.sub(r"'[^']*'|\"[^\"$`]*\"| #.*", "", text[2:])
        if not promised.not_run and SHELL.search(unquoted):
            raise UnreadableError(f"{name}:{place}: no shell reads this command: {text}")
        variables: dict[str, str] = {}
        while re.match(r"[A-Z_]+=", words[0]):
            key, _, variables[key] = words.pop(0).partition("=")
        reasoned = words[0] in NOT_RUN or promised.not_run.startswith("needs ")
        if promised.not_run and not reasoned:
            raise UnreadableError(
                f"{name}:{place}: '{words[0]}' must be run; '{promised.not_run}' is no reason"
            )
        if promised.dry and "jumar train " not in " ".join([*words, ""]):
            raise UnreadableError(f"{name}:{place}: only 'jumar train' runs dry")
        output: list[str] = []
        for line in block.lines[number:]:
            if line.startswith("$ "):
                break
            output.append(line)
        yield Command(
            document=name,
            line=place,
            words=words,
            variables=variables,
            status=promised.status,
            dry=promised.dry,
            not_run=promised.not_run,
            variable=promised.variable,
            small=promised.small,
            pictures=promised.pictures,
            output=None if promised.output is None else output,
            exact=promised.exact,
        )


def _promises(block: _Block, name: str) -> Command:
    """What the comments before a block say of each of its commands."""
    run, check = block.options.get("run", ""), block.options.get("check", "")
    status = re.fullmatch(r"exit (\d+)", run)
    refused = re.fullmatch(r"no, (.+)", run)
    needs = re.fullmatch(r"with ([A-Z][A-Z0-9_]+)", run)
    known = run in ("", "dry") or status or refused or needs
    if not known or check not in CHECKS:
        raise UnreadableError(f"{name}:{block.line}: unknown comment '{run or check}'")
    return Command(
        document=name,
        line=block.line,
        words=(),
        status=int(status[1]) if status else 0,
        dry=run == "dry",
        not_run=refused[1] if refused else "",
        variable=needs[1] if needs else "",
        small=shlex.split(block.options.get("small", "")),
        pictures=block.options.get("picture", "").split(),
        output=() if check else None,
        exact=check == "numbers",
    )


def shows(expected: Sequence[str], printed: str, *, exact: bool = False) -> bool:
    """Whether a command printed what its document shows.

    The widths of columns and rules may differ; a line `...` stands for any lines.

    Args:
        expected: The lines of the document.
        printed: What the command printed.
        exact: Whether numbers have to be equal too.
    """
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == "..." else re.escape(masked) + r"\n"
        for line in expected
        if (masked := _masked(line, exact=exact))
    )
    actual = [masked for line in printed.splitlines() if (masked := _masked(line, exact=exact))]
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in actual)) is not None


def _masked(line: str, *, exact: bool) -> str:
    if not exact:
        line = re.sub(r"[-+]?\d[\d,_]*(?:\.\d+)?(?:e[-+]?\d+)?", "#", line)
    line = re.sub(r"([^\w\s#.])\1+", r"\1", line)
    return " ".join(line.split())
