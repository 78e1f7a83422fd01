"""Reads all logs of a job once, from beginning to end.

Memory does not grow with the logs: per fault, rank and file it keeps the first line and a count.
"""

import re
from collections import Counter
from datetime import datetime
from itertools import islice, takewhile
from pathlib import PurePath
from typing import Final

from jumar.failures.reading import forms, raised
from jumar.failures.reading.lines import Line, lines_of, unescaped
from jumar.failures.reading.sightings import ErrorLine, Job, Sighting, fill_times, in_year
from jumar.failures.reading.sources import DAMAGED, Source, sources_of
from jumar.failures.reading.tracebacks import Stream, Tracebacks, is_source_in
from jumar.failures.table import Fault, Mark, Sieve, Table, codes_in
from jumar.failures.waiting import WAIT_WORDS, Waits
from jumar.ground.errors import UserError

BATCH: Final = 256
"""Lines that are processed together."""
MAX_SIGHTINGS: Final = 20_000
MAX_PROCESSES: Final = 20_000
MAX_PENDING: Final = 4_000
FIRST_ERRORS: Final = 8
_FAILING: Final = re.compile(
    r"(?<!\bno )(?<!\b0 )(?<!\bignored )(?<!\bignoring )"
    r"(?:error|fail|exception|traceback|fatal|abort|killed)(?!\w{0,5}\s?[:=]\s?(?:0\b|none\b))",
    re.IGNORECASE,
)
_RANK_WORDS: Final = (
    *("rank[", "ranks[", "userRank[", "nranks ", "rankNum[", "rankSize[", "rankId["),
    *("totalRanks[", "RankID:", "world_size", "worldsize", "(local_rank: ", "exitcode"),
)
_RELEVANT_WORDS: Final = (
    *("rror", "RROR", "ail", "AIL", "xception", "XCEPTION", "raceback", "atal", "bort", "illed"),
    *("Interrupt", "Exit", "StopIteration", "Timeout", "Expired", ".Empty", 'File "', "│ /"),
    *("Cell In", "During handling of", "exit", "returned", "return code", "ignal", "SIG", "rc="),
    *("File /", "File ~", "Killed", ": E tensorflow/"),
    *_RANK_WORDS,
    *WAIT_WORDS,
)
"""Words in lines that are examined even if they contain no fault."""
_RANK: Final = re.compile(r"\[rank(\d{1,6})\]")


def read_job(paths: list[str], table: Table) -> Job:
    """Read logs, folders of logs, archives of them, or `-` for the standard input.

    Raises:
        UserError: A path cannot be read, or none of the files has a line of text.
    """
    reader = _Reader(table)
    for source in sources_of(paths):
        reader.read(source)
    job = reader.finished()
    if not job.lines:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in list(job.unread.items())[:3])
        raise UserError(
            "no line of text was read" + (f" ({reasons})" if reasons else ""),
            where=", ".join(paths),
            todo="Specify the logs of the job: plog files, output of torchrun, or their folder.",
        )
    return job


_Key = tuple[str, int, int | None, int | None]
"""Identifies a sighting: fault, index of the log, rank, and process if the rank is unknown."""


