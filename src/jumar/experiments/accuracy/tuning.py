"""Find the fastest precision setting that meets a target: modes, an op list, then the loss scale.

The later stages try modes that are faster than the best so far but do not meet the target. The
runs of a stage form a sweep in their own folder, so that the same command resumes after an
interruption.
"""

import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jumar.experiments.accuracy.deciding import SAME_SPEED, Decision, Measured, decide
from jumar.experiments.accuracy.target import Judged, Target, judge
from jumar.experiments.accuracy.wording import sentence, table_markdown, table_text
from jumar.experiments.placing.contract import ExperimentStopped
from jumar.experiments.run_reading import Run
from jumar.experiments.search_goal import LOSS, direction_of, final_value
from jumar.experiments.sweep_plan import combinations_of, read_plan
from jumar.experiments.table import ORIGIN_MODES, Combination, reason_of
from jumar.ground.files import write_text
from jumar.ground.paths import check_no_file, make_folder
from jumar.precision.modes import find_mode
from jumar.training.run_directory import write_json

_MODE, _LIST = "precision.mode", "precision.modify_mixlist"
_SCALE = "precision.loss_scale=exponential"


@dataclass(frozen=True, kw_only=True)
class TuningRequest:
    """The settings of a tuning.

    Attributes:
        target: The target to meet.
        modes: The precision modes to measure, in the order of preference.
        directory: Output folder.
        has_loss_scale: Whether the recipe itself has a loss scale.
    """

    target: Target
    modes: Sequence[str]
    directory: Path
    has_loss_scale: bool


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """The result of a tuning."""

    measured: tuple[Measured, ...]
    decision: Decision
    sentence: str
    not_tried: tuple[str, ...]
    """Stages that were left out, with the reason."""


Train = Callable[[Path, Sequence[str], Sequence[str]], int]
"""Trains a sweep in a folder, with varied and common fields; returns the stopping signal or 0."""
FindList = Callable[[str, str, Path], Path | None]
"""Searches for an op list for a mode and a tolerance, in a folder; None if there is none."""


def tune_accuracy(
    request: TuningRequest, *, train: Train, find_list: FindList, say: Callable[[str], None]
) -> Tuned:
    """Find the fastest precision setting that meets a target.

    Args:
        request: The settings of the tuning.
        train: Trains runs with several seeds.
        find_list: Searches for the op types that must stay in float32.
        say: Prints a line.

    Raises:
        ExperimentStopped: A run was stopped; the same command resumes.
        UserError: The directory has other content, or there is no such score.
    """
    return _Tuning(request, train, find_list, say).run()


