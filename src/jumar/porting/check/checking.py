"""Runs the stages of a check in order."""

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.text import Text
from jumar.porting.check.carried import not_carried
from jumar.porting.check.following import (
    Limits,
    all_steps,
    failed,
    follow,
    losses_not_reached,
    with_repetition,
)
from jumar.porting.check.interpreter import Interpreter
from jumar.porting.check.losses import Comparison, compare
from jumar.porting.check.record import Record, RunStage
from jumar.porting.check.result import CheckResult, Stage
from jumar.porting.check.side import Command, Side, SideRequest, run_side
from jumar.porting.check.supervision import supervise
from jumar.porting.check.wording import NOTHING, ORIGINAL, PORT, as_is, joined, number_of

_COMPILER = Path(__file__).resolve().parent / "runner37" / "compiles.py"
_PARSES = Text(en="parses", zh="语法正确")
_RUN_STAGES: tuple[tuple[RunStage, Text], ...] = (
    ("imports", Text(en="imports", zh="导入成功")),
    ("graph", Text(en="builds its graph", zh="建图成功")),
    ("step", Text(en="runs one step", zh="完成一步训练")),
)
_CARRIES = Text(en="carries the NPU's options", zh="带有 NPU 选项")
_RUNNING = Text(en="running {side}", zh="正在运行{side}")
_RUNNING_TO_SEE = Text(
    en="running the original to see whether it fails as well", zh="正在运行原脚本，看它是否同样失败"
)
_RUNNING_AGAIN = Text(
    en="running the original once more to see whether it is reproducible",
    zh="再次运行原脚本，看它能否重现自己的结果",
)
_PARSE_ON_NEITHER = Text(
    en="{number} of which parse on neither side: {paths}",
    zh="其中 {number} 个在两边都无法编译：{paths}",
)
_DO_NOT_COMPILE = Text(
    en="{number} of {count} files do not compile: {errors}",
    zh="无法编译的文件：{count} 个中有 {number} 个：{errors}",
)
_COMPILER_ENDED = Text(
    en="the compiler stopped unexpectedly ({how} {code})", zh="编译器异常结束（{how} {code}）"
)
_NO_LOSS = Text(en="no loss was found", zh="未找到损失")
_RESUMED = Text(en="{side} resumed from the checkpoint {path}", zh="{side}从检查点 {path} 继续训练")
_WAS_PYTHON2 = Text(
    en="{side} is Python 2: it ran as converted by 'jumar port' ({files})",
    zh="{side}是 Python 2 代码：按 'jumar port' 的转换结果运行（{files}）",
)
_IN_CHILDREN = Text(
    en="{side} trained in {number} that the script started", zh="{side}在脚本启动的 {number}中训练"
)
_ENDED_WITH_CHILDREN = Text(
    en="{side} was stopped once these had completed their steps; "
    "the rest of the script did not run",
    zh="{side}在这些进程完成训练步后被结束；脚本随后的部分没有运行",
)
_UNWATCHED = Text(
    en="{side} started a process that is not watched: {command}",
    zh="{side}启动了一个未被监视的进程：{command}",
)
_WROTE = Text(
    en="{side} wrote to {path}, a large file of the tree that is not copied",
    zh="{side}写入了 {path}，它是目录中未被复制的大文件",
)


