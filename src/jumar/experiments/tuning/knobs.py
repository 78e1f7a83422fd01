"""Settings that can make a step faster, and their declared effect on the weights.

There are three classes. `identical`: the weights stay bit-identical. `rounding`: sums have another
order, or other kernels round differently. `mathematics` (precision, batch size): a different
training, which is never tried. The declared class is verified by a hash of the weights.
"""

import ctypes.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from jumar.experiments.tuning.bottleneck import Bottleneck, Facts, Limit
from jumar.recipes.tuned import ALLOCATORS, VARIABLES

Claim = Literal["identical", "rounding"]
Kinds = set[Bottleneck]

MATHEMATICS: Final = ("precision", "batch size", "accumulation")
"""Settings that change the training itself, which are left to its author."""
COMPILE: Final = "training.compile"
DEFAULT_VARIABLES: Final = {"THP_MEM_ALLOC_ENABLE": "1"}
"""Environment variables that jumar sets by default (`jumar/__init__.py`)."""
_MALLOC_TUNABLES: Final = (
    "glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=1073741824"
)
"""Set by `training/memory.py` if glibc's tunables are not set."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A value of a knob.

    Attributes:
        knob: The knob; a combination has at most one choice per knob.
        label: The choice as it is printed.
        claim: Its declared effect on the weights.
        settings: Fields of the recipe.
        environment: Environment variables.
    """

    knob: str
    label: str
    claim: Claim
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Combination:
    """A set of choices; without any, the initial settings."""

    choices: tuple[Choice, ...] = ()

    @property
    def settings(self) -> dict[str, str]:
        """Fields of the recipe, by name."""
        return {name: value for choice in self.choices for name, value in choice.settings.items()}

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables, by name."""
        return {
            name: value for choice in self.choices for name, value in choice.environment.items()
        }

    @property
    def labels(self) -> tuple[str, ...]:
        """The sorted labels of the choices, which identify the combination."""
        return tuple(sorted(choice.label for choice in self.choices))

    def with_choice(self, choice: Choice) -> "Combination":
        """Return the combination with another choice for a knob."""
        others = tuple(other for other in self.choices if other.knob != choice.knob)
        return Combination((*others, choice))


@dataclass(frozen=True, kw_only=True)
class Start:
    """The initial settings.

    Attributes:
        fields: The recipe's settings, by `section.field`.
        environment: The variables of this process; those set by the user are not changed.
    """

    fields: Mapping[str, Any]
    environment: Mapping[str, str]


def choices_for(
    start: Start, facts: Facts, limits: Sequence[Limit], *, allow_rounding: bool
) -> list[Choice]:
    """Return the choices worth trying, most promising first.

    Args:
        start: The initial settings.
        facts: Their measurement.
        limits: The bottlenecks; only knobs for these are tried.
        allow_rounding: Whether the weights may round differently.
    """
    kinds: Kinds = {limit.kind for limit in limits}
    choices: list[Choice] = []
    if allow_rounding and "compute" in kinds:
        choices += _arithmetic(start, facts)
    if "input" in kinds:
        choices += _loading(start, facts)
    if "compute" in kinds and facts.on_host:
        choices += _memory()
        choices += _binding(facts)
    if not facts.on_host:
        choices += _device(facts, kinds)
    if allow_rounding and {"compute", "host"} & kinds:
        choices += _fused(start)
        choices += _compiled(start)
    return [choice for choice in choices if not set(choice.environment) & set(start.environment)]


def variables_set_by_user(start: Start) -> list[str]:
    """Return the tunable environment variables that the user has set, which are not tried."""
    user_set = {
        name for name, value in start.environment.items() if DEFAULT_VARIABLES.get(name) != value
    }
    return sorted(VARIABLES & user_set)


def _setting_choice(name: str, value: object, claim: Claim) -> Choice:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return Choice(knob=name, label=f"{name}={text}", claim=claim, settings={name: text})


def _variable_choice(knob: str, **variables: str) -> Choice:
    label = " ".join(f"{name}={value}" for name, value in variables.items())
    return Choice(knob=knob, label=label, claim="identical", environment=variables)


def _arithmetic(start: Start, facts: Facts) -> Iterator[Choice]:
    name = "threads.intra_op"
    if facts.on_host and name in start.fields:
        for threads in _counts_up_to(facts.cores, current=facts.threads):
            yield _setting_choice(name, threads, "rounding")
    name = "training.channels_last"
    if name in start.fields:
        yield _setting_choice(name, not start.fields[name], "rounding")


def _fused(start: Start) -> Iterator[Choice]:
    names = [name for name in start.fields if name.endswith(".fused")]
    if not names:
        return
    # `auto` already uses the kernel if there is one, so `true` is not another choice.
    value = "auto" if all(start.fields[name] == "false" for name in names) else "false"
    settings = {name: value for name in names if start.fields[name] != value}
    label = " ".join(f"{name}={value}" for name in settings)
    yield Choice(knob="fused", label=label, claim="rounding", settings=settings)


def _compiled(start: Start) -> Iterator[Choice]:
    if start.fields.get(COMPILE) is False:
        yield _setting_choice(COMPILE, True, "rounding")


def _loading(start: Start, facts: Facts) -> Iterator[Choice]:
    name = "data.workers"
    if name in start.fields:
        for workers in (*_counts_up_to(facts.cores, current=facts.workers), 0):
            if workers != facts.workers:
                yield _setting_choice(name, workers, "identical")
    name = "data.prefetch"
    if name in start.fields:
        for batches in (4, 8):
            if batches != start.fields[name]:
                yield _setting_choice(name, batches, "identical")


def _memory() -> Iterator[Choice]:
    """Yield larger pages for the C library's memory, and other allocators.

    For tensors, jumar always uses larger pages.
    """
    tunables = f"glibc.malloc.hugetlb=1:{_MALLOC_TUNABLES}"
    yield _variable_choice("allocator", GLIBC_TUNABLES=tunables)
    for library in ALLOCATORS:
        file = ctypes.util.find_library(library)
        if file is not None:
            yield _variable_choice("allocator", LD_PRELOAD=file)


def _binding(facts: Facts) -> Iterator[Choice]:
    if facts.cores > 1:
        yield _variable_choice("binding", OMP_PROC_BIND="close", OMP_PLACES="cores")


def _device(facts: Facts, kinds: Kinds) -> Iterator[Choice]:
    if facts.device == "cuda":
        yield _variable_choice("allocator", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    if facts.device != "npu":
        return
    if "host" in kinds:
        # 1, the default, queues launches; 2 also prepares them in a second thread.
        yield _variable_choice("TASK_QUEUE_ENABLE", TASK_QUEUE_ENABLE="2")
        # 1 binds all threads of a process to the cores near its NPU; 2 also binds launching threads
        # to separate cores.
        yield _variable_choice("CPU_AFFINITY_CONF", CPU_AFFINITY_CONF="1")
        yield _variable_choice("CPU_AFFINITY_CONF", CPU_AFFINITY_CONF="2")
    yield _variable_choice("allocator", PYTORCH_NPU_ALLOC_CONF="expandable_segments:True")
    yield _variable_choice("streams", MULTI_STREAM_MEMORY_REUSE="2")


def _counts_up_to(largest: int, *, current: int) -> Iterable[int]:
    """Return the largest count and the powers of two below it, without the current one."""
    counts = {largest, *(1 << power for power in range(largest.bit_length()))} - {current}
    return sorted(counts, reverse=True)
