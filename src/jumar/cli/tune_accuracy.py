"""`jumar tune accuracy`."""

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from jumar.cli.counts import check_count
from jumar.cli.options import DeviceOption, ImportOption, OnOption, SetOption, repeated
from jumar.ground.errors import UserError
from jumar.ground.text import print_at_once

MODES = ("must_keep_origin_dtype", "allow_mix_precision", "allow_fp32_to_fp16", "force_fp16")


def accuracy(
    recipe: str,
    /,
    *,
    target: Annotated[str, Parameter(metavar="SCORE=VALUE")],
    modes: Annotated[str | None, Parameter(metavar="MODE,MODE,...")] = None,
    seeds: int = 3,
    trainings: int = 12,
    to: Path | None = None,
    set_: SetOption = (),
    emulate_fp16: bool = False,
    jobs: int | None = None,
    on: OnOption = "this",
    device: DeviceOption = "auto",
    import_: ImportOption = (),
) -> int:
    """Find the fastest precision setting that meets a target.

    Every mode is trained with several seeds. If a faster mode misses the target, an op list is
    searched for as by `jumar precision search`, and an exponential loss scale is tried. Prints a
    table of modes, scores and step times, and a sentence that explains the choice. The same command
    resumes after an interruption. The exit code is 1 if no setting meets the target beyond chance.

    Parameters
    ----------
    recipe
        Name of the recipe.
    target
        A score and the value to reach: top1=95, psnr=33.6 or loss=0.3.
    modes
        Precision modes to measure; the first of equal ones is preferred. By default
        must_keep_origin_dtype, allow_mix_precision, allow_fp32_to_fp16 and force_fp16.
    seeds
        Training runs per setting, with successive seeds.
    trainings
        Maximum number of training runs when searching an op list.
    to
        Output folder; by default `runs/RECIPE-accuracy`.
    set_
        Change a field in all runs; may be repeated.
    emulate_fp16
        On a CPU, round to float16 instead of computing in bfloat16.
    jobs
        Runs in parallel; by default one on this machine, and as many as fit on a cluster. Runs in
        parallel on one machine slow each other down, which affects the step times.
    on
        Where to compute the runs: this machine, ray, or ray://HOST:PORT.
    """
    from jumar.cli.precision_search import prepare_search
    from jumar.cli.sweep import train_command
    from jumar.cli.train import assignments
    from jumar.experiments.accuracy.target import parse_target
    from jumar.experiments.accuracy.tuning import TuningRequest, tune_accuracy
    from jumar.experiments.placing.chosen import open_place
    from jumar.experiments.placing.contract import ExperimentStopped
    from jumar.experiments.sweep import run_sweep
    from jumar.precision.loss_scale import NoLossScale
    from jumar.precision.modes import find_mode
    from jumar.recipes.registry import create_recipe, import_modules, recipe_settings
    from jumar.runs.observed_steps import SourceRequest

    goal = parse_target(target)
    mode_names = MODES if modes is None else [name.strip() for name in modes.split(",")]
    names = [find_mode(name).name for name in mode_names if name]
    if not names or len(set(names)) < len(names):
        raise UserError("a mode is missing or repeated", where="--modes", todo="Name each once.")
    check_count(seeds, "--seeds")
    import_modules(import_)
    common = assignments(set_, emulate_fp16=emulate_fp16)
    created_recipe = create_recipe(recipe, common)
    directory = to or Path("runs") / f"{recipe}-accuracy"
    place_opener = partial(open_place, on, jobs=jobs, device=device)

    def train(folder: Path, vary: Sequence[str], settings: Sequence[str]) -> int:
        return run_sweep(
            recipe,
            vary=vary,
            common_assignments=(*common, *settings),
            baseline=(),
            directory=folder,
            repeats=seeds,
            open_place=place_opener,
            command=partial(train_command, import_),
            resolve=partial(recipe_settings, recipe),
        ).stopped_by

    def find_list(mode: str, tolerance: str, folder: Path) -> Path | None:
        op_list = folder / "ops_info.json"
        op_search = prepare_search(
            SourceRequest(
                what=recipe,
                assignments=(*common, f"precision.mode={mode}"),
                imports=import_,
                device=device,
            ),
            tolerance=tolerance,
            to=op_list,
            runs=folder / "op-list-search",
            seeds=seeds,
            trainings=trainings,
            layers=False,
            jobs=jobs,
            on=on,
            say=print_at_once,
        )
        return op_list.absolute() if op_search.run().is_confirmed else None

    request = TuningRequest(
        target=goal,
        modes=names,
        directory=directory,
        has_loss_scale=not isinstance(created_recipe.precision.loss_scale, NoLossScale),
    )
    try:
        tuned = tune_accuracy(request, train=train, find_list=find_list, say=print_at_once)
    except ExperimentStopped as stopped:
        print_at_once("Stopped. The same command resumes from here.")
        return 128 + stopped.signal
    chosen = tuned.decision.chosen
    if chosen is not None:
        command = [
            *("jumar", "train", recipe),
            *repeated("--import", import_),
            *repeated("--set", (*common, *chosen.assignments)),
        ]
        print_at_once(shlex.join(command))
    return 0 if tuned.decision.is_sure else 1
