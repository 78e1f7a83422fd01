"""One call of the command: the parts in order, until the time is up.

Each measurement has a process of its own, so that a crash, exhausted memory or a hang loses nothing
else. It is forked from this one, which has imported everything and never uses the device.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

from jumar.ground.errors import UserError, unknown_name
from jumar.ground.files import write_text
from jumar.ground.paths import exists, is_folder, make_folder, make_writable
from jumar.ground.text import counted, print_plain
from jumar.training.run_directory import finite, write_json
from on_accelerator.child import Child, now, recorded
from on_accelerator.machine import describe_machine
from on_accelerator.measuring import Context, Measurement, Part
from on_accelerator.records import Record, Records
from on_accelerator.tables import markdown

_GRACE_S = 20.0
"""A measurement that looks at the clock between its rounds ends so long after the deadline."""
_HANGS_AFTER = 3.0
_TRUST_S = 60.0
"""Estimates are corrected slowly: as if measurements of so long had taken as long as estimated."""
_MIN_LIMIT_S = 120.0
_MACHINE_LIMIT_S = 120.0
ALL_MEASURED, SOME_FAILED, TIME_IS_UP = 0, 1, 3


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the command.

    Attributes:
        only: Names of measurements, where not all of the parts are to be made; those of the rates
            are always made.
        least_limit_s: After how many seconds at least a measurement counts as hanging.
    """

    device: str
    minutes: float
    out: Path
    small: bool
    data: Path | None
    command: str
    only: Sequence[str] = ()
    least_limit_s: float = _MIN_LIMIT_S


