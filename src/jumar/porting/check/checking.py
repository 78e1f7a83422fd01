"""The stages of a check, one after the other."""

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.text import counted
from jumar.porting.check.carried import not_carried
from jumar.porting.check.interpreter import Interpreter
from jumar.porting.check.losses import Comparison, compare
from jumar.porting.check.reasons import details_of, reason_of
from jumar.porting.check.record import Record, RunStage
from jumar.porting.check.result import CheckResult, Stage
from jumar.porting.check.side import Command, Side, SideRequest, run_side
from jumar.porting.check.supervision import supervise

_COMPILER = Path(__file__).resolve().parent / "runner37" / "compiles.py"
_RUN_STAGES: tuple[tuple[RunStage, str], ...] = (
    ("imports", "imports"),
    ("graph", "builds its graph"),
    ("step", "runs one step"),
)


@dataclass(frozen=True, kw_only=True)
class CheckRequest:
    """What to check, and how far.

    `tolerance` is the largest relative difference between losses that count as equal.
    """

    ported: Path
    original: Path | None
    command: Command
    interpreter: Interpreter
    steps: int
    seed: int
    timeout_s: float
    timeout: str
    tolerance: float

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise UserError(f"{self.steps} steps", where="--steps", todo="Give 1 or more.")
        if not 0 <= self.seed < 2**31:
            raise UserError(
                f"{self.seed} is not a valid seed",
                where="--seed",
                todo="Give 0 or more, below 2**31.",
            )
        if not 0 <= self.tolerance < 1:
            raise UserError(
                f"{self.tolerance} is not a valid tolerance",
                where="--tolerance",
                todo="Give a relative difference from 0 to 1, such as 1e-5.",
            )


def run_check(request: CheckRequest, *, say: Callable[[str], None] = lambda _: None) -> CheckResult:
    """Run all stages; whatever the script does is a result.

    Args:
        request: What is checked.
        say: Called with a line before each part that takes time.

    Returns:
        The stages, the losses and what the stand-in recorded.

    Raises:
        UserError: A path is wrong.
    """
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="jumar-port-check-") as name:
        folder = Path(name).resolve()
        stages = [_parses(request, folder)]
        say("running the port")
        port = _run(request, folder, "port")
        stages += _run_stages(request, port.record)
        ran = stages[-1].status == "passed"
        stages.append(_carries(request, port.record, ran=ran))
        comparison: Comparison | None = None
        notes = list(_notes(port, "port"))
        if request.original is None:
            if request.steps > 1:
                stages.append(_all_steps(request, port.record, ran=ran))
        elif not ran:
            say("running the original to see whether it fails as well")
            original = _run(request, folder, "original")
            notes += _notes(original, "original")
            stages.append(_before_the_port(request, original.record))
        else:
            say("running the original")
            original = _run(request, folder, "original")
            notes += _notes(original, "original")
            comparison = compare(
                original.record.losses, port.record.losses, tolerance=request.tolerance
            )
            stage = _follow(request, original.record, port.record, comparison)
            apart = comparison.first_different
            if stage.status == "failed" and apart is not None and not apart.not_a_number:
                say("running the original once more to see whether it repeats itself")
                again = _run(request, folder, "original")
                stage = _with_repetition(stage, original.record, again.record)
            stages.append(stage)
    return CheckResult(
        stages=tuple(stages),
        comparison=comparison,
        standin=port.record.standin,
        notes=tuple(notes),
        command=request.command.typed(),
        interpreter=f"{request.interpreter.path} (Python {request.interpreter.python}, "
        f"TensorFlow {request.interpreter.tensorflow})",
        seconds=time.monotonic() - begin,
    )


def _run(request: CheckRequest, folder: Path, which: str) -> Side:
    tree = request.ported if which == "port" else request.original
    assert tree is not None
    side = SideRequest(
        tree=tree,
        command=request.command,
        with_standin=which == "port",
        interpreter=request.interpreter,
        steps=request.steps,
        seed=request.seed,
        timeout_s=request.timeout_s,
    )
    # Both sides run in the same folder, one after the other: a path's length or name can decide
    # an order, such as that of a hash, and then the losses.
    return run_side(side, folder / "run")


