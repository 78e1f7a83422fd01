"""The precision lab: what dumping costs a step, and one search in real float16."""

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import jumar.precision
from jumar.experiments.placing.chosen import open_place
from jumar.experiments.search import Search, SearchRequest
from jumar.experiments.search_goal import parse_goal
from jumar.runs.observed_steps import SourceRequest, find_source
from jumar.runs.precision_effects import measure_effects, trial_recipe
from jumar.training.parallel.ranks import Ranks
from on_accelerator.cases import CLASSIFIERS, PRETRAINING, QUICKEST, Case
from on_accelerator.measuring import Context, Measurement, Row
from on_accelerator.trainings import MODES, in_mode, open_training
from on_accelerator.written_data import clips
from precision_dump import KINDS

_TRAIN = Path(__file__).with_name("train_run.py")
_MAX_GIB = 4.0


def measurements(context: Context) -> Sequence[Measurement]:
    """Dumps of two networks, and a search."""
    cases = (CLASSIFIERS[0], PRETRAINING[0])
    return [
        *(
            Measurement(name=f"dumps of {case.name}", measure=partial(dumps, case=case), seconds=60)
            for case in context.pick(cases, (QUICKEST,))
        ),
        Measurement(name="search", measure=search, seconds=150),
    ]


def dumps(context: Context, *, case: Case) -> list[Row]:
    """Bare and dumped steps in turns; a dump's time includes its files."""
    device = context.open()
    small_batch = ["data.batch_size=8"] if not context.small else []
    settings = [*case.settings(context), *small_batch, *in_mode(MODES[0])]
    training = open_training(case.recipe, settings, device)
    stepper = training.stepper()
    folder = context.work / "dump"
    kinds = context.pick(KINDS, {"ops, 4 statistics": KINDS["ops, 4 statistics"]})
    seconds: dict[str, list[float]] = {}
    sizes: dict[str, tuple[int, int]] = {}

    def bare() -> None:
        stepper.step(training.batch)

    def timed(kind: str, run: Callable[[], None]) -> None:
        device.synchronize()
        start = time.perf_counter()
        run()
        device.synchronize()
        seconds.setdefault(kind, []).append(time.perf_counter() - start)

    for number in range(context.pick(6, 2)):
        if number > 1 and context.seconds_left <= 0:
            break
        timed("bare", bare)
        for kind, options in kinds.items():
            shutil.rmtree(folder, ignore_errors=True)

            def dumped(options: dict[str, object] = options) -> None:
                with jumar.precision.dump(
                    folder,
                    model=training.task.model,
                    max_gib=_MAX_GIB,
                    **options,  # pyright: ignore[reportArgumentType]
                ):
                    bare()

            timed(kind, dumped)
            files = [path for path in folder.rglob("*") if path.is_file()]
            sizes[kind] = (len(files), sum(path.stat().st_size for path in files))
        if number == 0:
            seconds.clear()
    shutil.rmtree(folder, ignore_errors=True)
    rest = median(seconds["bare"])
    return [
        {
            "dumped": case.title(context),
            "kind": kind,
            "ms": 1000 * median(taken),
            "times_bare": median(taken) / rest,
            "files": sizes.get(kind, (0, 0))[0],
            "MB": sizes.get(kind, (0, 0))[1] / 1e6,
        }
        for kind, taken in seconds.items()
    ]


def search(context: Context) -> list[Row]:
    """Which op types must stay in float32 for a demo to keep its loss, in real float16."""
    began = time.time()
    recipe = context.pick("alexnet-demo", "ds-cnn-s")
    small = ["data.batch_size=4", "training.duration=2it", "training.log_every=1it"]
    if context.small:
        small.append(f"data.path={clips(context)}")
    full = ["training.duration=150it", "training.log_every=50it"]
    assignments = [*in_mode("allow_mix_precision"), *context.pick(full, small)]
    measured = SourceRequest(what=recipe, assignments=assignments, device=context.device)
    source = find_source(measured, Ranks())
    folder = context.work / "search"
    request = SearchRequest(
        goal=parse_goal(context.pick("loss=5%", "loss=1000%")),
        to=folder.with_name("search-ops_info.json"),
        directory=folder,
        length=source.recipe.training.duration,
        first_seed=source.recipe.seed,
        num_seeds=context.pick(2, 1),
        max_trainings=context.pick(9, 3),
        refines=False,
        identity=trial_recipe(source, Path("/"), source.recipe.seed),
    )
    found = Search(
        request,
        measure=lambda: measure_effects(measured),
        recorded=partial(trial_recipe, source),
        command=lambda run, device: [sys.executable, str(_TRAIN), str(run), device],
        open_place=partial(open_place, "this", jobs=1, device=context.device, say=print),
        say=print,
    ).run()
    return [
        {
            "search": f"{recipe}, allow_mix_precision",
            "goal": str(found.goal),
            "op types": len(found.effects),
            "kept in float32": ", ".join(found.kept) or "nothing",
            "worse by": found.worse,
            "confirmed": f"{found.is_confirmed}",
            "trainings": found.num_trainings,
            "seconds": time.time() - began,
        }
    ]
