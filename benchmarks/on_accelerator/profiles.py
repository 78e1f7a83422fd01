"""`jumar profile` of each network: what recording costs, and the tables and small traces."""

import json
import shutil
import zipfile
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from statistics import median

from jumar.ground.files import written_beside
from jumar.runs.profile import ProfileRequest, profile_recipe
from jumar.training.profiling.capture import CaptureSettings
from on_accelerator.cases import CLASSIFIERS, OTHERS, PRETRAINING, QUICKEST, Case
from on_accelerator.measuring import Context, Measurement, Missing, Row
from on_accelerator.trainings import MODES, in_mode, short_name

PACKED = "profiles.zip"
TRACE = "trace.json.gz"
_MAX_BYTES = 14 << 20
"""What is carried back of all profiles together."""


def measurements(context: Context) -> Sequence[Measurement]:
    """One a network, in bfloat16."""
    cases = (*CLASSIFIERS, *PRETRAINING, *OTHERS)
    return [
        Measurement(name=case.name, measure=partial(profiled, case=case), seconds=25)
        for case in context.pick(cases, (QUICKEST,))
    ]


def profiled(context: Context, *, case: Case) -> list[Row]:
    """Record three steps and keep the tables."""
    if find_spec("polars") is None:
        raise Missing("needs polars, which is not installed")
    mode = MODES[0]
    name = "".join(letter if letter.isalnum() else "-" for letter in case.name)
    run = context.work / "profiles" / name
    shutil.rmtree(run, ignore_errors=True)
    profile_recipe(
        ProfileRequest(
            what=case.recipe,
            capture=CaptureSettings(steps=context.pick(3, 1), warm_up=context.pick(10, 3)),
            assignments=[*case.settings(context), *in_mode(mode), "training.duration=1000it"],
            run_dir=run,
            device=context.device,
        )
    )
    folder = run / "profile"
    capture = json.loads((folder / "environment.json").read_text(encoding="utf-8"))["capture"]
    recorded, plain = median(capture["step_ms"]), median(capture["plain_step_ms"])
    trace = folder / TRACE
    packed = pack(context)
    return [
        {
            "profile": case.title(context),
            "batch": case.samples(context),
            "mode": short_name(mode),
            "ms, recorded": recorded,
            "ms, plain": plain,
            "times_plain": recorded / plain,
            "trace, MB": trace.stat().st_size / 1e6,
            "trace in profiles.zip": "yes" if name in packed else "no",
        }
    ]


def pack(context: Context) -> set[str]:
    """Write `profiles.zip` anew: the tables of all profiles, then traces, the smallest first.

    Returns:
        The names of the profiles whose traces are in it too.
    """
    paths = [path for path in (context.work / "profiles").glob("*/profile/*") if path.is_file()]
    kept: set[str] = set()
    with (
        written_beside(context.out / PACKED) as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as file,
    ):
        for path in sorted(paths, key=lambda path: (path.name == TRACE, path.stat().st_size)):
            # Tables shrink to a tenth when packed; traces are packed already.
            size = path.stat().st_size // (1 if path.name == TRACE else 10)
            if temporary.stat().st_size + size > _MAX_BYTES:
                continue
            name = path.parent.parent.name
            file.write(path, f"{name}/{path.name}")
            kept |= {name} if path.name == TRACE else set()
    return kept