class _Tuning:
    def __init__(
        self,
        request: TuningRequest,
        train: Train,
        find_list: FindList,
        say: Callable[[str], None],
    ) -> None:
        self._request, self._train, self._find_list, self._say = request, train, find_list, say
        self._measured: list[Measured] = []
        self._not_tried: list[str] = []

    def run(self) -> Tuned:
        request = self._request
        check_no_file(request.directory, "--to")
        vary = [f"{_MODE}={','.join(request.modes)}"] if len(request.modes) > 1 else []
        common = [] if vary else [f"{_MODE}={request.modes[0]}"]
        self._measure("modes", vary, common)
        self._try_op_list()
        self._try_loss_scale()
        decision = decide(self._measured)
        tuned = Tuned(
            measured=tuple(self._measured),
            decision=decision,
            sentence=sentence(decision, request.target, self._measured),
            not_tried=tuple(self._not_tried),
        )
        self._save(tuned)
        return tuned

    def _measure(self, stage: str, vary: Sequence[str], common: Sequence[str]) -> None:
        folder = self._request.directory / stage
        if stop_signal := self._train(folder, vary, common):
            raise ExperimentStopped(stop_signal)
        self._measured += [
            _measured(combination, self._request.target, common)
            for combination in combinations_of(read_plan(folder), folder)
        ]

    def _promising(self) -> list[Measured]:
        """Return the modes that are faster than the best so far but do not meet the target."""
        best = decide(self._measured)
        limit = math.inf
        if best.chosen is not None and best.is_sure and best.chosen.step_ms is not None:
            limit = best.chosen.step_ms / (1 + SAME_SPEED)
        candidates = [
            item
            for item in self._measured
            if len(item.assignments) == 1
            and item.judged.verdict != "keeps"
            and item.name not in ORIGIN_MODES
            and (item.step_ms is None or item.step_ms < limit)
        ]
        return sorted(candidates, key=lambda item: item.step_ms or math.inf)

    def _try_op_list(self) -> None:
        promising = [item for item in self._promising() if find_mode(item.name).uses_lists]
        if not promising:
            self._not_tried.append(
                "op list: no mode with op lists is faster than the best and misses the target"
            )
            return
        reference = next((item for item in self._measured if item.name in ORIGIN_MODES), None)
        if reference is None or reference.judged.margin <= 0:
            self._not_tried.append("op list: float32 itself was not shown to reach the target")
            return
        mode, target = promising[0].name, self._request.target
        # The target is an absolute value, but the search compares a score with float32's.
        tolerance = f"{target.metric}={reference.judged.margin:.6g}"
        self._say(f"{mode} does not meet {target}: searching for an op list, within {tolerance}")
        op_list = self._find_list(mode, tolerance, self._request.directory)
        if op_list is None:
            self._not_tried.append(f"op list: none was confirmed for {mode}")
            return
        self._measure("op-list", [], [f"{_MODE}={mode}", f"{_LIST}={op_list}"])

    def _try_loss_scale(self) -> None:
        if self._request.has_loss_scale:
            self._not_tried.append("loss scale: the recipe has one, which every mode used")
            return
        # Only the range of fp16 is so small that it needs a loss scale.
        promising = [
            item
            for item in self._promising()
            if find_mode(item.name).fp16 and not item.is_substituted
        ]
        if not promising:
            self._not_tried.append(
                "loss scale: no mode that computed in fp16 is faster than the best and misses the "
                "target"
            )
            return
        names = [item.name for item in promising]
        vary = [f"{_MODE}={','.join(names)}"] if len(names) > 1 else []
        common = [_SCALE] if vary else [f"{_MODE}={names[0]}", _SCALE]
        self._say(f"{', '.join(names)}: trying an exponential loss scale")
        self._measure("loss-scale", vary, common)

    def _save(self, tuned: Tuned) -> None:
        make_folder(self._request.directory)
        target = self._request.target
        text = f"{table_markdown(tuned.measured, target)}\n{tuned.sentence}\n"
        write_text(self._request.directory / "accuracy.md", text)
        write_json(self._request.directory / "accuracy.json", to_json(tuned, target))
        self._say(f"\n{table_text(tuned.measured, target)}")
        for line in tuned.not_tried:
            self._say(f"not tried, {line}")
        self._say(tuned.sentence)


def to_json(tuned: Tuned, target: Target) -> dict[str, Any]:
    """Return the result as JSON types."""
    chosen = tuned.decision.chosen
    content: Mapping[str, Any] = {
        "target": asdict(target),
        "measured": [asdict(item) for item in tuned.measured],
        "chosen": None if chosen is None else list(chosen.assignments),
        "is_sure": tuned.decision.is_sure,
        "sentence": tuned.sentence,
        "not_tried": list(tuned.not_tried),
    }
    return json.loads(json.dumps(content))


def _measured(combination: Combination, target: Target, common: Sequence[str]) -> Measured:
    runs = [run for run in combination.runs if run.state == "finished"]
    values = [value for run in runs if (value := final_value(target.metric, run)) is not None]
    times = [run.results.step_ms_median for run in combination.runs]
    known_times = [time for time in times if time is not None]
    assignments = (*combination.assignments, *(item for item in common if "precision." in item))
    reasons = [
        reason_of(run, end)
        for run, end in zip(combination.runs, combination.ends, strict=True)
        if run.state != "finished"
    ]
    return Measured(
        name=_name(assignments),
        judged=_judged(values, runs, target),
        step_ms=statistics.median(known_times) if known_times else None,
        assignments=assignments,
        num_seeds=len(values),
        note="; ".join(dict.fromkeys(reasons)),
        is_substituted=any(run.results.substituted for run in combination.runs),
    )


def _judged(values: Sequence[float], runs: Sequence[Run], target: Target) -> Judged:
    if not runs:
        return Judged(verdict="not available")
    results, headline = runs[0].results, runs[0].results.headline
    higher = direction_of(target.metric, runs[0], where="--target") >= 0
    is_headline = headline is not None and headline.name == target.metric
    is_share = headline is not None and is_headline and headline.unit == "%" and higher
    return judge(
        values,
        target.value,
        higher_is_better=higher and not target.metric.endswith(LOSS),
        eval_samples=results.eval_samples if is_share else None,
    )


def _name(assignments: Sequence[str]) -> str:
    parts = [item.partition("=")[2] for item in assignments if item.startswith(f"{_MODE}=")]
    if any(item.startswith(f"{_LIST}=") for item in assignments):
        parts.append("op list")
    if _SCALE in assignments:
        parts.append("loss scale")
    return " + ".join(parts)
