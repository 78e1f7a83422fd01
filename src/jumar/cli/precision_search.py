"""`jumar precision search`."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from jumar.cli.options import (
    DeviceOption,
    ImportOption,
    JsonFlag,
    OnOption,
    RecipeOrRun,
    SetOption,
    repeated,
)
from jumar.cli.output import progress_printer
from jumar.ground.text import counted, print_plain

if TYPE_CHECKING:
    from jumar.experiments.search import Found, Search
    from jumar.precision.searching.effects import Effect
    from jumar.runs.observed_steps import SourceRequest


def search(
    what: RecipeOrRun,
    /,
    *,
    tolerance: Annotated[str, Parameter(metavar="SCORE=AMOUNT")],
    to: Path = Path("ops_info.json"),
    runs: Path | None = None,
    seeds: int = 3,
    trainings: int = 12,
    jobs: int | None = None,
    on: OnOption = "this",
    layers: bool = False,
    emulate_fp16: bool = False,
    json_: JsonFlag = False,
    set_: SetOption = (),
    device: DeviceOption = "auto",
    import_: ImportOption = (),
) -> int:
    """Find the fewest op types that must stay in float32, and write them as a modify_mixlist file.

    All other op types are computed in low precision. Passes of one step rank the op types; short
    training runs then find out which of them are needed to keep a score within a tolerance of
    float32, and the result is confirmed with several seeds. Keep runs to minutes:
    --set training.duration=300it. The same command resumes after an interruption. The exit code is
    1 if the result could not be confirmed.

    Parameters
    ----------
    tolerance
        A score and its largest degradation against float32: loss=0.1%, top1=0.3 or psnr=0.02.
    to
        The op list to write.
    runs
        Folder for the training runs; by default `runs/NAME-search`.
    seeds
        Number of seeds for float32 and for the result.
    trainings
        Maximum number of training runs, including those in float32.
    jobs
        Runs in parallel; by default one on this machine, and as many as fit on a cluster.
    on
        Where they run: this machine, ray, or ray://HOST:PORT.
    layers
        Also search for layers that can replace an op type, for jumar's own runs.
    emulate_fp16
        On a CPU, round to float16 instead of computing in bfloat16.
    set_
        Change a field in all runs; may be repeated.
    """
    from jumar.cli.train import assignments
    from jumar.experiments.placing.contract import ExperimentStopped
    from jumar.runs.observed_steps import SourceRequest
    from jumar.runs.precision_effects import keeping_costs

    say = progress_printer(as_json=json_)
    effects = SourceRequest(
        what=what,
        assignments=assignments(set_, emulate_fp16=emulate_fp16),
        imports=import_,
        device=device,
    )
    op_search = prepare_search(
        effects,
        tolerance=tolerance,
        to=to,
        runs=runs,
        seeds=seeds,
        trainings=trainings,
        layers=layers,
        jobs=jobs,
        on=on,
        say=say,
    )
    try:
        result = op_search.run()
    except ExperimentStopped as stopped:
        say("Stopped. The same command resumes from here.")
        return 128 + stopped.signal
    costs = keeping_costs(effects, [row.candidate for row in result.effects], result.kept)
    if json_:
        print(json.dumps(_to_json(result, costs), indent=1))
    else:
        print_plain("\n".join(_lines(result, costs)))
    return 0 if result.is_confirmed else 1


def prepare_search(
    effects: "SourceRequest",
    *,
    tolerance: str,
    to: Path,
    runs: Path | None,
    seeds: int,
    trainings: int,
    layers: bool,
    jobs: int | None,
    on: str,
    say: Callable[[str], None],
) -> "Search":
    """Prepare a search of op types.

    Args:
        effects: The recipe or run, of which one step ranks the op types.
        tolerance: See `search`, like all that follow.
        to: The op list to write.
        runs: Folder for the training runs.
        seeds: Number of seeds.
        trainings: Maximum number of runs.
        layers: Whether to search for layers too.
        jobs: Runs in parallel.
        on: Where to run them.
        say: Prints a line.

    Raises:
        UserError: The tolerance, the recipe or its settings are not valid.
    """
    from jumar.experiments.placing.chosen import open_place
    from jumar.experiments.search import Search, SearchRequest
    from jumar.experiments.search_goal import parse_goal
    from jumar.runs.observed_steps import find_source
    from jumar.runs.precision_effects import measure_effects, trial_recipe
    from jumar.training.parallel.announced import announced_ranks

    goal = parse_goal(tolerance)
    source = find_source(effects, announced_ranks())

    def command(run: Path, device: str) -> Sequence[str]:
        return [
            *(sys.executable, "-m", "jumar", "train"),
            *("--run-dir", str(run), "--device", device),
            *repeated("--import", source.imports),
        ]

    request = SearchRequest(
        goal=goal,
        to=to,
        directory=runs or Path("runs") / f"{source.label}-search",
        length=source.recipe.training.duration,
        first_seed=source.recipe.seed,
        num_seeds=seeds,
        max_trainings=trainings,
        refines=layers,
        identity=trial_recipe(source, Path("/"), source.recipe.seed),
    )
    return Search(
        request,
        measure=lambda: measure_effects(effects),
        recorded=partial(trial_recipe, source),
        command=command,
        open_place=partial(open_place, on, jobs=jobs, device=effects.device, say=say),
        say=say,
    )


def _lines(result: "Found", costs: Mapping[str, float]) -> Iterator[str]:
    from jumar.experiments.search import layers_path

    goal, kept_text = result.goal, ", ".join(result.kept) or "nothing"
    yield f"in float32: {kept_text}"
    caveat = "" if result.is_minimal else "; not every smaller set was tried"
    if result.is_confirmed:
        yield (
            f"{goal.metric} over {counted(len(result.reference), 'seed')}: {result.worse:.3g} "
            f"worse than float32, limit {result.limit:.3g}{caveat}"
        )
    else:
        yield f"not confirmed with all seeds: no runs are left (--trainings){caveat}"
    yield "each op type alone in low precision: change of gradients, of the loss, largest value"
    for row in result.effects:
        yield _row(row, result, costs)
    yield f"{counted(result.num_trainings, 'run')}; op list: {result.to}"
    yield f"use it with --set precision.modify_mixlist={result.to}"
    if result.layered is not None:
        types, kept_layers = result.layered
        yield f"or with less in float32, namely {', '.join((*types, *kept_layers))}:"
        yield f"  --set precision.modify_mixlist={layers_path(result.to)}"
        yield f"  --set precision.float32_layers={','.join(kept_layers)}"


def _row(row: "Effect", result: "Found", costs: Mapping[str, float]) -> str:
    name = row.candidate.name
    change = "infinite" if row.is_out_of_range else f"{row.gradient_error:.2%}"
    text = f"  {change:>9}  {row.loss_change:9.2e}  {row.largest:9.3g}  {name}"
    if name not in result.kept:
        return text
    difference = result.worse_without(name)
    cost = costs[name]
    notes = [f"costs {cost:.1f} ms a step" if cost >= 0.05 else "costs no time here"]
    if difference is not None:
        notes.append(f"without it {result.goal.metric} is {difference:.3g} worse")
    return f"{text}: float32, {', '.join(notes)}"


def _to_json(result: "Found", costs: Mapping[str, float]) -> dict[str, Any]:
    from jumar.training.run_directory import finite

    return finite(
        {
            "tolerance": str(result.goal),
            "limit": result.limit,
            "float32": list(result.reference),
            "kept": [
                {"type": name, "cost_ms": costs[name], "worse_without": result.worse_without(name)}
                for name in result.kept
            ],
            "worse": result.worse,
            "is_confirmed": result.is_confirmed,
            "is_minimal": result.is_minimal,
            "op_types": [
                {
                    "type": row.candidate.name,
                    "ops": list(row.candidate.ops),
                    "calls": row.calls,
                    "error": row.error,
                    "loss_change": row.loss_change,
                    "gradient_error": row.gradient_error,
                    "largest": row.largest,
                    "overflows": row.overflows,
                    "vanishing": row.vanishing,
                    "layers": {layer.layer: layer.loss_change for layer in row.layers},
                }
                for row in result.effects
            ],
            "trainings": [
                {
                    "float32": judged.trial.kept,
                    "layers": judged.trial.layers,
                    "seed": judged.trial.seed,
                    "value": judged.value,
                    "worse": judged.worse,
                }
                for judged in result.judged
            ],
            "layered": result.layered
            and dict(zip(("kept", "layers"), result.layered, strict=True)),
            "num_trainings": result.num_trainings,
            "op_list": str(result.to),
        }
    )
