"""Finds the ranks that held up the others: they are behind, missing, or at the end of a chain of
waiting ranks.

A rank that reports a timeout behaved correctly; the rank for which it waited is to blame.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from jumar.ground.text import Text

MAX_ENTRIES: Final = 100_000
WAIT_WORDS: Final = (
    *("SeqNum=", "ast enqueued", "index[", "remote rank", "time out", "remote physic id"),
    *("phydevId[", "eartbeat", "no connect", "at NCCL work", "remoteRank:", "remoteIpAddr["),
)
_WORK: Final = re.compile(r"SeqNum=(\d{1,18}), OpType=(\w{1,40})")
_PROGRESS: Final = re.compile(
    r"[lL]ast enqueued (?:NCCL |HCCL )?work: (-?\d{1,18}), "
    r"last completed (?:NCCL |HCCL )?work: (-?\d{1,18})"
)
_GROUP: Final = re.compile(r"\[PG (?:ID )?(\d{1,9})")
_INDEX: Final = re.compile(r"tag\[[^\]_]{0,60}_([^\]]{1,200})\], ?index\[(\d{1,12})\]")
_LINK: Final = re.compile(
    r"\|\s*[\w.:]{2,60}\((\d{1,6})\)\s*\|(?:[^|]{0,40}\|)?\s*[\w.:]{2,60}\((\d{1,6})\)\s*\|"
    r"(?:[^|]{0,40}\|){1,2}\s*(?:time out|no connect)"
)
_NOTIFIER: Final = re.compile(r"notify id:\[.{1,80}?remote rank:\[(\d{1,6})\]")
_OTHER_END: Final = re.compile(r"remoteIpAddr\[([\w.:-]{2,60})/(\d{1,4})\]")
_PHYSICAL: Final = re.compile(r"remote physic id:(\d{1,4})")
_RANK_DEVICE: Final = re.compile(
    r"rank\[(\d{1,6})\].{0,400}?server\[([\w.:-]{2,60}).{0,200}?phydevId\[(\d{1,4})\]"
)
_LOST: Final = re.compile(
    r"(?:Location\[IP/ID\]:\[|server:[\w.:-]{2,60}/\d{1,4}, ?server:)"
    r"([\w.:-]{2,60})/(\d{1,4})\b.{0,200}?Heartbeat Lost"
)


@dataclass(frozen=True, kw_only=True)
class Culprit:
    """The culprit of a wait.

    Args:
        ranks: The ranks, if known.
        where: Another description, if the rank is unknown.
        why: The evidence.
    """

    ranks: tuple[int, ...] = ()
    where: str = ""
    why: Text


@dataclass
class Waits:
    """The reports of a job's ranks about the collectives in which they waited."""

    failing: dict[int, tuple[int, str]] = field(default_factory=dict[int, tuple[int, str]])
    enqueued: dict[str, dict[int, int]] = field(default_factory=dict[str, dict[int, int]])
    index: dict[str, dict[int, int]] = field(default_factory=dict[str, dict[int, int]])
    waits_for: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    devices: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    remote_devices: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    remote_ends: set[tuple[int, str, int]] = field(default_factory=set[tuple[int, str, int]])
    notifiers: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    lost: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    @staticmethod
    def concerns(text: str) -> bool:
        """Return whether a line may be about waiting."""
        return any(word in text for word in WAIT_WORDS)

    def add_line(self, rank: int | None, text: str) -> None:
        """Process one line.

        Args:
            rank: The rank that wrote the line, if known.
            text: The line.
        """
        if not self.concerns(text):
            return
        if (match := _RANK_DEVICE.search(text)) and len(self.devices) < MAX_ENTRIES:
            self.devices.setdefault((match[2], int(match[3])), int(match[1]))
        if (match := _LINK.search(text)) and len(self.waits_for) < MAX_ENTRIES:
            self.waits_for.add((int(match[2]), int(match[1])))
        if (match := _LOST.search(text)) and len(self.lost) < MAX_ENTRIES:
            self.lost.append((match[1], int(match[2])))
        if rank is not None:
            self._add_line_of(rank, text)

    def _add_line_of(self, rank: int, text: str) -> None:
        if max(map(len, (self.failing, self.index, self.enqueued))) > MAX_ENTRIES:
            return
        if (match := _WORK.search(text)) and "time" in text:
            self.failing.setdefault(rank, (int(match[1]), match[2]))
        if match := _PROGRESS.search(text):
            group = _GROUP.search(text)
            self.enqueued.setdefault(group[1] if group else "", {}).setdefault(rank, int(match[1]))
        if match := _INDEX.search(text):
            self.index.setdefault(match[1], {}).setdefault(rank, int(match[2]))
        if (match := _OTHER_END.search(text)) and len(self.remote_ends) < MAX_ENTRIES:
            self.remote_ends.add((rank, match[1], int(match[2])))
        for pattern, others in ((_PHYSICAL, self.remote_devices), (_NOTIFIER, self.notifiers)):
            if (match := pattern.search(text)) and len(others) < MAX_ENTRIES:
                others.add((rank, int(match[1])))

    def culprit(self, reporters: set[int], ranks: set[int], world: int) -> Culprit | None:
        """Return the ranks to blame, or None if the logs do not show them.

        Args:
            reporters: Ranks that report a timeout.
            ranks: Ranks with any line in the logs.
            world: The number of ranks, or 0 if no line names it.
        """
        return (
            self._behind()
            or self._end_of_chain(reporters, world)
            or self._out_of_step()
            or self._silent(reporters, ranks, world)
            or self._lost()
        )

    def _behind(self) -> Culprit | None:
        """Find ranks that never started the operation in which the others waited."""
        for progress in (*self.enqueued.values(), *self.index.values()):
            furthest = max(
                (self.failing[rank][0] for rank in progress if rank in self.failing), default=None
            )
            if furthest is None and progress in self.index.values():
                furthest = max(progress.values())
            if furthest is None:
                continue
            behind = tuple(sorted(rank for rank, step in progress.items() if step < furthest))
            if behind and len(behind) < len(progress):
                last_started = max(progress[rank] for rank in behind)
                return Culprit(ranks=behind, why=BEHIND.filled(wanted=furthest, last=last_started))
        return None

    def _out_of_step(self) -> Culprit | None:
        """Find the minority of ranks that waited in a different operation."""
        if len(self.failing) < 3:
            works = sorted(self.failing.items())
            if len(works) == 2 and works[0][1][1] != works[1][1][1]:
                return Culprit(ranks=tuple(rank for rank, _ in works), why=_different(works))
            return None
        ((majority, count), *other_works) = Counter(self.failing.values()).most_common()
        minority = tuple(sorted(rank for rank, work in self.failing.items() if work != majority))
        if not other_works or count <= len(minority):
            return None
        works = sorted(self.failing.items(), key=lambda item: item[1] != majority)
        return Culprit(ranks=minority, why=_different([works[-1], works[0]]))

    def _end_of_chain(self, reporters: set[int], world: int) -> Culprit | None:
        """Find ranks that waited for no other rank, while others waited for them."""
        self.waits_for |= set(self._device_edges())
        edges = self.waits_for or self.notifiers
        waiting = {rank for rank, _ in edges}
        # A number that is not a rank of the job belongs to another job or to the numbering of a
        # group.
        chain_ends = {rank for _, rank in edges if not world or rank < world} - waiting
        silent = tuple(sorted(chain_ends - reporters)) or tuple(sorted(chain_ends))
        if not silent:
            return self._pair()
        chain = " → ".join(map(str, _chain(edges, silent[0])))
        return Culprit(ranks=silent, why=CHAIN.filled(chain=chain))

    def _pair(self) -> Culprit | None:
        """Find the only pair of ranks that wait for each other to open their link."""
        mutual = [
            (rank, partner) for rank, partner in self.waits_for if (partner, rank) in self.waits_for
        ]
        pairs = {pair for pair in mutual if pair[0] < pair[1]}
        return Culprit(ranks=pairs.pop(), why=MUTUAL) if len(pairs) == 1 else None

    def _device_edges(self) -> Iterable[tuple[int, int]]:
        nodes = {rank: node for (node, _), rank in self.devices.items()}
        for rank, device in self.remote_devices:
            if rank in nodes and (nodes[rank], device) in self.devices:
                yield rank, self.devices[nodes[rank], device]
        for rank, node, device in self.remote_ends:
            if (node, device) in self.devices:
                yield rank, self.devices[node, device]

    def _silent(self, reporters: set[int], ranks: set[int], world: int) -> Culprit | None:
        """Find ranks that report no timeout while most others do."""
        count = max(world, max(ranks | reporters, default=-1) + 1)  # ranks count from 0
        everyone = ranks | set(range(count if count <= MAX_ENTRIES else 0))
        silent = tuple(sorted(everyone - reporters))
        if not reporters or not silent or len(silent) > len(reporters):
            return None
        if self.waits_for:  # the logs name the awaited ranks, which are not silent
            return None
        return Culprit(ranks=silent, why=SILENT)

    def _lost(self) -> Culprit | None:
        if not self.lost:
            return None
        node, device = self.lost[0]
        rank = self.devices.get((node, device))
        description = "" if rank is not None else f"{node}, device {device}"
        return Culprit(ranks=() if rank is None else (rank,), where=description, why=LOST)


