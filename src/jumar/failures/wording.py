"""Formats an explanation as text, in both languages."""

from collections.abc import Iterator, Sequence
from typing import Final

from jumar.failures.causes import Candidate, Explanation
from jumar.failures.reading.forms import YEARLESS
from jumar.failures.reading.sightings import Sighting
from jumar.ground.text import Language, Text, counted

MAX_LINE_LENGTH: Final = 240
MAX_EVIDENCE: Final = 4
MAX_CONSEQUENCES: Final = 8
"""Number of consequences and later faults that are listed."""
_FIRST: Final = Text(en="First cause: {what}", zh="首要原因：{what}")
_NEXT: Final = Text(en="Or: {what}", zh="或者：{what}")
_BLAMED: Final = Text(en="to blame", zh="责任方")
_SEEN: Final = Text(en="seen on", zh="出现在")
_WHERE: Final = Text(en="where", zh="位置")
_TRY: Final = Text(en="try first", zh="首先尝试")
_EVIDENCE: Final = Text(en="evidence", zh="依据")
_COLLATERAL: Final = Text(en="Consequences and later faults:", zh="由其引起或随后出现：")
_READ: Final = Text(
    en="Read: {files} with {lines}{ranks}", zh="已读取：{files} 个文件，{lines} 行{ranks}"
)
_RANKS: Final = Text(en=", {ranks}", zh="，{ranks}")
_WORLD: Final = Text(en=" of {world}", zh="（共 {world} 个）")
_UNREAD: Final = Text(en="Not read: {name}: {why}", zh="未读取：{name}：{why}")
_NOTHING: Final = Text(
    en="No known fault was recognised. The first lines that look like errors:",
    zh="没有识别出已知故障。最早的疑似错误行：",
)
_NO_ERRORS: Final = Text(
    en="No known fault was recognised, and no line looks like an error.",
    zh="没有识别出已知故障，也没有疑似错误的行。",
)
_SAYS: Final = Text(en="message", zh="原文")
_WAS_AT: Final = Text(en="was at", zh="当时位于")


def lines_of(explanation: Explanation, language: Language) -> Iterator[str]:
    """Yield the lines of an explanation; untrusted text is not yet escaped."""
    yield _files_read(explanation, language)
    for name, reason in list(explanation.job.unread.items())[:5]:
        yield _UNREAD.filled(name=name, why=reason).in_language(language)
    yield ""
    for index, candidate in enumerate(explanation.candidates):
        collateral = explanation.collateral
        yield from _candidate(candidate, collateral, language, head=_NEXT if index else _FIRST)
        yield ""
    if not explanation.candidates:
        message = _NOTHING if explanation.errors else _NO_ERRORS
        yield message.in_language(language)
        for error in explanation.errors:
            yield f"  {error.file}:{error.line}: {shortened(error.text)}"
    elif explanation.collateral:
        yield _COLLATERAL.in_language(language)
        for candidate in explanation.collateral[:MAX_CONSEQUENCES]:
            count = sum(sighting.count for sighting in candidate.sightings)
            ranks = f" · {named_ranks(candidate.ranks, language)}" if candidate.ranks else ""
            times = f"{count} 行" if language == "zh" else counted(count, "line")
            yield f"  {candidate.fault.id}{ranks} · {times}"


def _files_read(explanation: Explanation, language: Language) -> str:
    job = explanation.job
    ranks: Text | str = ""
    if job.ranks:
        world = _WORLD.filled(world=job.world).in_language(language) if job.world else ""
        ranks = _RANKS.filled(ranks=named_ranks(sorted(job.ranks), language) + world)
    num_lines = f"{job.lines:,}"
    return _READ.filled(
        files=Text(en=counted(len(job.files), "file"), zh=str(len(job.files))),
        lines=Text(en=f"{num_lines} {'line' if job.lines == 1 else 'lines'}", zh=num_lines),
        ranks=ranks,
    ).in_language(language)


