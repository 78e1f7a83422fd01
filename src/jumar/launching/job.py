"""What is started, wherever it is started."""

import re
from dataclasses import dataclass
from typing import Literal

from jumar.ground.errors import UserError

Accelerator = Literal["cpu", "cuda", "npu"]

_MOST_NODES, _MOST_DEVICES = 4096, 64
_LONGEST_NAME = 52
"""Letters of a job's name: pods of Kubernetes get a suffix, and take 63 in all."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A training on some nodes, with the same number of processes on each.

    Attributes:
        name: Its name in queues: lower-case letters, digits and hyphens.
        words: What torchrun starts, an entry a line of the script: `-m jumar train`, an option
            with its value.
        accelerator: The kind of device; each process has one.
        nodes: How many machines.
        devices: Processes on each.
        python: The interpreter on the nodes.
        environment: Variables of the training, beyond those of CANN.
        cann: The CANN release on the nodes; empty to look for it there.
        has_rank_table: Whether HCCL reads a rank table, beside the files.
        cards: For each node the NPUs that it uses, such as `4,5,6,7`; empty for those from 0 on.
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
        for value, most, where in (
            (self.nodes, _MOST_NODES, "--nodes"),
            (self.devices, _MOST_DEVICES, "--devices"),
        ):
            if not 1 <= value <= most:
                raise UserError(f"{value}", where=where, todo=f"Give 1 to {most}.")
        pattern = rf"[a-z]([-a-z0-9]{{0,{_LONGEST_NAME - 2}}}[a-z0-9])?"
        if not re.fullmatch(pattern, self.name):
            raise UserError(
                f"'{self.name}' is not a name that every queue takes",
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
    """A path or an argument that files of every kind can hold.

    Raises:
        UserError: It has line breaks or other control characters, or is not UTF-8.
    """
    if re.search(r"[\0-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]", text):
        raise UserError(
            f"{text!r} holds a line break, a control character or what is not UTF-8",
            where=where,
            todo="Write it without: not every file of a launch could hold it.",
        )
    return text


@dataclass(frozen=True, kw_only=True)
class Launch:
    """The files of a launch, and what is done with them.

    Attributes:
        files: Path to text; scripts end in `.sh`.
        about: For each file, what it is, in a few words.
        start: What starts the training, with `{to}` for the folder, quoted.
        notes: What else has to be known.
    """

    files: dict[str, str]
    about: dict[str, str]
    start: tuple[str, ...]
    notes: tuple[str, ...] = ()


def name_from(text: str) -> str:
    """A job's name made from a recipe's or a script's."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    name = name if re.match("[a-z]", name) else f"job-{name}"
    return name[:_LONGEST_NAME].strip("-")