@dataclass(frozen=True, kw_only=True)
class CheckRequest:
    """The parameters of a check.

    `tolerance` is the largest relative difference between losses that count as equal; `timeout` is
    `timeout_s` as typed.
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
            raise UserError(
                f"cannot run {self.steps} steps", where="--steps", todo="Use 1 or more."
            )
        if not 0 <= self.seed < 2**31:
            raise UserError(
                f"{self.seed} is not a valid seed",
                where="--seed",
                todo="Use 0 or more, below 2**31.",
            )
        if not 0 <= self.tolerance < 1:
            raise UserError(
                f"{self.tolerance} is not a valid tolerance",
                where="--tolerance",
                todo="Use a relative difference from 0 to 1, such as 1e-5.",
            )


def run_check(
    request: CheckRequest, *, say: Callable[[Text], None] = lambda _: None
) -> CheckResult:
    """Run all stages; failures of the script are results, not errors.

    Args:
        request: The parameters of the check.
        say: Called with a line of progress before each slow part.

    Returns:
        The stages, the losses and what the stand-in recorded.

    Raises:
        UserError: A path does not exist or has the wrong type.
    """
    start = time.monotonic()
    limits = _limits(request)
    with tempfile.TemporaryDirectory(prefix="jumar-port-check-") as name:
        folder = Path(name).resolve()
        stages = [_parses(request, folder)]
        say(_RUNNING.filled(side=PORT))
        port = _run(request, folder, "port")
        stages += _run_stages(request, port.record)
        port_ran = stages[-1].status == "passed"
        stages.append(_carries(request, port.record, ran=port_ran))
        comparison: Comparison | None = None
        notes = list(_notes(port, PORT))
        if request.original is None:
            if request.steps > 1:
                stages.append(all_steps(limits, port.record, ran=port_ran))
        elif not port_ran:
            say(_RUNNING_TO_SEE)
            original = _run(request, folder, "original")
            notes += _notes(original, ORIGINAL)
            stages.append(losses_not_reached(limits, original.record))
        else:
            say(_RUNNING.filled(side=ORIGINAL))
            original = _run(request, folder, "original")
            notes += _notes(original, ORIGINAL)
            comparison = compare(
                original.record.losses, port.record.losses, tolerance=request.tolerance
            )
            stage = follow(limits, original.record, port.record, comparison)
            difference = comparison.first_different
            if stage.status == "failed" and difference is not None and not difference.not_a_number:
                say(_RUNNING_AGAIN)
                repetition = _run(request, folder, "original")
                stage = with_repetition(stage, original.record, repetition.record)
            stages.append(stage)
    return CheckResult(
        stages=tuple(stages),
        comparison=comparison,
        standin=port.record.standin,
        notes=tuple(notes),
        command=request.command.typed(),
        interpreter=f"{request.interpreter.path} (Python {request.interpreter.python}, "
        f"TensorFlow {request.interpreter.tensorflow})",
        seconds=time.monotonic() - start,
    )


def _limits(request: CheckRequest) -> Limits:
    return Limits(
        python=str(request.interpreter.path), timeout=request.timeout, steps=request.steps
    )


def _run(request: CheckRequest, folder: Path, side_name: str) -> Side:
    tree = request.ported if side_name == "port" else request.original
    assert tree is not None
    side = SideRequest(
        tree=tree,
        command=request.command,
        with_standin=side_name == "port",
        interpreter=request.interpreter,
        steps=request.steps,
        seed=request.seed,
        timeout_s=request.timeout_s,
    )
    # Both sides run in the same folder, one at a time: the length or name of a path can change, for
    # instance, the order of a hash table, and thus the losses.
    return run_side(side, folder / "run")


def _parses(request: CheckRequest, folder: Path) -> Stage:
    """Compile every file of the tree in the interpreter that will run it."""
    start = time.monotonic()
    count, errors = _syntax_errors(request.ported, request.interpreter, folder)
    original_errors: dict[str, Text] = {}
    if errors and request.original is not None:
        _, original_errors = _syntax_errors(request.original, request.interpreter, folder)
    new_errors = {path: text for path, text in errors.items() if path not in original_errors}
    reason = number_of(count, "file", "个文件")
    if original_errors and not new_errors:
        paths = ", ".join(sorted(errors)[:3])
        reason = joined(reason, _PARSE_ON_NEITHER.filled(number=len(errors), paths=paths))
    if new_errors:
        messages = [text for _, text in sorted(new_errors.items())[:3]]
        reason = _DO_NOT_COMPILE.filled(
            number=len(new_errors), count=count, errors=joined(*messages)
        )
    return Stage(
        key="parses",
        name=_PARSES,
        status="failed" if new_errors else "passed",
        seconds=time.monotonic() - start,
        reason=reason,
    )


def _scripts(tree: Path) -> list[Path]:
    skipped_folders = {".git", "__pycache__"}
    return sorted(
        path
        for path in tree.rglob("*.py")
        if path.is_file() and not skipped_folders.intersection(path.relative_to(tree).parts)
    )


def _syntax_errors(
    tree: Path, interpreter: Interpreter, folder: Path
) -> tuple[int, dict[str, Text]]:
    """Return the number of scripts, and the errors of those that do not compile, by path."""
    root = tree.resolve()
    scripts = [str(path) for path in _scripts(root)]
    scripts_file, errors_file = folder / "names.json", folder / "errors.json"
    scripts_file.write_text(json.dumps(scripts))
    ended = supervise(
        [str(interpreter.path), str(_COMPILER), str(scripts_file), str(errors_file)],
        folder=folder,
        environment={"PYTHONDONTWRITEBYTECODE": "1"},
        timeout_s=300.0,
    )
    if not errors_file.is_file():
        return len(scripts), {"": _COMPILER_ENDED.filled(how=ended.how, code=ended.code)}
    errors = json.loads(errors_file.read_text())
    errors_file.unlink()
    by_path = {str(Path(path).relative_to(root)): error for path, error in errors.items()}
    return len(scripts), {
        path: as_is(f"{path}:{error['line']}: {error['what']}") for path, error in by_path.items()
    }


def _run_stages(request: CheckRequest, record: Record) -> list[Stage]:
    """Return the stages of one run; the first that was not reached has the reason."""
    stages: list[Stage] = []
    stage_start = 0.0
    for key, name in _RUN_STAGES:
        reached_at = record.reached.get(key)
        if reached_at is not None:
            stages.append(
                Stage(
                    key=key,
                    name=name,
                    status="passed",
                    seconds=max(0.0, reached_at - stage_start),
                    reason=_detail(key, record),
                )
            )
            stage_start = reached_at
        elif any(stage.status == "failed" for stage in stages):
            stages.append(Stage(key=key, name=name, status="not reached", seconds=0.0))
        else:
            stages.append(
                failed(key, name, record, _limits(request), record.ended.seconds - stage_start)
            )
    return stages


def _detail(key: RunStage, record: Record) -> Text:
    if key == "graph" and record.num_ops:
        return number_of(record.num_ops, "operation", "个算子")
    if key == "step" and record.losses:
        losses = record.losses[0].losses
        text = ", ".join(f"{name} = {value:.7g}" for name, value in losses)
        return as_is(text) if text else _NO_LOSS
    return NOTHING


def _carries(request: CheckRequest, record: Record, *, ran: bool) -> Stage:
    if not ran:
        return Stage(key="options", name=_CARRIES, status="not reached", seconds=0.0)
    missing_options = not_carried(record.standin, _scripts(request.ported.resolve()))
    return Stage(
        key="options",
        name=_CARRIES,
        status="failed" if missing_options.en else "passed",
        seconds=0.0,
        reason=missing_options,
    )


def _notes(side: Side, label: Text) -> list[Text]:
    notes = [_RESUMED.filled(side=label, path=path) for path in side.record.restored]
    record = side.record
    if record.children:
        number = number_of(record.children, "process", "个进程")
        notes.append(_IN_CHILDREN.filled(side=label, number=number))
    if record.ended.how == "done":
        notes.append(_ENDED_WITH_CHILDREN.filled(side=label))
    notes += [_UNWATCHED.filled(side=label, command=command) for command in record.unwatched]
    if side.converted:
        files = number_of(len(side.converted), "file", "个文件")
        notes.append(_WAS_PYTHON2.filled(side=label, files=files))
    notes += [_WROTE.filled(side=label, path=path) for path in side.changed]
    return notes
