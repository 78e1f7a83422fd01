"""Files with the hashes of steps, to compare runs on two machines."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from jumar.environment import inspect_environment
from jumar.ground.errors import UserError
from jumar.ground.paths import exists
from jumar.runs.diverging import Divergence, differences, differing, open_side, relevant
from jumar.runs.replaying import replayer
from jumar.settings import to_json
from jumar.training.run_directory import read_json, write_json

_FORMAT: Final = 1


def write_hashes(
    run: Path,
    file: Path,
    say: Callable[[str], None],
    *,
    first: int | None = None,
    steps: int = 0,
    assignments: Sequence[str] = (),
    imports: Sequence[str] = (),
    device: str = "auto",
) -> int:
    """Replay steps of a run, without changing it, and write the hashes of the state after each.

    Args:
        run: The run directory.
        file: The file to write.
        say: Prints a line before the replay.
        first: The first step, counted from 0; None to start at the second-to-last checkpoint.
        steps: Number of steps; 0 for all up to the last checkpoint.
        assignments: Changed fields.
        imports: Modules to import first.
        device: The value of `--device`.

    Returns:
        The number of hashed steps.

    Raises:
        UserError: It is not a run or has no such step, or the file cannot be written.
    """
    if exists(file):
        raise UserError("already exists", where=str(file), todo="Choose another name.")
    side = open_side(run, assignments, imports, device)
    checkpoint_steps = sorted(side.checkpoints)
    first = [0, *checkpoint_steps][-2] if first is None else first
    start = max((step for step in checkpoint_steps if step <= first), default=0)
    until = first + steps if steps else max(checkpoint_steps[-1], first + 1)
    with replayer("A", say, side.ranks) as repeater:
        trace = repeater.replay(replace(side.replay, first=start, until=until))
    hashes = {str(step): dict(parts) for step, parts in trace.steps.items() if step > first}
    write_json(
        file,
        {
            "format": _FORMAT,
            "recipe": side.name,
            "settings": to_json(side.recipe),
            "machine": {**relevant(asdict(inspect_environment())), "ranks": side.ranks},
            "hashes": hashes,
        },
    )
    return len(hashes)


def compare_hashes(files: Sequence[Path]) -> Divergence:
    """Compare two files of `write_hashes`.

    Raises:
        UserError: One is not a file of hashes, or they have no step in common.
    """
    first, second = map(_read, files)
    hashes: list[Mapping[str, Mapping[str, str]]] = [first["hashes"], second["hashes"]]
    common = sorted(hashes[0].keys() & hashes[1].keys(), key=int)
    where = f"{files[0]} and {files[1]}"
    if first["recipe"] != second["recipe"]:
        raise UserError(f"hashes of '{first['recipe']}' and of '{second['recipe']}'", where=where)
    if not common:
        raise UserError(
            "they have no step in common",
            where=where,
            todo="Write both with the same --first and --steps.",
        )
    step = next((step for step in common if hashes[0][step] != hashes[1][step]), None)
    return Divergence(
        equal=[int(other) for other in common if step is None or int(other) < int(step)],
        settings=differences(first["settings"], second["settings"]),
        machines=differences(first["machine"], second["machine"]),
        ranks=(_num_ranks(first), _num_ranks(second)),
        is_changed=True,
        step=None if step is None else int(step) - 1,
        parts=[] if step is None else differing(hashes[0][step], hashes[1][step]),
    )


def _num_ranks(content: Mapping[str, Any]) -> int:
    return int(content["machine"].get("ranks", 1))


def _read(path: Path) -> Mapping[str, Any]:
    content = read_json(path)
    keys = ("recipe", "settings", "machine", "hashes")
    if content.get("format") != _FORMAT or not all(key in content for key in keys):
        raise UserError(
            "has no hashes of steps",
            where=str(path),
            todo="Write it: jumar precision diverge RUN --hashes FILE",
        )
    return content