def _parses(request: CheckRequest, folder: Path) -> Stage:
    """Compile every file of the tree in the interpreter that will run it."""
    begin = time.monotonic()
    count, errors = _syntax_errors(request.ported, request.interpreter, folder)
    known: dict[str, str] = {}
    if errors and request.original is not None:
        _, known = _syntax_errors(request.original, request.interpreter, folder)
    new_errors = {path: text for path, text in errors.items() if path not in known}
    reason = counted(count, "file")
    if known and not new_errors:
        reason += f", {len(errors)} of which parse on neither side: {', '.join(sorted(errors)[:3])}"
    if new_errors:
        reason = f"files that do not compile: {len(new_errors)} of {count}: " + "; ".join(
            f"{path}:{text}" for path, text in sorted(new_errors.items())[:3]
        )
    return Stage(
        name="parses",
        status="failed" if new_errors else "passed",
        seconds=time.monotonic() - begin,
        reason=reason,
    )


def _scripts(tree: Path) -> list[Path]:
    left_out = {".git", "__pycache__"}
    return sorted(
        path
        for path in tree.rglob("*.py")
        if path.is_file() and not left_out.intersection(path.relative_to(tree).parts)
    )


def _syntax_errors(
    tree: Path, interpreter: Interpreter, folder: Path
) -> tuple[int, dict[str, str]]:
    """The number of scripts, and the errors of those that do not compile, by path in the tree."""
    root = tree.resolve()
    scripts = [str(path) for path in _scripts(root)]
    names, answer = folder / "names.json", folder / "errors.json"
    names.write_text(json.dumps(scripts))
    ended = supervise(
        [str(interpreter.path), str(_COMPILER), str(names), str(answer)],
        folder=folder,
        environment={"PYTHONDONTWRITEBYTECODE": "1"},
        timeout_s=300.0,
    )
    if not answer.is_file():
        return len(scripts), {"": f"the compiler ended ({ended.how} {ended.code})"}
    errors = json.loads(answer.read_text())
    answer.unlink()
    return len(scripts), {
        str(Path(path).relative_to(root)): f"{error['line']}: {error['what']}"
        for path, error in errors.items()
    }


def _run_stages(request: CheckRequest, record: Record) -> list[Stage]:
    """The stages of one run; the first that was not reached has the reason."""
    stages: list[Stage] = []
    before = 0.0
    for key, name in _RUN_STAGES:
        reached = record.reached.get(key)
        if reached is not None:
            stages.append(
                Stage(
                    name=name,
                    status="passed",
                    seconds=max(0.0, reached - before),
                    reason=_said(key, record),
                )
            )
            before = reached
        elif any(stage.status == "failed" for stage in stages):
            stages.append(Stage(name=name, status="not reached", seconds=0.0))
        else:
            stages.append(_failed(request, record, name, record.ended.seconds - before))
    return stages


def _said(key: RunStage, record: Record) -> str:
    if key == "graph" and record.num_ops:
        return counted(record.num_ops, "operation")
    if key == "step" and record.losses:
        losses = record.losses[0].losses
        return ", ".join(f"{name} = {value:.7g}" for name, value in losses) or "no loss was found"
    return ""


def _failed(request: CheckRequest, record: Record, name: str, seconds: float) -> Stage:
    return Stage(
        name=name,
        status="failed",
        seconds=max(0.0, seconds),
        reason=reason_of(record, python=str(request.interpreter.path), timeout=request.timeout),
        details=details_of(record),
    )


def _carries(request: CheckRequest, record: Record, *, ran: bool) -> Stage:
    name = "carries the NPU's options"
    if not ran:
        return Stage(name=name, status="not reached", seconds=0.0)
    lacking = not_carried(record.standin, _scripts(request.ported.resolve()))
    return Stage(name=name, status="failed" if lacking else "passed", seconds=0.0, reason=lacking)


