"""What became of each change that a person made: rewritten, reported, left, or nothing."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from hand_ports.changes import HandChange, Paired, paired
from hand_ports.needless import why_needless
from hand_ports.statements import statements
from hand_ports.topics import Topic, topics_of
from jumar.porting.edits import FileReport, TreeReport
from jumar.porting.options import PortOptions, parse_loss_scale
from jumar.porting.tree.porting import port_tree

Outcome = Literal["rewritten", "reported", "left", "needless", "silent"]
Nearness = Literal["here", "function", "file", "tree", ""]

_LINES = 3
"""Lines by which an answer may miss a change and still be at its place."""
_OF_THE_TREE = (
    "session",
    "Keras session",
    "estimator",
    "precision mode",
    "loss scale",
    "distribution",
    "fixed shapes",
    "input queues",
)
"""Topics that are answered once for a program, wherever in it a person did so."""
_DISTRIBUTED = (
    "NPUDistributedOptimizer(",
    "npu_tf_optimizer(",
    "npu_distributed_optimizer_wrapper(",
    "hccl_ops.",
    ".shard(rank_size",
    "NPUStrategy(",
)
"""Calls of hand-made ports that train with several devices."""
_LOSS_SCALES = re.compile(r"LossScale(?:Manager|Optimizer)")
"""Those of npu_bridge and of TensorFlow itself."""
_ORDER: tuple[Outcome, ...] = ("rewritten", "reported", "left")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An edit, a finding, or a decision to leave something as it is."""

    path: str
    line: int
    scope: tuple[str, ...]
    rule: str
    outcome: Outcome
    whole: bool


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A change of the port, and what became of it.

    Args:
        change: What the person did.
        topic: What it is about.
        outcome: What the port did.
        near: How far away: at the place, in its function, in its file, or elsewhere in the tree.
        rule: The rule that did it, or why the change is needless.
    """

    change: HandChange
    topic: str
    outcome: Outcome
    near: Nearness = ""
    rule: str = ""


@dataclass(frozen=True, kw_only=True)
class Score:
    """A repository's changes.

    Args:
        name: Of the repository.
        paired: The two trees laid side by side.
        scored: Changes that belong to the port; a change of two topics counts twice.
        others: How many changes do not belong to it.
        options: With which it was ported here.
        edits: How many edits the port made.
        findings: How many findings it reports.
    """

    name: str
    paired: Paired
    scored: tuple[Scored, ...]
    others: tuple[HandChange, ...] = field(repr=False)
    options: tuple[str, ...]
    edits: int
    findings: int

    def count(self, *outcomes: Outcome) -> int:
        """How many changes had one of these outcomes."""
        return sum(item.outcome in outcomes for item in self.scored)

    @property
    def covered(self) -> float:
        """Share of the changes that are rewritten, reported or left for a reason."""
        counted = len(self.scored) - self.count("needless")
        return (counted - self.count("silent")) / counted if counted else 1.0


def score(name: str, original: Path, hand: Path) -> Score:
    """Port a repository with the options that its hand-made port has, and score the port.

    Args:
        name: Of the repository.
        original: Its folder.
        hand: The folder of the hand-made port.
    """
    sides = paired(original, hand)
    options = options_of(hand)
    report = port_tree(original, options)
    answers = _answers(report, original)
    used: set[tuple[str, int]] = set()
    found: dict[tuple[int, int], Scored] = {}
    others = [change for change in sides.changes if not topics_of(change)]
    wanted = [
        (number, place, change, topic)
        for number, change in enumerate(sides.changes)
        for place, topic in enumerate(topics_of(change))
    ]
    # What is answered near a change cannot be the answer to another far away.
    for nearness in ("here", "function", "file", "tree"):
        for number, place, change, topic in wanted:
            if (number, place) not in found:
                outcome = _outcome(change, topic, answers, used, nearness, original)
                if outcome is None and nearness == "file":
                    outcome = _needless(change, topic, original)
                if outcome is not None:
                    found[number, place] = outcome
    scored = [
        found.get((number, place), Scored(change=change, topic=topic.name, outcome="silent"))
        for number, place, change, topic in wanted
    ]
    return Score(
        name=name,
        paired=sides,
        scored=tuple(scored),
        others=tuple(others),
        options=options.as_typed(),
        edits=sum(report.edits_by_rule().values()),
        findings=sum(report.findings_by_rule().values()),
    )


def options_of(hand: Path) -> PortOptions:
    """The options that ask for what a hand-made port has."""
    text = "\n".join(path.read_text(errors="replace") for path in hand.rglob("*.py"))
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return PortOptions(
        precision="allow_mix_precision" if "allow_mix_precision" in code else None,
        loss_scale=parse_loss_scale("exponential") if _LOSS_SCALES.search(code) else None,
        devices=8 if any(word in code for word in _DISTRIBUTED) else 1,
    )


def _outcome(
    change: HandChange,
    topic: Topic,
    answers: list[Answer],
    used: set[tuple[str, int]],
    near: Nearness,
    original: Path,
) -> Scored | None:
    """The best answer to a change at some distance, if there is one."""
    if near == "tree" and topic.name not in _OF_THE_TREE:
        return None
    candidates = [
        (index, answer)
        for index, answer in enumerate(answers)
        if topic.answered_by(answer.rule)
        and _is_near(answer, change, near, original)
        # An answer far from a change answers one change only.
        and (near in ("here", "function") or topic.once or (topic.name, index) not in used)
    ]
    for outcome in _ORDER:
        for index, answer in candidates:
            if answer.outcome == outcome:
                used.add((topic.name, index))
                return Scored(
                    change=change,
                    topic=topic.name,
                    outcome=outcome,
                    near=near,
                    rule=answer.rule,
                )
    return None


def _needless(change: HandChange, topic: Topic, original: Path) -> Scored | None:
    reason = why_needless(change, topic.name, original)
    if not reason:
        return None
    return Scored(change=change, topic=topic.name, outcome="needless", rule=reason)


def _is_near(answer: Answer, change: HandChange, near: Nearness, original: Path) -> bool:
    if near == "tree":
        # One of the two scripts runs the other.
        return answer.path == change.path or (
            _imports(original, answer.path, change.path)
            or _imports(original, change.path, answer.path)
        )
    if answer.path != change.path:
        return False
    if near == "file" or answer.whole:
        return True
    if near == "function":
        return bool(change.scope) and answer.scope[: len(change.scope)] == change.scope
    return change.first - _LINES <= answer.line <= change.last + _LINES


@cache
def _imports(original: Path, path: str, other: str) -> bool:
    """Whether a script names another one in an import."""
    text = (original / path).read_text(errors="replace")
    name = other.removesuffix("/__init__.py").removesuffix(".py").rpartition("/")[2]
    return bool(re.search(rf"^\s*(?:from|import)\b.*\b{re.escape(name)}\b", text, re.MULTILINE))


def _answers(report: TreeReport, original: Path) -> list[Answer]:
    return [answer for file in report.files for answer in _of_file(file, original)]


def _of_file(file: FileReport, original: Path) -> Iterable[Answer]:
    if file.status == "unreadable":
        yield Answer(path=file.path, line=1, scope=(), rule="*", outcome="reported", whole=True)
        return
    found: list[tuple[str, int, Outcome]] = [
        *((item.rule, item.place.line, "rewritten") for item in file.edits),
        *((item.rule, item.place.line, "reported") for item in file.findings),
        *((item.rule, item.place.line, "left") for item in file.kept),
    ]
    if not found:
        return
    text = (original / file.path).read_text(errors="replace").lstrip("\ufeff")
    lines = statements(text) or []
    for rule, line, outcome in found:
        scope: tuple[str, ...] = ()
        for item in lines:
            if item.first <= line:
                scope = item.scope
        yield Answer(
            path=file.path, line=line, scope=scope, rule=rule, outcome=outcome, whole=False
        )