def _chain(edges: set[tuple[int, int]], end: int) -> list[int]:
    """Return a chain of at most eight waiting ranks that ends at a rank."""
    chain = [end]
    while len(chain) < 8:
        predecessors = sorted(
            rank for rank, target in edges if target == chain[0] and rank not in chain
        )
        if not predecessors:
            break
        awaited = [rank for rank in predecessors if any(target == rank for _, target in edges)]
        chain.insert(0, (awaited or predecessors)[0])
    return chain


def _different(works: list[tuple[int, tuple[int, str]]]) -> Text:
    (rank, (step, operation)), (other_rank, (other_step, other_operation)) = works[0], works[-1]
    return DIFFERENT.filled(
        one=rank,
        first=step,
        first_op=operation,
        other=other_rank,
        second=other_step,
        second_op=other_operation,
    )


BEHIND: Final = Text(
    en="never started operation {wanted}, in which the others waited; last started: {last}",
    zh="从未开始其他 rank 正在等待的第 {wanted} 次操作，最后开始的是第 {last} 次",
)
CHAIN: Final = Text(
    en="waits for no other rank, while others wait for it ({chain})",
    zh="其他 rank 在等待它，而它没有等待任何 rank（{chain}）",
)
MUTUAL: Final = Text(
    en="wait for each other: check their link, and firewall, TLS and addresses at both ends",
    zh="互相等待：请检查两者之间的链路，或其中一端的防火墙、TLS、地址",
)
DIFFERENT: Final = Text(
    en="rank {one} was in operation {first} ({first_op}), rank {other} in {second} ({second_op})",
    zh="rank {one} 在第 {first} 次（{first_op}），rank {other} 在第 {second} 次（{second_op}）",
)
SILENT: Final = Text(
    en="no timeout reported, unlike the others: exited, hanging or late",
    zh="其他 rank 都报告了超时，唯独它没有：可能已退出、卡住或过慢",
)
LOST: Final = Text(
    en="lost its heartbeat before the others timed out",
    zh="在其他 rank 超时之前，它的心跳已丢失",
)
