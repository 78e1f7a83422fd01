"""Learning in slices: runs that stop at the deadline and go on in the next call."""

import json
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from jumar.runs.train import TrainRequest, train_recipe
from on_accelerator.measuring import Context, Failed, GoesOn, Measurement, Missing, Row
from on_accelerator.trainings import MODES, in_mode
from on_accelerator.written_data import pictures

_SAVING_S = 25.0
"""What a run may take from the signal until its checkpoint is on the disk."""
_STOPPED = 128 + signal.SIGTERM
_SIGMA_25 = (
    "data.noise.sigma=25",
    "data.noise.storage=float",
    "data.eval_levels=25",
    "data.batch_size=64",
    "training.duration=20000it",
    "training.evaluate_every=2000it",
    "schedule=cosine",
    "checkpoints.every=1000it",
)
_CATS = (
    "data.match=cat/*",
    "data.batch_size=32",
    "model.width=96",
    "training.duration=20000it",
    "training.evaluate_every=2000it",
    "checkpoints.every=1000it",
    *in_mode("allow_mix_precision_bf16"),
)

_SHORT = ("training.duration=3it", "training.evaluate_every=3it", "training.log_every=1it")


def measurements(context: Context) -> Sequence[Measurement]:
    """AlexNet's demo in each mode, then what needs data."""
    modes = context.pick((MODES[2], *MODES[:2], *MODES[3:]), MODES[:1])
    return [
        *(
            Measurement(name=f"AlexNet demo, {mode}", measure=partial(demo, mode=mode), seconds=30)
            for mode in modes
        ),
        Measurement(name="ViDeNN at sigma 25", measure=videnn, seconds=60, is_slice=True),
        Measurement(name="BigGAN's cats", measure=cats, seconds=60, is_slice=True),
    ]


def demo(context: Context, *, mode: str) -> list[Row]:
    """The demo of `make demo`, in which float16 is real."""
    small = [
        f"data.path={pictures(context)}",
        "data.batch_size=2",
        "data.eval_batch_size=4",
        *_SHORT,
    ]
    settings = [*in_mode(mode), *context.pick([], small)]
    return trained_for_a_while(context, f"alexnet-{mode}", "alexnet-demo", settings)


def videnn(context: Context) -> list[Row]:
    """ViDeNN's spatial network on BSDS500, scored on CBSD68."""
    train, scored = (
        _given(context, f"denoise/{name}.zip") for name in ("bsds500-train200", "cbsd68-jpg")
    )
    data = [f"data.path={train}", f"data.eval_path={scored}"]
    small = context.pick([], ["data.batch_size=2", *_SHORT])
    return trained_for_a_while(context, "videnn-25", "videnn-spatial", [*data, *_SIGMA_25, *small])


def cats(context: Context) -> list[Row]:
    """BigGAN at full width on photographs of cats."""
    data = [f"data.path={_given(context, 'cats-dogs-128')}"]
    small = context.pick([], ["model.width=8", "data.batch_size=4", *_SHORT])
    return trained_for_a_while(context, "cats", "biggan128-cats", [*data, *_CATS, *small])


def _given(context: Context, name: str) -> Path:
    if context.data is None or not (context.data / name).exists():
        raise Missing(f"needs {name} in the folder given with --data")
    return (context.data / name).absolute()


def trained_for_a_while(
    context: Context, name: str, recipe: str, settings: Sequence[str]
) -> list[Row]:
    """Train until the deadline or the end; the run is in the work folder."""
    run = context.work / "learning" / name
    # Until the run listens to it, the signal must not end the process.
    signal.signal(signal.SIGTERM, _not_begun)
    # Not a thread: jumar forks the loader's workers where there is but one.
    signal.signal(signal.SIGALRM, _ask_to_stop)
    signal.setitimer(signal.ITIMER_REAL, max(context.seconds_left - _SAVING_S, 0.001))
    try:
        code = train_recipe(
            TrainRequest(recipe=recipe, assignments=settings, run_dir=run, device=context.device)
        )
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    rows = [_row(name, run)]
    if code == _STOPPED:
        raise GoesOn(rows)
    if code:
        raise Failed(rows, f"the run ended with exit code {code}")
    return rows


def _ask_to_stop(number: int, frame: FrameType | None) -> None:
    del number, frame
    signal.raise_signal(signal.SIGTERM)


def _not_begun(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise GoesOn([])


def _row(name: str, run: Path) -> Row:
    results: dict[str, Any] = json.loads((run / "results.json").read_text(encoding="utf-8"))
    scores = results.get("metrics") or {}
    pace = results.get("throughput") or {}
    return {
        "run": name,
        "computed in": results["precision"]["computed"],
        "steps": results.get("steps"),
        "loss in training": results.get("train_loss"),
        "scores": ", ".join(
            f"{key} {value:.4g}" for key, value in scores.items() if isinstance(value, float)
        ),
        "skipped updates": results.get("skipped_steps"),
        "samples/s in training": pace.get("samples_per_second"),
    }
