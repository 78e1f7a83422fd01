"""The job to start, independent of where."""

import re
from dataclasses import dataclass
from typing import Literal

from jumar.ground.errors import UserError

Accelerator = Literal["cpu", "cuda", "npu"]

_MAX_NODES, _MAX_DEVICES = 4096, 64
_LONGEST_NAME = 52
"""Maximum length of a job's name: Kubernetes pods get a suffix, and allow 63 characters in all."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A training on some nodes, with the same number of processes on each.

    Attributes:
        name: Its name in queues: lower-case letters, digits and hyphens.
        words: What torchrun starts, one entry per line of the script: `-m jumar train`, an option
            with its value.
        accelerator: The kind of device; each process has one.
        nodes: Number of machines.
        devices: Processes per machine.
        python: The interpreter on the nodes.
        environment: Environment variables of the training, in addition to CANN's.
        cann: The CANN release on the nodes; empty to detect it there.
        has_rank_table: Whether HCCL reads a rank table next to the files.
        cards: The NPUs of each node, such as `4,5,6,7`; empty to number them from 0.
    """

    name: str
    words: tuple[tuple[str, ...], ...]
    accelerator: Accelerator
    nodes: int = 1
    devices: int = 1
    python: str = "python3"
    environment: tuple[tuple[str, str], ...] = ()
    cann: str = ""
    has_rank_table: bool = False
    cards: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for value, most, option in (
            (self.nodes, _MAX_NODES, "--nodes"),
            (self.devices, _MAX_DEVICES, "--devices"),
        ):
            if not 1 <= value <= most:
                raise UserError(f"{value}", where=option, todo=f"Give 1 to {most}.")
        pattern = rf"[a-z]([-a-z0-9]{{0,{_LONGEST_NAME - 2}}}[a-z0-9])?"
        if not re.fullmatch(pattern, self.name):
            raise UserError(
                f"'{self.name}' is not a name that every queue accepts",
                where="--name",
                todo="Begin with a letter, and use lower-case letters, digits and hyphens, at "
                f"most {_LONGEST_NAME}.",
            )
        for name, _ in self.environment:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                raise UserError(f"'{name}' is not a variable's name", where="--env")
        texts = (self.python, *(word for line in self.words for word in line))
        for text in (*texts, *(value for _, value in self.environment)):
            checked_text(text)


def checked_text(text: str, where: str = "") -> str:
    """A path or an argument that every file format can represent.

    Raises:
        UserError: It has line breaks or other control characters, or is not UTF-8.
    """
    if re.search(r"[\0-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]", text):
        raise UserError(
            f"{text!r} contains a line break, a control character or bytes that are not UTF-8",
            where=where,
            todo="Leave it out: not every file format of a launch can represent it.",
        )
    return text


@dataclass(frozen=True, kw_only=True)
class Launch:
    """The files of a launch, and how to use them.

    Attributes:
        files: Path to text; scripts end in `.sh`.
        about: A short description of each file.
        start: The command that starts training, with `{to}` for the folder, quoted.
        notes: Further notes.
    """

    files: dict[str, str]
    about: dict[str, str]
    start: tuple[str, ...]
    notes: tuple[str, ...] = ()


def name_from(text: str) -> str:
    """A job name derived from a recipe's or a script's name."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    name = name if re.match("[a-z]", name) else f"job-{name}"
    return name[:_LONGEST_NAME].strip("-")