class Session:
    """One call of the command.

    Args:
        parts: What to measure, in order. Those in `first` come before everything else.
        options: How.
        say: Prints a line.
        reported: All parts that earlier calls may have measured into the folder.

    Raises:
        UserError: A path or the device cannot be used.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        options: Options,
        say: Callable[[str], None] = print_plain,
        *,
        reported: Sequence[Part] = (),
    ) -> None:
        self._parts, self._options, self._say = parts, options, say
        self._reported = reported or parts
        started = time.time()
        _check(options)
        self._context = Context(
            device=options.device,
            small=options.small,
            out=options.out,
            work=options.out / "work",
            data=options.data,
            deadline=started + 60 * options.minutes,
        )
        self._log = options.out / "log.txt"
        self._records = Records(options.out, self._machine())
        make_folder(self._context.work)
        plan = {part.name: _planned(part, self._context) for part in parts}
        self._plan = _only(plan, options.only) if options.only else plan
        self._estimated, self._taken, self._num_made = 0.0, 0.0, 0

    def run(self) -> int:
        """Measure what is left.

        Returns:
            0: everything is measured or cannot be here; 1: something failed; 3: the time is up.
        """
        self._say(self._records.machine["description"])
        self._write()
        failed_before = {part.name: self._with_state(part, "failed") for part in self._parts}
        for is_later in (False, True):
            for part in self._parts:
                self._run(part, [m for m in self._untried(part) if m.is_later == is_later])
        # What failed in an earlier call is tried again, after everything else.
        for part in self._parts:
            self._run(part, failed_before[part.name])
        if any(self._left(part) for part in self._parts):
            self._say(f"the time is up; the same command goes on: {self._options.command}")
            return TIME_IS_UP
        failed = sum(len(self._with_state(part, "failed")) for part in self._parts)
        return SOME_FAILED if failed else ALL_MEASURED

    def _machine(self) -> dict[str, Any]:
        """What is measured on, from a process that may use the device."""
        options = self._options
        child = Child(
            lambda pipe: pipe.send(describe_machine(options.device)), log=None, leads=True
        )
        try:
            described = child.receive(_MACHINE_LIMIT_S)
        except TimeoutError:
            raise UserError(
                f"the device did not answer within {_MACHINE_LIMIT_S:.0f} s", where="--device"
            ) from None
        except EOFError:
            raise UserError(
                f"the process that opened the device {child.end()}", where="--device"
            ) from None
        child.end()
        if isinstance(described, UserError):
            raise described
        return {**described, "small": options.small, "command": options.command, "date": now()}

    def _untried(self, part: Part) -> list[Measurement]:
        records = {m.name: self._records.of(part.name, m.name) for m in self._plan[part.name]}
        return [
            m
            for m in self._plan[part.name]
            if (record := records[m.name]) is None or record.state in ("goes on", "missing")
        ]

    def _with_state(self, part: Part, state: str) -> list[Measurement]:
        return [
            m
            for m in self._plan[part.name]
            if (record := self._records.of(part.name, m.name)) is not None and record.state == state
        ]

    def _left(self, part: Part) -> list[Measurement]:
        """What another call would go on with."""
        missing = self._with_state(part, "missing")
        return [m for m in self._untried(part) if m not in missing]

    def _run(self, part: Part, pending: Sequence[Measurement]) -> None:
        """Measure what is pending of a part, as far as the time allows."""
        done: list[Record] = []
        for measurement in pending:
            left = self._context.seconds_left
            # At least one a call: an estimate may be above --minutes.
            if left <= 0 or (self._num_made and measurement.seconds * self._pace > left):
                continue
            record = self._measured(part, measurement)
            self._num_made += 1
            self._records.add(record)
            self._write()
            self._say(_line(record))
            done.append(record)
        if done:
            self._say_what_is_left(part, done)

    def _measured(self, part: Part, measurement: Measurement) -> Record:
        """Let a process measure; if it is lost, the record says how."""
        context = replace(self._context, rates=self._rates())
        began = time.time()
        child = Child(
            lambda pipe: pipe.send(recorded(part.name, measurement, context)),
            self._log,
            leads=True,
        )
        ended, reason = "", ""
        try:
            record: Record = child.receive(self._limit_s(measurement))
            if not measurement.is_slice:
                self._estimated += measurement.seconds
                self._taken += record.seconds
            return record
        except TimeoutError:
            reason = f"no answer for {time.time() - began:.0f} s"
            if context.seconds_left <= 0:
                reason = "was still going on when the time was up (--minutes)"
        except EOFError:
            pass
        finally:
            ended = child.end()
        return Record(
            part=part.name,
            measurement=measurement.name,
            state="failed",
            reason=reason or f"its process {ended}",
            seconds=time.time() - began,
            at=now(),
        )

    def _limit_s(self, measurement: Measurement) -> float:
        """Seconds until a measurement counts as hanging."""
        estimate = _HANGS_AFTER * measurement.seconds * self._pace
        limit = inf if measurement.is_slice else max(estimate, self._options.least_limit_s)
        return min(limit, max(self._context.seconds_left, 0) + _GRACE_S)

    @property
    def _pace(self) -> float:
        return (self._taken + _TRUST_S) / (self._estimated + _TRUST_S)

    def _rates(self) -> dict[str, float]:
        measured = {
            str(row["what"]): float(row["rate"])
            for record in self._records.of_part("rates")
            for row in record.rows
        }
        return peaks(measured)

    def _say_what_is_left(self, part: Part, done: Sequence[Record]) -> None:
        states = [record.state for record in done]
        counts = ", ".join(f"{states.count(s)} {s}" for s in dict.fromkeys(states))
        left = [f"{part.name} {len(queue)}" for part in self._parts if (queue := self._left(part))]
        if not left:
            self._say(f"{part.name}: {counts}; nothing is left")
            return
        seconds = self._pace * sum(m.seconds for part in self._parts for m in self._left(part))
        self._say(
            f"{part.name}: {counts}; left: {', '.join(left)}, about "
            f"{counted(max(round(seconds / 60), 1), 'minute')}"
        )

    def _write(self) -> None:
        """Write both forms of the report."""
        out, records = self._options.out, self._records
        parts = {part.name: records.of_part(part.name) for part in self._reported}
        content = {
            "machine": records.machine,
            "parts": {name: [vars(record) for record in each] for name, each in parts.items()},
        }
        write_json(out / "results.json", finite(content))
        titles = {part.name: part.title for part in self._reported}
        write_text(out / "results.md", markdown(records.machine, titles, parts))


def _check(options: Options) -> None:
    """Check what was asked for, before any process starts."""
    if not 0 < options.minutes <= 24 * 60:
        raise UserError(f"cannot be {options.minutes:g}", where="--minutes", todo="Above 0.")
    if options.data is not None and not is_folder(options.data):
        raise UserError(f"'{options.data}' is not a folder", where="--data")
    out = options.out
    if exists(out) and not is_folder(out):
        raise UserError(f"'{out}' is not a folder", where="--out", todo="Name another folder.")
    if is_folder(out) and any(out.iterdir()) and not exists(out / "machine.json"):
        raise UserError(
            f"'{out}' holds other files than measurements",
            where="--out",
            todo="Name an empty folder, or one that does not exist.",
        )
    make_folder(out)
    make_writable(out)


def _planned(part: Part, context: Context) -> Sequence[Measurement]:
    """The measurements of a part.

    Raises:
        UserError: A package is missing that training itself needs.
    """
    try:
        return part.measurements(context)
    except ModuleNotFoundError as error:
        raise UserError(
            f"needs {error.name}, which is not installed",
            where=f"the part {part.name}",
            todo="docs/results.md lists the wheels to send along: "
            "pip install --no-index --no-deps wheels/*.whl",
        ) from error


def _only(
    plan: Mapping[str, Sequence[Measurement]], names: Sequence[str]
) -> dict[str, Sequence[Measurement]]:
    """The named measurements, and all of the rates, which the shares of the others are of.

    Raises:
        UserError: There is no such measurement.
    """
    known = [each.name for part in plan.values() for each in part]
    for name in names:
        if name not in known:
            raise unknown_name("measurement", name, known, where="--only")
    return {
        part: [each for each in measurements if part == "rates" or each.name in names]
        for part, measurements in plan.items()
    }


def _line(record: Record) -> str:
    text = f"  {record.part}: {record.measurement}: {record.state}, {record.seconds:.1f} s"
    return f"{text}: {record.reason}" if record.reason else text


def peaks(measured: Mapping[str, float]) -> dict[str, float]:
    """Measured rates as peaks: that of no narrow dtype lies below float32's.

    A processor without units for 16 bits multiplies them more slowly than float32, and its
    libraries then compute in float32 and round, so that a step would reach several times its peak.
    """
    least = measured.get("float32", 0.0)
    return {
        name: max(rate, least) if name in ("bfloat16", "float16") else rate
        for name, rate in measured.items()
    }
