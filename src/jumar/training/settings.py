"""The part of a recipe that configures the trainer, independent of the task."""

from collections.abc import Mapping
from dataclasses import dataclass

from jumar.ground.errors import UserError
from jumar.precision.settings import PrecisionSettings
from jumar.settings import setting
from jumar.training.optimizers import OptimizerSettings
from jumar.training.schedules import ScheduleSettings


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Length and shape of a run."""

    duration: str = setting(
        "90ep", "How long to train.", unit="500it, 3ep or 30min", changeable=True
    )
    log_every: str = setting(
        "100it", "How often a log line is written.", unit="it, ep, % or min", changeable=True
    )
    device_load_every_s: float = setting(
        5.0,
        "How often load, memory, power and temperature of the device are read; 0: never.",
        unit="s",
        minimum=0.0,
        changeable=True,
    )
    evaluate_every: str = setting(
        "1ep",
        "How often the model is scored; empty: only at the end.",
        unit="it, ep, % or min",
        changeable=True,
    )
    micro_batch_size: int = setting(
        0,
        "Split each rank's batch into parts of this size and accumulate their gradients; the "
        "result equals that of the whole batch; 0: do not split.",
        unit="samples",
        minimum=0,
        changeable=True,
    )
    sums: str = setting(
        "fast",
        "How gradients and losses are added over parts and ranks; exact: in an order that gives "
        "bit-identical weights for any number of ranks, with parts of micro_batch_size samples.",
        choices=("fast", "exact"),
    )
    clip: str = setting(
        "none",
        "Gradient clipping.",
        choices=("none", "global_norm", "norm", "value"),
    )
    clip_limit: float = setting(
        1.0,
        "Limit of the gradient clipping.",
        minimum=0.0,
        only_with={"clip": ("global_norm", "norm", "value")},
    )
    log_gradient_norm: bool = setting(
        False,
        "Log the joint norm of all gradients before clipping; with clip=global_norm or norm it is "
        "always logged.",
        changeable=True,
    )
    ema_decay: float = setting(
        0.0,
        "Decay of the exponential moving average of the weights; 0: none.",
        minimum=0,
        maximum=1,
    )
    ema_warm_up: bool = setting(
        True,
        "Let the decay grow as (1+step)/(10+step) up to its value, so that early weights fade.",
        only_with={"ema_decay": ()},
    )
    channels_last: bool = setting(
        True, "Store images and convolution kernels as NHWC (faster on CPU and on tensor cores)."
    )
    compile: bool = setting(
        False,
        "Compile the objectives with torch.compile (55 to 80 s before the first step).",
        changeable=True,
    )
    deterministic: bool = setting(
        False, "Use only deterministic kernels on CUDA and NPU (CPU runs always do)."
    )
    explain_overflow: bool = setting(
        False,
        "Name the op behind the first skipped updates and behind a loss that is not finite; reads "
        "a flag from the device at every step.",
        changeable=True,
    )


@dataclass(frozen=True, kw_only=True)
class CheckpointSettings:
    """When checkpoints are written, and which are kept."""

    every: str = setting(
        "1ep",
        "How often a checkpoint is written; one is always written at the end.",
        unit="duration",
    )
    keep: int = setting(5, "Number of newest checkpoints to keep.", minimum=1)
    keep_best: bool = setting(True, "Also keep the best-scored checkpoint.")


@dataclass(frozen=True, kw_only=True)
class EarlyStoppingSettings:
    """When a run ends before its duration because its main metric no longer improves."""

    patience: int = setting(
        0, "End after this many evaluations in a row without an improvement; 0: never.", minimum=0
    )
    min_delta: float = setting(
        0.0,
        "An improvement must be larger than this, in the unit of the metric.",
        minimum=0.0,
        only_with={"patience": ()},
    )


@dataclass(frozen=True, kw_only=True)
class ThreadSettings:
    """CPU threads."""

    intra_op: int = setting(
        0,
        "Threads within one operation (intra_op_parallelism_threads); 0: automatic.",
        minimum=0,
    )
    inter_op: int = setting(
        0, "Operations in parallel (inter_op_parallelism_threads); 0: automatic.", minimum=0
    )


@dataclass(frozen=True, kw_only=True)
class TransferSettings:
    """Weights to start from instead of random initialisation, and which parameters are frozen."""

    start_from: str = setting(
        "",
        "A run, a checkpoint of one, a .safetensors file, or a Hugging Face folder with one; "
        "empty: initialise.",
        unit="path",
        changeable=True,
    )
    restore_exclude: tuple[str, ...] = setting(
        (),
        "Names, name prefixes or patterns of weights not to load.",
        changeable=True,
        only_with={"start_from": ()},
    )
    use_ema: bool = setting(
        True,
        "Use the averaged weights if the checkpoint has them.",
        changeable=True,
        only_with={"start_from": ()},
    )
    freeze: tuple[str, ...] = setting(
        (), "Names, name prefixes or patterns of parameters that are not trained."
    )
    freeze_batch_norms: bool = setting(
        False,
        "Batch norms whose parameters are frozen normalise with their averages, without changing "
        "them.",
        only_with={"freeze": ()},
    )
    unfreeze_at: str = setting(
        "",
        "When frozen parameters begin to train; empty: never.",
        unit="it or ep",
        only_with={"freeze": ()},
    )


@dataclass(frozen=True, kw_only=True)
class Optimization:
    """How one objective is minimised."""

    optimizer: OptimizerSettings
    schedule: ScheduleSettings


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything the trainer needs to know about a recipe.

    Attributes:
        recipe: Name of the recipe, for the results.
        batch_size: Samples per rank and step.
        eval_batch_size: Samples per rank and evaluation batch.
        workers: Loader processes per rank; -1 for automatic.
        prefetch: Number of batches that each loader process prepares ahead.
        skip_corrupt: Maximum number of unreadable samples per rank.
        optimization: Optimizer and schedule, by the name of the objective.
    """

    recipe: str
    seed: int
    batch_size: int
    eval_batch_size: int
    workers: int
    prefetch: int
    skip_corrupt: int
    training: TrainingSettings
    checkpoints: CheckpointSettings
    precision: PrecisionSettings
    threads: ThreadSettings
    transfer: TransferSettings
    optimization: Mapping[str, Optimization]
    early_stopping: EarlyStoppingSettings = EarlyStoppingSettings()

    def optimization_of(self, objective: str) -> Optimization:
        """The optimizer and schedule of an objective, by its name."""
        if objective not in self.optimization:
            raise UserError(
                f"the recipe '{self.recipe}' defines no optimizer for the objective '{objective}'",
                todo=f"Its `optimization()` names: {', '.join(self.optimization) or 'none'}.",
            )
        return self.optimization[objective]
