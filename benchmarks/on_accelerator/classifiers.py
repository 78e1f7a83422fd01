"""ResNeXt-50 and AlexNet: images a second beside the best loops of others, and from real pictures.

Peers are the same network in a loop written by hand and timm's ResNeXt-50, both with channels_last,
a fused optimizer, torch's autocast and, in float16, its GradScaler; eager and compiled.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from jumar.devices.contract import Device
from jumar.models.keyed_random import set_random_position
from jumar.precision.modes import find_mode
from jumar.recipes.classification import ClassificationRecipe
from jumar.recipes.registry import create_recipe
from jumar.runs.context import ChosenRun, open_context
from jumar.runs.observed_steps import observing_trainer
from jumar.settings import override
from jumar.training.run_directory import RunDirectory
from on_accelerator.cases import CLASSIFIERS, Case
from on_accelerator.measuring import Context, Measurement, Row
from on_accelerator.rivals import Rival, Step, compare
from on_accelerator.stopwatch import Stopwatch
from on_accelerator.trainings import MODES, dtype_of, in_mode, jumar_rival, short_name

_PEERS_IN = MODES[:3]
"""The modes that torch's autocast has too."""


def measurements(context: Context) -> Sequence[Measurement]:
    """Each network in each mode, then from real pictures."""
    compared = [
        Measurement(
            name=f"{case.name}, {short_name(mode)}",
            measure=partial(in_turns, case=case, mode=mode),
            seconds=90 if mode in _PEERS_IN else 60,
            is_later=mode not in _PEERS_IN,
        )
        for mode in context.pick(MODES, MODES[:1])
        for case in CLASSIFIERS
    ]
    fed = [
        Measurement(
            name=f"{case.name}, from JPEG files",
            measure=partial(from_pictures, case=case),
            seconds=40,
        )
        for case in context.pick(CLASSIFIERS, CLASSIFIERS[1:])
    ]
    return [*compared[:2], *fed, *compared[2:]]


def in_turns(context: Context, *, case: Case, mode: str) -> list[Row]:
    """Steps on a batch that is on the device already."""
    if mode == "must_keep_origin_dtype":
        # All rivals hold their memory at once: in float32 that of 256 pictures is too much.
        case = replace(case, batch=case.batch // 2)
    settings, samples = [*case.settings(context), *in_mode(mode)], case.samples(context)
    compiles = context.pick((False, True), (False,))
    rivals = [jumar_rival(case.recipe, settings, compiled=compiled) for compiled in compiles]
    if mode in _PEERS_IN:
        names = ["by hand", "timm"] if case.recipe == "resnext50" else ["by hand"]
        rivals += [
            _peer(name, case, mode, compiled=compiled) for name in names for compiled in compiles
        ]
    about = {"network": case.title(context), "batch": samples, "mode": short_name(mode)}
    return compare(context, rivals, about, samples=samples, dtype=dtype_of(mode))


def from_pictures(context: Context, *, case: Case) -> list[Row]:
    """The whole loop: files decoded and changed by workers, copied, trained on."""
    mode = MODES[0]
    recipe = override(create_recipe(case.recipe), [*case.settings(context), *in_mode(mode)])
    chosen = ChosenRun(
        run=RunDirectory(context.work / "from-pictures"),
        recipe=recipe,
        name=case.recipe,
        imports=(),
    )
    with open_context(lambda _: chosen, device=context.device, writes=False) as opened:
        task = opened.build_task(recipe)
        watch = Stopwatch(opened.device, warm_up=context.pick(10, 1), steps=context.pick(60, 3))
        trainer = observing_trainer(opened, task, chosen.plan, [watch])
        trainer.observe(None)
        samples = case.samples(context)
        return [
            {
                "network, from JPEG files": case.title(context),
                "batch": samples,
                "mode": short_name(mode),
                "workers": trainer.workers,
                "samples_s": samples / watch.step_s,
                "ms": 1000 * watch.step_s,
                "ms waiting for data": 1000 * watch.waiting_s,
            }
        ]


def _peer(name: str, case: Case, mode: str, *, compiled: bool) -> Rival:
    """A loop over the same network by hand, or over timm's."""

    def build(context: Context, device: Device) -> Step:
        recipe = override(create_recipe(case.recipe), case.settings(context))
        assert isinstance(recipe, ClassificationRecipe)
        size, classes = recipe.data.image_size, recipe.model.num_classes
        if name == "timm":
            timm: Any = import_module("timm")  # not among our dependencies
            model = timm.create_model("resnext50_32x4d", num_classes=classes)
        else:
            model = recipe.model.create(num_classes=classes, image_size=size)
        samples = case.samples(context)
        images = torch.randn(samples, 3, size, size).to(
            device.torch, memory_format=torch.channels_last
        )
        labels = torch.randint(0, classes, (samples,)).to(device.torch)
        return plain_loop(model, images, labels, device, mode, compiled=compiled)

    label = f"{name}, torch.compile" if compiled else name
    return Rival(name=label, build=build, is_peer=True)


def plain_loop(
    model: nn.Module, images: Tensor, labels: Tensor, device: Device, mode: str, *, compiled: bool
) -> Step:
    """The best training loop that a person would write: its step."""
    dtype = find_mode(mode).low
    if dtype == torch.float16 and not device.computes_fp16:
        dtype = torch.bfloat16
    device.set_full_float32(True)
    device.set_deterministic(False)  # so that cuDNN searches for the fastest kernels
    model.to(device.torch, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    model.train()
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=0.01,
        momentum=0.9,
        nesterov=True,
        weight_decay=1e-4,
        fused=device.has_kernel("_fused_sgd_"),
    )
    scaler = torch.amp.GradScaler(device.kind, enabled=dtype == torch.float16)
    call = cast(nn.Module, torch.compile(model)) if compiled else model
    steps = itertools.count()

    def step() -> None:
        set_random_position(model, next(steps), 0)
        with torch.autocast(device.kind, dtype or torch.bfloat16, enabled=dtype is not None):
            loss = functional.cross_entropy(call(images), labels, label_smoothing=0.1)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)

    return step