class _Reader:
    """Reads sources in sequence."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._job = Job()
        self._seen: dict[_Key, Sighting] = {}
        self._ranks_of: dict[tuple[int, int], int] = {}
        self._tracebacks = Tracebacks()
        self._bound: dict[int, list[tuple[int, int]]] = {}
        self._pending: list[tuple[int, int, str]] = []
        self._names: list[str] = []
        self._source = -1
        self._name = ""
        self._last = self._before = ""
        self._raised_at = -raised.CONTINUED
        self._progress = self._informed = 0
        self._last_raised: dict[Stream, Sighting] = {}
        self._undoable: dict[str, dict[_Key, Sighting]] = {}
        self._file_rank: int | None = None
        self._block_rank: int | None = None
        self._time: datetime | None = None

    def read(self, source: Source) -> None:
        """Read one stream; a damaged one is read as far as possible."""
        self._source += 1
        self._name, self._time, self._block_rank = source.name, None, None
        self._progress = self._informed = 0
        self._undoable.clear()
        self._names.append(source.name)
        self._file_rank = forms.rank_in_name(source.name)
        before = self._job.lines
        try:
            with source.open() as stream:
                lines = lines_of(stream, source.max_bytes)
                while batch := list(islice(lines, BATCH)):
                    self._process_batch(batch)
        except DAMAGED as error:
            self._job.unread[source.name] = str(error) or type(error).__name__
        if self._job.lines > before:
            self._job.files.append(source.name)
            if self._file_rank is not None:
                self._job.ranks.add(self._file_rank)

    def _process_batch(self, batch: list[Line]) -> None:
        """Process a batch of lines; the irrelevant ones are filtered out together."""
        text = "\n".join(line.text for line in batch)
        sieve = self._table.sieve(text)
        present_words = tuple(word for word in _RELEVANT_WORDS if word in text)
        first = self._job.lines
        undone = self._table.undone_in(text.lower())
        has_activity = any(word in text for word in forms.ACTIVITY_WORDS)
        counted = 0
        if (
            sieve.marks
            or sieve.codes
            or present_words
            or undone
            or self._tracebacks.expects_message
        ):
            for count, line in enumerate(batch, 1):
                if undone:
                    self._undo(undone, line.text.lower())
                self._before = batch[count - 2].text if count > 1 else self._last
                fault = sieve.fault_in(line.text)
                if (
                    fault is not None
                    or self._tracebacks.expects_message
                    or any(word in line.text for word in present_words)
                    or line.text.startswith(": ")
                    or (sieve.codes and any(codes_in(line.text)))
                ):
                    self._job.lines = first + count
                    if has_activity:
                        self._count_progress(batch[counted:count])
                        counted = count
                    self._process_quoted(line, fault, sieve)
        if has_activity:
            self._count_progress(batch[counted:])
        self._job.lines = first + len(batch)
        self._last = batch[-1].text
        self._job.ranks.update(int(rank) for rank in set(_RANK.findall(text)))

    def _count_progress(self, lines: list[Line]) -> None:
        """Count lines that show that the program continues, up to a relevant line."""
        self._progress += sum("loss" in line.text for line in lines)
        self._informed += any(forms.reports_activity(line.text) for line in lines)

    def _undo(self, undone: list[tuple[Mark, str]], lower_line: str) -> None:
        """Mark the faults that a line shows to be over as survived."""
        over = {fault for mark, fault in undone if mark.is_in(lower_line)}
        for fault in over:
            for key, sighting in self._undoable.pop(fault, {}).items():
                sighting.survived = True
                if sighting.fault.role == "note":
                    self._seen.pop(key, None)

    def _process_quoted(self, line: Line, fault: Fault | None, sieve: Sieve) -> None:
        """Process a line; if it quotes a whole log, as a JSON response may, process its parts."""
        parts = unescaped(line.text)
        if len(parts) == 1:
            self._process_line(line, fault)
            return
        for part in parts:
            self._process_line(Line(line.number, part), sieve.fault_in(part))
            self._before = part

    def _process_line(self, line: Line, fault: Fault | None) -> None:
        origin = forms.origin_of(line.text)
        text = origin.text
        stream = (self._source, origin.rank, origin.pid)
        fault = self._fault_of(fault, origin)
        before = forms.origin_of(self._before).text
        if self._tracebacks.is_message(stream, text, before):
            self._raised_at = self._job.lines
            if fault is None or fault.role in ("end", "note"):
                fault = self._table.faults.get(raised.kind_of_message(text))
        if fault is not None or any(word in text for word in _RANK_WORDS) or Waits.concerns(text):
            self._complete(origin, line.text)
            self._record_wait(origin, text)
        if origin.rank is not None and origin.rank <= forms.MAX_RANK:
            self._job.ranks.add(origin.rank)
        self._tracebacks.add_line(stream, text)
        last = self._last_raised.get(stream)
        if last is not None and (
            raised.is_handled(text, forms.origin_of(last.text).text)
            or (
                self._tracebacks.went_another_way(stream)
                and raised.is_optional(forms.origin_of(last.text).text)
            )
        ):
            last.survived = True
        if raised.exception_in(text) or raised.is_wrapped(text):
            self._raised_at = self._job.lines
        if fault is not None:
            self._record(fault, origin, line)
        elif len(self._job.errors) < FIRST_ERRORS and _FAILING.search(text):
            self._job.errors.append(ErrorLine(file=self._name, line=line.number, text=line.text))

    def _fault_of(self, fault: Fault | None, origin: forms.Origin) -> Fault | None:
        """Return the fault of a line, or a general one that quotes the line."""
        before = forms.origin_of(self._before).text
        # The table may contain the name of an exception that is passed on; its message is below.
        if (fault is None or fault.role in ("cause", "general")) and raised.is_wrapped(origin.text):
            return self._table.faults.get(raised.ANNOUNCED)
        if fault is not None and fault.role == "general":
            return None if is_source_in(origin.text, before) else fault
        if fault is not None and fault.id not in raised.VAGUE:
            return self._by_signal(fault, origin)
        if raised.cann_message_in(origin.text):
            return self._table.faults.get(raised.MESSAGE, fault)
        in_traceback = self._tracebacks.has_frames((self._source, origin.rank, origin.pid))
        in_traceback = in_traceback and before.startswith("    ")
        if fault is None and (
            raised.is_exception(origin.text, in_traceback=in_traceback)
            or (raised.exception_in(origin.text) and not is_source_in(origin.text, before))
            or raised.message_of(origin.text, before)
        ):
            return self._table.faults.get(raised.kind_of(origin.text))
        if fault is None and raised.is_logged_error(origin.text):
            return self._table.faults.get(raised.LOGGED)
        if fault is None and (exit_fault := raised.fault_of_exit(origin.text)):
            return self._table.faults.get(exit_fault)
        if fault is None and raised.is_error_line(origin.text):
            return self._table.faults.get(raised.ERROR_LINE)
        return fault

    def _by_signal(self, fault: Fault, origin: forms.Origin) -> Fault:
        """Return the fault of the signal that ended a process, if `fault` reports only the end."""
        signal = raised.fault_of_exit(origin.text) if fault.role == "end" else ""
        by_signal = self._table.faults.get(signal, fault)
        return by_signal if by_signal.role != "end" else fault

    def _record_wait(self, origin: forms.Origin, text: str) -> None:
        rank = self._rank(origin)
        self._job.waits.add_line(rank, text)
        pending = rank is None and origin.pid is not None and Waits.concerns(text)
        if pending and len(self._pending) < MAX_PENDING:
            self._pending.append((self._source, origin.pid or 0, text[:2000]))

    def _complete(self, origin: forms.Origin, line: str) -> None:
        rank = forms.rank_of_summary(line)
        if rank is not None:
            self._block_rank = rank
            origin.rank = rank
        forms.complete(origin, line)
        self._job.world = max(self._job.world, forms.world_in(line))
        if line.lstrip().startswith("exitcode") and origin.rank is None:
            origin.rank = self._block_rank
        has_room = len(self._ranks_of) < MAX_PROCESSES
        if origin.rank is not None and origin.pid is not None and has_room:
            self._ranks_of.setdefault((self._source, origin.pid), origin.rank)

    def _rank(self, origin: forms.Origin) -> int | None:
        if origin.rank is not None:
            return origin.rank
        bound = self._ranks_of.get((self._source, origin.pid)) if origin.pid is not None else None
        return self._file_rank if bound is None else bound

    def _record(self, fault: Fault, origin: forms.Origin, line: Line) -> None:
        self._time = forms.time_in(line.text) or self._time
        rank = self._rank(origin)
        key = (fault.id, self._source, rank, None if rank is not None else origin.pid)
        earlier = self._seen.get(key)
        stream = (self._source, origin.rank, origin.pid)
        # The message of an exception may continue over a few lines.
        continues = self._job.lines - self._raised_at < raised.CONTINUED
        is_raised = raised.is_error(origin.text) or continues
        is_warned = forms.is_warning(line.text) and not (fault.telling and fault.role == "cause")
        survived = self._tracebacks.ended_nothing(stream) or is_warned
        survived = survived or (not is_raised and forms.continues(line.text))
        if earlier is not None:
            earlier.count += 1
            if earlier.blamed is None:
                earlier.blamed = _blamed(fault, origin.text)
            if (survived, not is_raised) >= (earlier.survived, not earlier.raised):
                return
        elif len(self._seen) >= MAX_SIGHTINGS:
            return
        # A raised exception represents the fault better than an earlier warning or mention.
        self._seen[key] = sighting = Sighting(
            fault=fault,
            file=self._name,
            source=self._source,
            line=line.number,
            text=line.text,
            order=self._job.lines,
            time=self._time,
            rank=rank,
            pid=origin.pid,
            device=forms.device_in(origin.text),
            host=origin.host,
            frame=self._tracebacks.frame(stream),
            blamed=_blamed(fault, origin.text) if earlier is None else earlier.blamed,
            says=self._quotation(fault, origin.text),
            survived=survived,
            raised=is_raised,
            traced=self._tracebacks.has_frames(stream),
            progress=self._progress,
            informed=self._informed,
            count=1 if earlier is None else earlier.count,
        )
        if fault.undone:
            self._undoable.setdefault(fault.id, {})[key] = sighting
        if len(self._last_raised) < MAX_PROCESSES or stream in self._last_raised:
            self._last_raised[stream] = sighting

    def _quotation(self, fault: Fault, text: str) -> str:
        before = forms.origin_of(self._before).text
        return raised.quotation(text, before) if fault.quoted else ""

    def finished(self) -> Job:
        """Return the job, with later information applied to earlier lines."""
        sightings = list(self._seen.values())
        for bound in self._ranks_of:
            self._bound.setdefault(bound[1], []).append(bound)
        for source, pid, text in self._pending:
            self._job.waits.add_line(self._rank_of_process(source, pid), text)
        years = [
            sighting.time.year
            for sighting in sightings
            if sighting.time and sighting.time.year != forms.YEARLESS
        ]
        for sighting in sightings:
            if sighting.rank is None and sighting.pid is not None:
                sighting.rank = self._rank_of_process(sighting.source, sighting.pid)
            if sighting.time and sighting.time.year == forms.YEARLESS and years:
                sighting.time = in_year(sighting.time, max(years))
        fill_times(sightings)
        self._job.sightings = sightings
        self._job.ranks |= {sighting.rank for sighting in sightings if sighting.rank is not None}
        return self._job

    def _rank_of_process(self, source: int, pid: int) -> int | None:
        """Return the rank of a process, which a log in another folder may name (`run`, `debug`)."""
        if (source, pid) in self._ranks_of:
            return self._ranks_of[source, pid]
        closeness = Counter[int]()
        for process in self._bound.get(pid, ()):
            common_folders = _num_shared_folders(self._names[source], self._names[process[0]])
            rank = self._ranks_of[process]
            closeness[rank] = max(closeness[rank], common_folders)
        ranks = closeness.most_common(2)
        if not ranks or (len(ranks) == 2 and ranks[0][1] == ranks[1][1]):
            return None
        return ranks[0][0]


def _num_shared_folders(path: str, other_path: str) -> int:
    """Count the leading folders that two paths share."""
    pairs = zip(PurePath(path).parts, PurePath(other_path).parts, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _blamed(fault: Fault, text: str) -> int | None:
    if fault.blames is None:
        return None
    before, after = fault.blames
    start = text.find(before)
    if start < 0:
        return None
    rest = text[start + len(before) :][:12]
    number = re.match(r"\s*(\d{1,6})", rest)
    return int(number.group(1)) if number and after in text[start:] else None