def _before_the_port(request: CheckRequest, original: Record) -> Stage:
    """The stage that compares losses, for a port that makes no step."""
    step = "step" in original.reached
    limits = {"python": str(request.interpreter.path), "timeout": request.timeout}
    reason = "the original makes its first step: the port broke it"
    if not step:
        reason = f"the original makes no step either: {reason_of(original, **limits)}"
    return Stage(
        name=_follows(request),
        status="not reached",
        seconds=original.ended.seconds,
        reason=reason,
    )


def _all_steps(request: CheckRequest, record: Record, *, ran: bool) -> Stage:
    name = f"runs {counted(request.steps, 'step')}"
    if not ran:
        return Stage(name=name, status="not reached", seconds=0.0)
    seconds = max(0.0, record.ended.seconds - record.reached.get("step", 0.0))
    if record.finished:
        return Stage(
            name=name, status="passed", seconds=seconds, reason=_steps_done(record, request.steps)
        )
    return _failed(request, record, name, seconds)


def _steps_done(record: Record, asked: int) -> str:
    done = len(record.losses)
    steps = counted(done, "step")
    return steps if done >= asked else f"the script ended after {steps}"


def _follows(request: CheckRequest) -> str:
    return f"follows the original's losses for {counted(request.steps, 'step')}"


def _follow(request: CheckRequest, original: Record, port: Record, comparison: Comparison) -> Stage:
    name, seconds = _follows(request), original.ended.seconds
    limits = {"python": str(request.interpreter.path), "timeout": request.timeout}
    for who, record in (("the original", original), ("the port", port)):
        if not record.finished:
            done = len(record.losses)
            reason = f"{who} stops after {counted(done, 'step')}: {reason_of(record, **limits)}"
            return Stage(
                name=name,
                status="failed",
                seconds=seconds,
                reason=reason,
                details=details_of(record),
            )
    apart = comparison.first_different
    if comparison.mismatch or not comparison.pairs:
        reason = comparison.mismatch or "no loss was found in the steps of either side"
        return Stage(name=name, status="failed", seconds=seconds, reason=reason)
    if apart is not None and apart.not_a_number:
        reason = (
            f"step {apart.step}: the loss is nan on both sides ({apart.name}), which proves nothing"
        )
        return Stage(name=name, status="failed", seconds=seconds, reason=reason)
    if apart is not None:
        reason = (
            f"step {apart.step}: the original has {apart.original:.9g}, the port {apart.port:.9g} "
            f"({apart.name}), relative difference {apart.relative_difference:.1e}, "
            f"allowed {comparison.tolerance:g}"
        )
        return Stage(name=name, status="failed", seconds=seconds, reason=reason)
    reason = (
        f"{comparison.num_equal} of {len(comparison.pairs)} losses equal to the last bit, "
        f"largest relative difference {comparison.largest_difference:.1e}, "
        f"allowed {comparison.tolerance:g}"
    )
    if comparison.num_port < request.steps:
        reason += f"; {_steps_done(port, request.steps)}"
    return Stage(name=name, status="passed", seconds=seconds, reason=reason)


def _with_repetition(stage: Stage, first: Record, second: Record) -> Stage:
    """Add a note if the original is not reproducible: then the port cannot follow it."""
    itself = compare(first.losses, second.losses, tolerance=0.0)
    seconds = stage.seconds + second.ended.seconds
    if itself.equal:
        return replace(
            stage, seconds=seconds, reason=stage.reason + "; the original repeats itself"
        )
    apart = itself.first_different
    where = f" from step {apart.step} on" if apart else ""
    reason = (
        f"inconclusive: two runs of the original differ{where} by up to "
        f"{itself.largest_difference:.1e} although both have the same seeds; {stage.reason}"
    )
    return replace(stage, seconds=seconds, reason=reason)


def _notes(side: Side, who: str) -> list[str]:
    notes = [f"the {who} resumed from the checkpoint {path}" for path in side.record.restored]
    if side.converted:
        count = counted(len(side.converted), "file")
        notes.append(f"the {who} is Python 2: it ran as 'jumar port' converts it ({count})")
    notes += [
        f"the {who} wrote to {path}, a large file of the tree that is not copied"
        for path in side.changed
    ]
    return notes
