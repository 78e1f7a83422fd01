"""Find where two runs that should be equal first differ, by hashes: `jumar precision diverge`.

Comparing checkpoints narrows it down to an interval, a replay with a hash per step to a step, and
one with hashes of all tensors of that step to an op; a last replay keeps the op's tensors.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from glob import escape
from pathlib import Path
from typing import Any, Final

from jumar.data.loading.sampler import steps_per_epoch
from jumar.ground.errors import UserError
from jumar.ground.paths import exists, is_file
from jumar.precision.comparing.observed import Difference, compare_tensors
from jumar.precision.comparing.pairing import Pair, pair_calls, pair_values
from jumar.precision.comparing.unequal import Unequal, first_unequal
from jumar.precision.dumps.dump import Call, Dump, Value
from jumar.precision.dumps.ours import dump_folder, read_dump
from jumar.precision.recording.recorder import RecordSettings
from jumar.recipes.recipe import Recipe
from jumar.recipes.stored import stored_recipe
from jumar.runs.replaying import Replay, Replayed, Replayer, replayer
from jumar.settings import override, to_json
from jumar.training.checkpoint import Checkpoint
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.durations import parse_duration
from jumar.training.parallel.announced import announced_ranks
from jumar.training.run_directory import RunDirectory, next_run_path, read_json
from jumar.training.state_hashes import checkpoint_hashes

NAMES: Final = ("A", "B")
_FOLDER: Final = Path("dumps")
_HASHES: Final = RecordSettings(digests=True)
_Differences = Sequence[tuple[str, Any, Any]]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A tensor of the first unequal op on both sides."""

    value: Value
    partner: Value
    difference: Difference


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """The first difference between two runs.

    Attributes:
        equal: Steps of the equal checkpoints before the first unequal one.
        unequal: Step of the first unequal checkpoint; None if all are equal.
        settings: Settings that differ, with both values.
        machines: Differences in machine, versions and ranks, with both values.
        ranks: Number of ranks of each side.
        is_changed: Whether a side was replayed with changed settings.
        replays: Number of replays of each side.
        step: The first step, counted from 0, after which the replayed states differ; None if they
            are all equal.
        parts: The parts of the state that differ after that step.
        op: The first unequal op of that step; None if there is none, or the sides have different
            numbers of ranks.
        rank: The rank that ran the op.
        measured: The differences of its tensors.
        not_reproduced: By side, the parts of its own checkpoint that its replay did not reproduce.
        unrepeatable: Sides whose second replay ended in a different state than the first.
        dump: The folder of that step's dumps.
    """

    equal: Sequence[int] = ()
    unequal: int | None = None
    settings: _Differences = ()
    machines: _Differences = ()
    ranks: tuple[int, int] = (1, 1)
    is_changed: bool = False
    replays: tuple[int, int] = (0, 0)
    step: int | None = None
    parts: Sequence[str] = ()
    op: Unequal | None = None
    rank: int = 0
    measured: Sequence[Measured] = ()
    not_reproduced: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    unrepeatable: Sequence[str] = ()
    dump: Path | None = None

    @property
    def is_equal(self) -> bool:
        """Whether the runs are equal or, with changed settings, their replays."""
        return self.step is None and (self.is_changed or self.unequal is None)


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the two runs.

    Attributes:
        run: Its directory.
        name: The name of its recipe.
        recipe: The recipe, with the requested changes.
        checkpoints: Its checkpoints, by step.
        ranks: Number of ranks that trained it and replay it.
        replay: The settings of its replays.
    """

    run: RunDirectory
    name: str
    recipe: Recipe
    checkpoints: Mapping[int, Checkpoint]
    ranks: int
    replay: Replay


def find_divergence(
    runs: tuple[Path, Path],
    say: Callable[[str], None],
    *,
    assignments: tuple[Sequence[str], Sequence[str]] = ((), ()),
    imports: Sequence[str] = (),
    device: str = "auto",
    to: Path | None = None,
) -> Divergence:
    """Find the first step and op at which two runs differ, without changing the runs.

    Args:
        runs: Both run directories.
        say: Prints a line before each replay.
        assignments: Fields to change in each run's replays.
        imports: Modules to import first.
        device: The value of `--device`.
        to: Folder for the dumps; by default the next free `dumps/diverge-N`.

    Raises:
        UserError: One is not a run, they are not meant to be equal, or they have no checkpoint of
            the same step.
    """
    if announced_ranks().world > 1:
        raise UserError(
            "diverge starts the ranks it needs itself", todo="Start it without torchrun."
        )
    first, second = (
        open_side(run, changes, imports, device)
        for run, changes in zip(runs, assignments, strict=True)
    )
    common = _common_steps(first, second)
    equal, unequal = _compared(first, second, common)
    is_changed = any(assignments)
    report = Divergence(
        equal=equal,
        unequal=unequal,
        settings=differences(to_json(first.recipe), to_json(second.recipe)),
        machines=differences(
            {**machine_of(first.run), "ranks": first.ranks},
            {**machine_of(second.run), "ranks": second.ranks},
        ),
        ranks=(first.ranks, second.ranks),
        is_changed=is_changed,
    )
    if unequal is not None:
        start, until = (equal[-1] if equal else 0), unequal
    elif is_changed:
        start, until = ([0, *common])[-2:]
    else:
        return report
    folder = to or next_run_path(_FOLDER, "diverge")
    if exists(folder):
        raise UserError("already exists", where=str(folder), todo="Choose another --to.")
    with ExitStack() as stack:
        replayers = [
            stack.enter_context(replayer(name, say, side.ranks))
            for name, side in zip(NAMES, (first, second), strict=True)
        ]
        pairs = [
            (repeater, replace(side.replay, first=start, until=until))
            for repeater, side in zip(replayers, (first, second), strict=True)
        ]
        report = _replayed(report, (first, second), pairs, folder)
    return replace(report, replays=(replayers[0].count, replayers[1].count))


def open_side(run: Path, assignments: Sequence[str], imports: Sequence[str], device: str) -> Side:
    """Open a run with its recipe and checkpoints.

    Raises:
        UserError: It is not a run, or has no checkpoint.
    """
    directory = RunDirectory(run)
    name, _, stored = stored_recipe(directory, imports)
    checkpoints = {item.step: item for item in list_checkpoints(directory.checkpoints)}
    if not checkpoints:
        raise UserError("has no checkpoint", where=str(run))
    batch = next(iter(checkpoints.values())).batch.get("global_batch_size")
    size = stored.plan(name).batch_size
    if batch is not None and batch % size:
        raise UserError(
            f"it was trained with {batch} samples per step, which is not a multiple of its batch "
            f"size {size}, so its steps cannot be replayed",
            where=str(run),
            todo="Compare its log lines and checkpoints: jumar precision runs A B",
        )
    return Side(
        run=directory,
        name=name,
        recipe=override(stored, assignments),
        checkpoints=checkpoints,
        ranks=1 if batch is None else batch // size,
        replay=Replay(
            run=run, first=0, until=1, assignments=assignments, imports=imports, device=device
        ),
    )


def machine_of(run: RunDirectory) -> Mapping[str, Any]:
    """Return the relevant part of a run's record of its machine and versions."""
    return relevant(read_json(run.environment) if is_file(run.environment) else {})


