"""Checks before the first step: first batch, a step without an update, memory, time and disk."""

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from jumar.data.samples import Batch
from jumar.devices.contract import Device
from jumar.devices.registry import is_out_of_memory
from jumar.ground.errors import UserError
from jumar.ground.machine import memory_bytes
from jumar.ground.paths import exists, is_folder
from jumar.ground.text import counted, first_line, size_text, time_text
from jumar.precision.dumps.dump import dtype_name
from jumar.training.parallel.ranks import Ranks
from jumar.training.settings import Plan
from jumar.training.state import TrainState
from jumar.training.step import Stepper

SECOND_PASS_BELOW_S = 2.0
"""The first pass chooses kernels and allocates memory. A second one is timed if it is cheap, or if
the first one compiled the network, so that its time does not predict the time of later steps."""


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """The cost of a step.

    Attributes:
        step_s: Seconds for a forward and a backward pass, without the update.
        memory_bytes: Peak memory of the device afterwards, or of the process on a CPU.
    """

    step_s: float
    memory_bytes: int | None


def rehearse(
    stepper: Stepper, batch: Batch, device: Device, ranks: Ranks, *, compiles: bool
) -> Rehearsal:
    """Run a forward and a backward pass on the first batch without side effects.

    Args:
        stepper: Runs the passes.
        batch: The first batch.
        device: The device to run on.
        ranks: The ranks, which rehearse together because the backward pass waits for all of them.
        compiles: Whether the first pass compiles the network.

    Raises:
        UserError: The device does not have enough memory, or the network cannot be compiled.
    """
    try:
        seconds = _timed(stepper, batch, device, ranks)
        if compiles or not device.on_host or seconds < SECOND_PASS_BELOW_S:
            seconds = _timed(stepper, batch, device, ranks)
    except Exception as error:
        if compiles and _is_of_the_compiler(error):
            raise UserError(
                f"torch.compile failed: {first_line(str(error), type(error).__name__)}",
                where="training.compile",
                todo="On a CPU it needs a C++ compiler (g++, or the one named by CXX), and a "
                "Python in a folder without a space in its name. "
                "To do without it: --set training.compile=false",
            ) from error
        if not is_out_of_memory(error):
            raise
        raise UserError(
            f"the batch does not fit into the memory of {device.name}",
            todo="Make data.batch_size smaller, or keep it and set training.micro_batch_size.",
        ) from error
    return Rehearsal(step_s=seconds, memory_bytes=device.memory_peak_bytes())


def describe_batch(batch: Batch) -> str:
    """Names, dtypes and shapes of a batch, for instance `image uint8 64x3x32x32`."""
    return ", ".join(
        f"{name} {dtype_name(value.dtype)} " + "x".join(str(size) for size in value.shape)
        for name, value in batch.items()
    )


def fallback_note(ops: Sequence[str], device: Device) -> str:
    """The message about ops without a kernel, which the CPU computes; empty if there are none."""
    if not ops:
        return ""
    return (
        f"computed on the CPU, since {device.name} has no kernel for it: {', '.join(ops)}; each "
        f"copies its tensors there and back. {device.fallback_remedy}"
    )


def announcement(
    batch: Batch,
    rehearsal: Rehearsal,
    *,
    samples: int,
    steps_per_epoch: int,
    done_steps: int,
    total_steps: int | None,
    checkpoints: str,
    fallback_note: str = "",
) -> list[str]:
    """The lines printed before the first step."""
    memory = (
        "" if rehearsal.memory_bytes is None else f" · memory: {size_text(rehearsal.memory_bytes)}"
    )
    lines = [
        f"first batch: {describe_batch(batch)}{memory}",
        f"{counted(samples, 'sample')}, {counted(steps_per_epoch, 'step')} per epoch · "
        f"checkpoints: {checkpoints}",
    ]
    if fallback_note:
        lines.append(fallback_note)
    step_time = f"about {1000 * rehearsal.step_s:.0f} ms each without the update"
    if total_steps is None:
        lines.append(f"training for training.duration, {step_time}")
    else:
        steps_left = total_steps - done_steps
        lines.append(
            f"{steps_left} of {total_steps} steps to go, {step_time}: "
            f"about {time_text(steps_left * rehearsal.step_s)}, not counting evaluation"
        )
    return lines


def checkpoint_bytes(state: TrainState, plan: Plan) -> int:
    """Approximate size of one checkpoint: weights, averages and optimizer slots."""
    model = state.task.model.state_dict().values()
    weights = sum(tensor.numel() * tensor.element_size() for tensor in model)
    may_unfreeze = bool(plan.transfer.unfreeze_at)
    slots = sum(
        parameter.numel()
        * parameter.element_size()
        * len(plan.optimization_of(lane.objective.name).optimizer.slots)
        for lane in state.lanes
        for parameter in lane.objective.trained.parameters()
        if parameter.requires_grad or may_unfreeze
    )
    return weights * (1 if state.ema is None else 2) + slots


def check_memory(state: TrainState, device: Device, checkpoint: int) -> None:
    """Check that gradients, the optimizer's slots and the copy of a checkpoint fit into memory.

    Otherwise Linux, which overcommits memory, would kill the process in the middle of a step.

    Args:
        state: The state before the first step; a resumed one already has its slots.
        device: The device; only a CPU is checked, because other allocators report the problem.
        checkpoint: Size of a checkpoint in bytes: the slots, and the weights, which are as large as
            gradients. It is copied before it is written.

    Raises:
        UserError: They do not fit.
    """
    free, _ = memory_bytes()
    required = checkpoint if state.step else 2 * checkpoint
    if device.on_host and required > free:
        reason = "gradients, optimizer and the copy of a checkpoint need"
        if state.step:
            reason = "the copy of a checkpoint needs"
        raise UserError(
            f"{reason} {size_text(required)}, but only {size_text(free)} of memory is free",
            where="model",
            todo="Make the network smaller (jumar recipes show NAME lists the fields of `model`), "
            "or use a --device with more memory.",
        )


def check_disk(directory: Path, needed: int) -> None:
    """Check that a run's checkpoints fit on the disk.

    Raises:
        UserError: They do not fit, or the directory is not writable.
    """
    folder = directory.absolute()
    while not exists(folder):
        folder = folder.parent
    if not is_folder(folder) or not os.access(folder, os.W_OK):
        raise UserError("not writable", where=str(folder), todo="Choose another --run-dir.")
    disk = shutil.disk_usage(folder)
    if not disk.total:  # /proc and the like
        raise UserError(
            "not writable: not on a disk",
            where=str(folder),
            todo="Choose another --run-dir.",
        )
    free = disk.free
    if free < needed:
        raise UserError(
            f"checkpoints need {size_text(needed)}, but only {size_text(free)} is free",
            where=str(folder),
            todo="Free some space, choose another --run-dir, or lower checkpoints.keep.",
        )


def _is_of_the_compiler(error: Exception) -> bool:
    # By module name: importing the compiler for an isinstance check would cost every run a second.
    return any(
        kind.__module__.startswith(("torch._dynamo", "torch._inductor"))
        for kind in type(error).__mro__
    )


def _timed(stepper: Stepper, batch: Batch, device: Device, ranks: Ranks) -> float:
    """Seconds of one rehearsal on the slowest rank, so that all ranks make the same decision."""
    start = time.perf_counter()
    stepper.rehearse(batch)
    device.synchronize()
    seconds = torch.tensor(time.perf_counter() - start, dtype=torch.float32, device=device.torch)
    return ranks.maximum(seconds).item()
