"""Recording steps of a run without going on with it: `jumar profile`."""

import contextlib

from jumar.data.loading.faults import FaultTally
from jumar.data.loading.loader import resolve_workers
from jumar.data.loading.sampler import steps_per_epoch
from jumar.devices.contract import Device
from jumar.ground.errors import UserError
from jumar.precision.policy import PrecisionPolicy
from jumar.tasks.task import Task
from jumar.training.batches import batches_of
from jumar.training.checkpoint import Checkpoint
from jumar.training.distribution import Ranks
from jumar.training.durations import parse_duration
from jumar.training.guard import Guard
from jumar.training.profiling.capture import DATA, Capture
from jumar.training.settings import Plan
from jumar.training.state import TrainState
from jumar.training.step import Stepper


def record_steps(
    task: Task,
    plan: Plan,
    capture: Capture,
    *,
    device: Device,
    ranks: Ranks,
    policy: PrecisionPolicy,
    checkpoint: Checkpoint | None,
) -> None:
    """Make the steps that a capture wants, as the trainer makes them, and forget what they learned.

    Args:
        task: What is trained.
        plan: How.
        capture: Records.
        device: Where.
        ranks: Which of how many processes.
        policy: In force.
        checkpoint: Where to begin; None for the weights that the task begins with.

    Raises:
        UserError: The checkpoint is of another network, or the data cannot be read.
    """
    state = TrainState(task, plan, device, ranks, policy)
    if checkpoint is not None:
        state.restore(checkpoint)
    for objective in task.objectives:
        objective.train()
    task.model.train()
    epoch = steps_per_epoch(len(task.train_data), plan.batch_size * ranks.world)
    planned = parse_duration(plan.training.duration, field="training.duration").steps(epoch, None)
    stepper = Stepper(
        state,
        plan,
        ranks,
        Guard([objective.name for objective in task.objectives], device.torch, ranks),
        steps_per_epoch=epoch,
        total_steps=max(planned or 0, state.step + capture.span),
        marks=capture.marks,
    )
    loader = batches_of(
        task,
        plan,
        ranks=ranks,
        workers=resolve_workers(plan.workers, local_world=ranks.local_world, on_cpu=device.on_host),
        tally=FaultTally(plan.skip_corrupt),
        first_step=state.step,
        last_step=state.step + capture.span,
    )
    with contextlib.closing(loader), capture.around(state.step):
        batches = iter(device.copy_ahead(loader))
        for _ in range(capture.span):
            with capture.marks(DATA):
                batch = next(batches, None)
            if batch is None:
                raise UserError("the data ended before the last step", where="data.path")
            stepper.step(batch)
            capture.end_step()
            capture.begin_step(state.step)
