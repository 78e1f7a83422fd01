"""Program: train small tasks on 1 to 6 ranks, which are forks, and leave the runs in a folder.

    python -m tests.training.exact_on_ranks FOLDER CASE WORLD,WORLD,... STEPS

Ranks of one WORLD are started together; `4+2` resumes with two ranks what four began.
"""

import gc
import importlib
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from forked_ranks import run_ranks
from jumar.devices.registry import open_device
from jumar.precision.loss_scale import ExponentialLossScale
from jumar.precision.policy import PrecisionPolicy
from jumar.precision.settings import PrecisionSettings
from jumar.tasks.task import Task
from jumar.training.checkpoint_retention import newest_checkpoint
from jumar.training.optimizers import Lamb
from jumar.training.parallel.announced import announced_ranks
from jumar.training.parallel.exact import adding_exactly
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory
from jumar.training.schedules import Constant
from jumar.training.settings import Optimization, Plan, TrainingSettings
from jumar.training.signals import StopRequest
from jumar.training.trainer import Trainer
from tests.training.small_tasks import GanTask, MaskedTask, Points, point_task, small_plan

GLOBAL_BATCH = 12
LIMIT_S = 60


def overflowing() -> Task:
    """A task of which one sample overflows, at a step in the middle."""
    task = point_task()
    assert isinstance(task.train_data, Points)
    task.train_data.points[9] = 3e38
    return task


CASES: dict[str, Callable[[], Task]] = {
    "points": point_task,
    "fast": point_task,
    "gan": GanTask,
    "masked": MaskedTask,
    "overflow": overflowing,
}


def plan_of(case: str, task: Task, world: int, steps: int) -> Plan:
    training = TrainingSettings(
        log_every="1it",
        evaluate_every="3it",
        sums="fast" if case == "fast" else "exact",
        micro_batch_size=2 if case == "masked" else 1 if case == "gan" else 2,
        clip="global_norm",
        ema_decay=0.9,
    )
    precision = PrecisionSettings(mode="must_keep_origin_dtype")
    if case == "overflow":
        scale = ExponentialLossScale(init_loss_scale=8.0, decr_every_n_nan_or_inf=1)
        precision = PrecisionSettings(mode="must_keep_origin_dtype", loss_scale=scale)
    names = [objective.name for objective in task.objectives]
    plan = small_plan(
        duration=f"{steps}it",
        objectives=names,
        training=training,
        precision=precision,
        batch_size=GLOBAL_BATCH // world,
    )
    best = Optimization(optimizer=Lamb(learning_rate=0.01), schedule=Constant())
    return replace(plan, optimization=dict.fromkeys(names, best))


def train(case: str, folder: Path, steps: int) -> None:
    """Train or resume as one rank."""
    torch.set_num_threads(1)
    torch.manual_seed(4)
    task = CASES[case]()
    ranks = announced_ranks()
    plan = plan_of(case, task, ranks.world, steps)
    if case != "fast":
        ranks = adding_exactly(ranks)
    device = open_device("cpu")
    ranks.connect(device)
    policy = PrecisionPolicy(plan.precision, device_type="cpu")
    policy.install()
    run = RunDirectory(folder)
    trainer = Trainer(
        task,
        plan,
        device=device,
        ranks=ranks,
        run=run,
        console=Console(silent=True),
        stop=StopRequest(),
        policy=policy,
        versions={},
    )
    begun = newest_checkpoint(run.checkpoints, print)
    if begun is not None:
        trainer.resume(begun)
    assert trainer.train().state == "finished"
    ranks.disconnect()


def main() -> None:
    # What every fork would import as it creates its optimizer.
    importlib.import_module("torch._dynamo")
    gc.freeze()
    folder, case, worlds, steps = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    for chosen in worlds.split(","):
        run = folder / chosen
        run.mkdir(parents=True)
        parts = [int(world) for world in chosen.split("+")]
        ends = [(number + 1) * steps // len(parts) for number in range(len(parts))]
        for world, end in zip(parts, ends, strict=True):
            run_ranks(world, lambda _, run=run, end=end: train(case, run, end), limit_s=LIMIT_S)


if __name__ == "__main__":
    main()