def _candidate(
    candidate: Candidate, collateral: tuple[Candidate, ...], language: Language, *, head: Text
) -> Iterator[str]:
    colon = "：" if language == "zh" else ": "

    def item(name: Text, value: str) -> str:
        return f"  {name.in_language(language)}{colon}{value}"

    yield f"{head.filled(what=candidate.fault.what).in_language(language)} [{candidate.fault.id}]"
    if candidate.first.says:
        yield item(_SAYS, shortened(candidate.first.says))
    if candidate.culprit is not None:
        yield item(_BLAMED, blamed(candidate, language))
        for rank, frame in _frames(candidate.culprit.ranks, collateral):
            yield item(_WAS_AT, f"{frame} (rank {rank})")
    if candidate.ranks:
        yield item(_SEEN, named_ranks(candidate.ranks, language))
    yield item(_WHERE, " · ".join(_location(candidate.first)))
    yield item(_TRY, candidate.fault.first.in_language(language))
    yield item(_EVIDENCE, "").rstrip()
    for sighting in _evidence(candidate):
        yield f"    {sighting.file}:{sighting.line}: {shortened(sighting.text)}"


def _frames(ranks: tuple[int, ...], collateral: tuple[Candidate, ...]) -> list[tuple[int, str]]:
    """Return the lines of the script at which the culprits were, from their tracebacks."""
    sightings = (sighting for candidate in collateral for sighting in candidate.sightings)
    frames = {
        sighting.rank: sighting.frame
        for sighting in sightings
        if sighting.frame and sighting.rank in ranks
    }
    return [(rank, frames[rank]) for rank in ranks if rank in frames][:MAX_EVIDENCE]


def blamed(candidate: Candidate, language: Language) -> str:
    """Describe the culprit of a wait, with the evidence."""
    culprit = candidate.culprit
    if culprit is None:
        return ""
    culprits = named_ranks(culprit.ranks, language) if culprit.ranks else culprit.where
    separator = "：" if language == "zh" else ": "
    return f"{culprits}{separator}{culprit.why.in_language(language)}"


def _evidence(candidate: Candidate) -> list[Sighting]:
    """Return the first lines, from different ranks if possible."""
    by_rank = {sighting.rank: sighting for sighting in reversed(candidate.sightings)}
    earliest = sorted(by_rank.values(), key=candidate.sightings.index)
    return earliest[:MAX_EVIDENCE]


def _location(sighting: Sighting) -> Iterator[str]:
    yield f"{sighting.file}:{sighting.line}"
    if sighting.rank is not None:
        yield f"rank {sighting.rank}"
    if sighting.device is not None:
        yield f"device {sighting.device}"
    if sighting.host:
        yield sighting.host
    if sighting.frame:
        yield sighting.frame
    if sighting.time is not None:
        yield when(sighting)


def when(sighting: Sighting) -> str:
    """Return the time of a line, without the year if the log has none."""
    time = sighting.time
    if time is None:
        return ""
    return time.isoformat(" ") if time.year > YEARLESS else time.strftime("%m-%d %H:%M:%S")


def named_ranks(ranks: Sequence[int], language: Language) -> str:
    """Return `rank 3` or `ranks 0-3`; Chinese has no plural."""
    several = language == "en" and len(ranks) > 1
    return f"{'ranks' if several else 'rank'} {spans(ranks)}"


def spans(numbers: Sequence[int]) -> str:
    """Abbreviate ranks as `0-3, 7`; a very long list is truncated."""
    parts: list[str] = []
    start = end = -2
    for number in [*numbers, -1]:
        if number == end + 1 and number >= 0:
            end = number
            continue
        if end >= 0:
            parts.append(str(start) if start == end else f"{start}-{end}")
        start = end = number
    return ", ".join(parts[:12]) + (", …" if len(parts) > 12 else "")


def shortened(text: str) -> str:
    """Shorten a line to be shown as evidence."""
    text = text.strip()
    return text if len(text) <= MAX_LINE_LENGTH else f"{text[:MAX_LINE_LENGTH]}…"