def relevant(environment: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parts of an environment that may change the bits of a step's result."""
    processor = {
        name: value
        for name, value in environment.get("processor", {}).items()
        if not name.startswith("memory")
    }
    facts = {name: environment.get(name) for name in ("system", "versions", "accelerators")}
    return {**facts, "processor": processor}


def differing(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the names under which two sets of hashes differ."""
    names = {**before, **after}
    return [name for name in names if before.get(name) != after.get(name)]


def _common_steps(first: Side, second: Side) -> list[int]:
    """Return the steps at which both runs have a checkpoint.

    Raises:
        UserError: There is none, or the runs differ in length, recipe or data.
    """
    where = f"{first.run} and {second.run}"
    if first.name != second.name:
        raise UserError(f"runs of '{first.name}' and of '{second.name}'", where=where)
    common = sorted(first.checkpoints.keys() & second.checkpoints.keys())
    if not common:
        steps_of_sides = [", ".join(map(str, sorted(side.checkpoints))) for side in (first, second)]
        raise UserError(
            f"they have no checkpoint of the same step: {steps_of_sides[0]}; {steps_of_sides[1]}",
            where=where,
            todo="Train both with the same checkpoints.every and checkpoints.keep.",
        )
    first_batch, second_batch = (side.checkpoints[common[0]].batch for side in (first, second))
    for name in [name for name in first_batch if first_batch[name] != second_batch.get(name)]:
        raise UserError(
            f"they train on different samples: the {name.replace('_', ' ')} is "
            f"{first_batch[name]} and {second_batch.get(name)}",
            where=where,
            todo="Only runs with the same data, batch and seed can be equal.",
        )
    lengths = [_length(side, first_batch) for side in (first, second)]
    if lengths[0] != lengths[1]:
        raise UserError(
            f"they have {lengths[0]} and {lengths[1]} steps, so their schedules differ",
            where=where,
            todo="Train both with the same training.duration.",
        )
    return common


def _length(side: Side, batch: Mapping[str, int]) -> int | None:
    per_epoch = steps_per_epoch(batch.get("epoch_size", 1), batch.get("global_batch_size", 1))
    duration = side.recipe.training.duration
    return parse_duration(duration, field="training.duration").steps(per_epoch, None)


def _compared(first: Side, second: Side, common: Sequence[int]) -> tuple[Sequence[int], int | None]:
    """Return the steps of the equal checkpoints up to the first unequal one, and the latter's."""
    equal: list[int] = []
    for step in common:
        hashes = [checkpoint_hashes(side.checkpoints[step]) for side in (first, second)]
        if hashes[0] != hashes[1]:
            return equal, step
        equal.append(step)
    return equal, None


def _replayed(
    report: Divergence,
    sides: Sequence[Side],
    pairs: Sequence[tuple[Replayer, Replay]],
    folder: Path,
) -> Divergence:
    """Replay both sides and add the results to a report."""
    start, until = pairs[0][1].first, pairs[0][1].until
    if until - start == 1:
        pairs = [
            (repeater, _recording(replay, folder, repeater.name)) for repeater, replay in pairs
        ]
    traces = [repeater.replay(replay) for repeater, replay in pairs]
    not_reproduced = {
        repeater.name: names
        for side, (repeater, replay), trace in zip(sides, pairs, traces, strict=True)
        if not replay.assignments
        and (names := differing(checkpoint_hashes(side.checkpoints[until]), trace.last))
    }
    report = replace(report, not_reproduced=not_reproduced)
    steps = sorted(traces[0].steps.keys() & traces[1].steps.keys())
    step = next((step for step in steps if traces[0].steps[step] != traces[1].steps[step]), None)
    if step is None:
        return report
    parts = differing(traces[0].steps[step], traces[1].steps[step])
    report = replace(report, step=step - 1, parts=parts, dump=folder)
    if until - start > 1:
        pairs = [
            (repeater, _recording(replace(replay, until=step), folder, repeater.name))
            for repeater, replay in pairs
        ]
        repeated = [repeater.replay(replay) for repeater, replay in pairs]
        report = replace(report, unrepeatable=_unrepeatable(sides, traces, repeated, step))
    if sides[0].ranks != sides[1].ranks:
        return report
    earliest = min(_unequal_by_rank(folder, step - 1, sides[0].ranks), default=None)
    if earliest is None:
        return report
    _, rank, op = earliest
    paths = [dump_folder(folder / f"{name}-op", step - 1, rank) for name in NAMES]
    return replace(report, op=op, rank=rank, measured=_measured(op.pair, pairs, paths))


def _unequal_by_rank(folder: Path, step: int, ranks: int) -> Iterator[tuple[int, int, Unequal]]:
    """Yield the position in the step, the rank and the op of each rank's first unequal op.

    A difference on one rank reaches the others with the gradients, later in the step.
    """
    for rank in range(ranks):
        before, after = (read_dump(dump_folder(folder / name, step, rank)) for name in NAMES)
        op = first_unequal(before, after, pair_calls(before, after))
        if op is not None:
            position = next(n for n, call in enumerate(before.calls) if call is op.pair.before)
            yield position, rank, op


def _recording(replay: Replay, folder: Path, name: str) -> Replay:
    return replace(replay, dump=folder / name, record=_HASHES)


def _unrepeatable(
    sides: Sequence[Side],
    traces: Sequence[Replayed],
    repeated_traces: Sequence[Replayed],
    step: int,
) -> list[str]:
    """Return the sides that are not reproducible.

    Compiled sides are left out, since their second replay runs op by op.
    """
    return [
        name
        for name, side, trace, repeated in zip(NAMES, sides, traces, repeated_traces, strict=True)
        if trace.steps[step] != repeated.steps[step] and not side.recipe.training.compile
    ]


def _measured(
    pair: Pair, pairs: Sequence[tuple[Replayer, Replay]], paths: Sequence[Path]
) -> list[Measured]:
    """Return the differences of a call's tensors, from another replay that writes them to files."""
    dumps: list[Dump] = []
    calls: list[Call] = []
    for call, path, (repeater, replay) in zip(pair, paths, pairs, strict=True):
        record = RecordSettings(
            level="tensors",
            digests=True,
            ops=(escape(call.op),) if call.kind == "op" else (),
            layers=(escape(call.layer),),
        )
        repeater.replay(replace(replay, dump=path.parents[1], record=record))
        dumps.append(read_dump(path))
        calls.append(next(found for found in dumps[-1].calls if found.key == call.key))
    rows: list[Measured] = []
    for value, partner in pair_values(Pair(*calls)):
        tensor, partner_tensor = (
            None if dump.tensors is None or item.tensor is None else dump.tensors.read(item.tensor)
            for dump, item in zip(dumps, (value, partner), strict=True)
        )
        if (
            tensor is not None
            and partner_tensor is not None
            and tensor.numel() == partner_tensor.numel()
        ):
            rows.append(
                Measured(
                    value=value, partner=partner, difference=compare_tensors(tensor, partner_tensor)
                )
            )
    return rows


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], prefix: str = ""
) -> _Differences:
    """Return the path and both values of each leaf in which two trees differ."""
    rows: list[tuple[str, Any, Any]] = []
    for name in {**before, **after}:
        value, other_value = before.get(name), after.get(name)
        if isinstance(value, Mapping) and isinstance(other_value, Mapping):
            rows += differences(value, other_value, f"{prefix}{name}.")
        elif value != other_value:
            rows.append((f"{prefix}{name}", value, other_value))
    return rows
