"""The job to start, independent of the launcher."""

import re
from dataclasses import dataclass
from typing import Literal

from jumar.ground.errors import UserError

Accelerator = Literal["cpu", "cuda", "npu"]

_MAX_NODES, _MAX_DEVICES = 4096, 64
_MAX_NAME_LENGTH = 52
"""Maximum length of a job name: Kubernetes adds a suffix to pods, and allows 63 characters."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A training job on some nodes, with the same number of processes on each.

    Attributes:
        name: The name in queues: lower-case letters, digits and hyphens.
        words: The arguments of torchrun, one entry per line of the script: `-m jumar train`, or an
            option with its value.
        accelerator: The kind of device; each process uses one.
        nodes: Number of machines.
        devices: Processes per machine.
        python: The interpreter on the nodes.
        environment: Environment variables of the job, in addition to CANN's.
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
        for value, maximum, option in (
            (self.nodes, _MAX_NODES, "--nodes"),
            (self.devices, _MAX_DEVICES, "--devices"),
        ):
            if not 1 <= value <= maximum:
                raise UserError(
                    f"{value} is out of range", where=option, todo=f"Use 1 to {maximum}."
                )
        pattern = rf"[a-z]([-a-z0-9]{{0,{_MAX_NAME_LENGTH - 2}}}[a-z0-9])?"
        if not re.fullmatch(pattern, self.name):
            raise UserError(
                f"'{self.name}' is not a name that every queue accepts",
                where="--name",
                todo="Use lower-case letters, digits and hyphens, starting with a letter, at most "
                f"{_MAX_NAME_LENGTH} characters.",
            )
        for name, _ in self.environment:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                raise UserError(f"'{name}' is not the name of a variable", where="--env")
        texts = (self.python, *(word for line in self.words for word in line))
        for text in (*texts, *(value for _, value in self.environment)):
            checked_text(text)


def checked_text(text: str, where: str = "") -> str:
    """Return a path or argument if every file format can represent it.

    Raises:
        UserError: The text contains line breaks or other control characters, or is not UTF-8.
    """
    if re.search(r"[\0-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]", text):
        raise UserError(
            f"{text!r} contains a line break, a control character or bytes that are not UTF-8",
            where=where,
            todo="Remove it: not every file format of a launch can represent it.",
        )
    return text


@dataclass(frozen=True, kw_only=True)
class Launch:
    """The files of a launch, and how to use them.

    Attributes:
        files: The texts by path; scripts end in `.sh`.
        about: A short description of each file.
        start: The commands that start training, with `{to}` for the quoted folder.
        notes: Further notes.
    """

    files: dict[str, str]
    about: dict[str, str]
    start: tuple[str, ...]
    notes: tuple[str, ...] = ()


def name_from(text: str) -> str:
    """Derive a job name from the name of a recipe or script."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    name = name if re.match("[a-z]", name) else f"job-{name}"
    return name[:_MAX_NAME_LENGTH].strip("-")
