"""Plant faults into low-precision kernels, and see whether `search` mends them with an op list.

    python benchmarks/search_faults.py --seed 1 --faults 8 --folder faults

A fault is drawn by the seed: a recipe, an op type that its step calls, and what that type's kernels
do wrong, only in low precision. `jumar precision search` then looks for the op types that must stay
in float32. A fault is mended if the result is within the tolerance over all seeds. One that does
no harm (the run passes with everything in low precision) is counted apart, and another drawn.

Training runs import this file, which plants the fault that the environment names.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from jumar.precision import autocast_lists
from jumar.precision.oplist import Treatment
from jumar.precision.optypes import groups_by_type

_VARIABLE: Final = "JUMAR_PLANTED_FAULT"
_LOW: Final = (Treatment.LOW, Treatment.ROUND)


def lost_bits(out: Tensor) -> Tensor:
    """Two bits of the mantissa are left."""
    mantissa, exponent = torch.frexp(out)
    return torch.ldexp((mantissa * 4).round() / 4, exponent)


def flushed(out: Tensor) -> Tensor:
    """What is below an eighth of the largest becomes zero."""
    return out * (out.abs() >= out.abs().amax() / 8)


def saturated(out: Tensor) -> Tensor:
    """What is above a quarter of the largest is clamped."""
    most = out.detach().abs().amax() / 4
    return out.clamp(-most, most)


def scaled_twice(out: Tensor) -> Tensor:
    """A factor is applied a second time."""
    return out * 0.35


def cut_short(out: Tensor) -> Tensor:
    """The last quarter of each row is never written."""
    rows = torch.ones_like(out)
    rows[..., out.shape[-1] - out.shape[-1] // 4 :] = 0
    return out * rows if out.dim() else out * 0.75


def overflowing(out: Tensor) -> Tensor:
    """The largest element becomes infinite."""
    return out.masked_fill(out == out.amax(), torch.inf)


KINDS: Final[Mapping[str, Callable[[Tensor], Tensor]]] = {
    each.__name__: each
    for each in (lost_bits, flushed, saturated, scaled_twice, cut_short, overflowing)
}
RECIPES: Final[Mapping[str, tuple[str, ...]]] = {
    "alexnet-demo": ("loss=5%", "training.duration=40it"),
    "videnn-spatial": (
        "psnr=0.05",
        *("training.duration=80it", "model.depth=4", "model.width=16", "data.patch_size=16"),
        *("data.batch_size=16", "data.eval_levels=25", "data.channels=grey"),
    ),
    "vqvae-mnist": ("mse=3%", "training.duration=80it", "data.batch_size=16"),
}
"""A tolerance, then settings that make a run take seconds."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is planted: the ops of a CANN type do something wrong in low precision."""

    recipe: str
    type: str
    kind: str


def plant(type_name: str, kind: str) -> None:
    """Replace the low-precision kernels of a type for the rest of this process."""
    change, ops = KINDS[kind], groups_by_type()[type_name].ops
    original = autocast_lists.kernel_for

    def kernel_for(op: str, treatment: Treatment, device_type: str) -> Any:
        kernel = original(op, treatment, device_type)
        if op not in ops or treatment not in _LOW:
            return kernel

        def faulty(*args: Any, **kwargs: Any) -> Any:
            result = kernel(*args, **kwargs)
            # The change may call the op itself.
            with autocast_lists.without_lists(device_type):
                return _changed(change, result)

        return faulty

    # Where torch's own kernel does the same as the list, none of ours would be asked for.
    autocast_lists.same_effect = lambda *_: False
    autocast_lists.kernel_for = kernel_for


def _changed(change: Callable[[Tensor], Tensor], result: Any) -> Any:
    if isinstance(result, Tensor):
        if not result.is_floating_point() or not result.numel():
            return result
        # The network may write into what it is given, which the change needs in its backward.
        return change(result).clone()
    if isinstance(result, tuple):
        first, *others = result
        return (_changed(change, first), *others)
    return result


def search(fault: Fault | None, recipe: str, folder: Path) -> dict[str, Any]:
    """Run `jumar precision search` as a user would; the fault is in its environment."""
    tolerance, *settings = RECIPES[recipe]
    command = [sys.executable, "-m", "jumar", "precision", "search", recipe, "--json"]
    command += ["--tolerance", tolerance, "--emulate-fp16", "--device", "cpu"]
    command += ["--import", Path(__file__).stem, "--runs", str(folder / "runs")]
    command += ["--to", str(folder / "ops_info.json")]
    for setting in (
        *settings,
        *("precision.mode=allow_mix_precision", "precision.loss_scale=none"),
        *("threads.intra_op=1", "data.workers=0", "checkpoints.every=9999it"),
        "training.evaluate_every=9999it",
    ):
        command += ["--set", setting]
    planted = "" if fault is None else f"{fault.type} {fault.kind}"
    folders = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, _VARIABLE: planted, "PYTHONPATH": os.pathsep.join(folders)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if "{\n" not in done.stdout:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
    (folder / "result.json").write_text(done.stdout)
    return json.loads(done.stdout[done.stdout.index("{\n") :])


def main() -> None:
    """Draw faults until so many did harm, and print what became of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=int, default=8)
    parser.add_argument("--folder", type=Path, default=Path("faults"))
    options = parser.parse_args()
    draw = random.Random(options.seed)
    types: dict[str, list[str]] = {}
    healthy: dict[str, list[str]] = {}
    for recipe in RECIPES:
        folder = options.folder / f"healthy-{recipe}"
        folder.mkdir(parents=True, exist_ok=True)
        content = search(None, recipe, folder)
        known = groups_by_type()
        types[recipe] = [row["type"] for row in content["op_types"] if row["type"] in known]
        healthy[recipe] = [row["type"] for row in content["kept"]]
        print(f"no fault, {recipe}: {', '.join(healthy[recipe]) or 'nothing'} in float32")
    harmful = mended = exact = number = 0
    while harmful < options.faults:
        recipe = draw.choice(list(RECIPES))
        fault = Fault(recipe=recipe, type=draw.choice(types[recipe]), kind=draw.choice(list(KINDS)))
        number += 1
        folder = options.folder / f"{number:02}-{recipe}-{fault.type}-{fault.kind}"
        folder.mkdir(parents=True, exist_ok=True)
        content = search(fault, recipe, folder)
        kept = [row["type"] for row in content["kept"]]
        is_harmful = set(kept) != set(healthy[recipe])
        harmful += is_harmful
        mended += is_harmful and content["is_confirmed"]
        exact += is_harmful and set(kept) == {*healthy[recipe], fault.type}
        verdict = "mended" if content["is_confirmed"] else "not mended"
        verdict = verdict if is_harmful else "no harm"
        print(
            f"{fault.kind} in {fault.type} of {recipe}: {verdict}; {', '.join(kept) or 'nothing'} "
            f"in float32, {content['num_trainings']} runs",
            flush=True,
        )
    print(
        f"seed {options.seed}: {mended} of {harmful} harmful faults mended, {exact} by that op "
        f"type alone; {number - harmful} did no harm"
    )


if __name__ == "__main__":
    main()
elif planted := os.environ.get(_VARIABLE):
    plant(*planted.split())
