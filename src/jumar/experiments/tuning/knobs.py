"""Settings that can make a step faster, and their declared effect on the weights.

Three classes. `identical`: the weights stay bit-identical. `rounding`: sums are added in another
order, or other kernels round differently. `mathematics` (precision, batch size): a different
training, which is never tried here. A choice's declaration is checked against the hash of the
weights.
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
"""Settings that change the training itself, left to its author."""
COMPILE: Final = "training.compile"
OWN: Final = {"THP_MEM_ALLOC_ENABLE": "1"}
"""Variables that jumar sets by default (`jumar/__init__.py`)."""
_KEEPS_FREED: Final = "glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=1073741824"
"""Set by `training/memory.py` if glibc's tunables are not set."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One value of a knob.

    Attributes:
        knob: The knob; a combination has at most one choice for each.
        label: The choice as printed.
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
    """The choices made so far; without any, the settings of the start."""

    choices: tuple[Choice, ...] = ()

    @property
    def settings(self) -> dict[str, str]:
        """Fields of the recipe, by name."""
        return {name: value for each in self.choices for name, value in each.settings.items()}

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables."""
        return {name: value for each in self.choices for name, value in each.environment.items()}

    @property
    def labels(self) -> tuple[str, ...]:
        """Identity of the combination, independent of the order of choices."""
        return tuple(sorted(each.label for each in self.choices))

    def with_choice(self, choice: Choice) -> "Combination":
        """The combination with another choice of one knob."""
        others = tuple(each for each in self.choices if each.knob != choice.knob)
        return Combination((*others, choice))


@dataclass(frozen=True, kw_only=True)
class Start:
    """What the choices depend on in addition to the measurement.

    Attributes:
        fields: The recipe's settings, by `section.field`.
        environment: The variables of this process; those that a user set are left alone.
    """

    fields: Mapping[str, Any]
    environment: Mapping[str, str]


def choices_for(
    start: Start, facts: Facts, limits: Sequence[Limit], *, allow_rounding: bool
) -> list[Choice]:
    """The choices worth trying, most promising first.

    Args:
        start: What is tuned.
        facts: The measurement of the start.
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
    return [each for each in choices if not set(each.environment) & set(start.environment)]


def left_to_the_user(start: Start) -> list[str]:
    """The variables already set in this process, which are therefore not tried."""
    user_set = {name for name, value in start.environment.items() if OWN.get(name) != value}
    return sorted(VARIABLES & user_set)


def _set(name: str, value: object, claim: Claim) -> Choice:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return Choice(knob=name, label=f"{name}={text}", claim=claim, settings={name: text})


def _exported(knob: str, claim: Claim, **variables: str) -> Choice:
    label = " ".join(f"{name}={value}" for name, value in variables.items())
    return Choice(knob=knob, label=label, claim=claim, environment=variables)


def _arithmetic(start: Start, facts: Facts) -> Iterator[Choice]:
    name = "threads.intra_op"
    if facts.on_host and name in start.fields:
        for threads in _numbers_up_to(facts.cores, besides=facts.threads):
            yield _set(name, threads, "rounding")
    name = "training.channels_last"
    if name in start.fields:
        yield _set(name, not start.fields[name], "rounding")


def _fused(start: Start) -> Iterator[Choice]:
    names = [name for name in start.fields if name.endswith(".fused")]
    if not names:
        return
    # `auto` uses the kernel wherever there is one, so `true` adds no choice.
    value = "auto" if all(start.fields[name] == "false" for name in names) else "false"
    settings = {name: value for name in names if start.fields[name] != value}
    label = " ".join(f"{name}={value}" for name in settings)
    yield Choice(knob="fused", label=label, claim="rounding", settings=settings)


def _compiled(start: Start) -> Iterator[Choice]:
    if start.fields.get(COMPILE) is False:
        yield _set(COMPILE, True, "rounding")


def _loading(start: Start, facts: Facts) -> Iterator[Choice]:
    name = "data.workers"
    if name in start.fields:
        for workers in (*_numbers_up_to(facts.cores, besides=facts.workers), 0):
            if workers != facts.workers:
                yield _set(name, workers, "identical")
    name = "data.prefetch"
    if name in start.fields:
        for batches in (4, 8):
            if batches != start.fields[name]:
                yield _set(name, batches, "identical")


def _memory() -> Iterator[Choice]:
    """Larger pages for the C library's memory (jumar always uses them for tensors), and other
    allocators.
    """
    tunables = f"glibc.malloc.hugetlb=1:{_KEEPS_FREED}"
    yield _exported("allocator", "identical", GLIBC_TUNABLES=tunables)
    for library in ALLOCATORS:
        file = ctypes.util.find_library(library)
        if file is not None:
            yield _exported("allocator", "identical", LD_PRELOAD=file)


def _binding(facts: Facts) -> Iterator[Choice]:
    if facts.cores > 1:
        yield _exported("binding", "identical", OMP_PROC_BIND="close", OMP_PLACES="cores")


def _device(facts: Facts, kinds: Kinds) -> Iterator[Choice]:
    if facts.device == "cuda":
        yield _exported(
            "allocator", "identical", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"
        )
    if facts.device != "npu":
        return
    if "host" in kinds:
        # 1, the default, queues launches; 2 also moves their preparation to a second thread.
        yield _exported("TASK_QUEUE_ENABLE", "identical", TASK_QUEUE_ENABLE="2")
        # 1 keeps all threads of a process on the cores near its NPU, 2 also those that launch
        # on cores of their own.
        yield _exported("CPU_AFFINITY_CONF", "identical", CPU_AFFINITY_CONF="1")
        yield _exported("CPU_AFFINITY_CONF", "identical", CPU_AFFINITY_CONF="2")
    yield _exported("allocator", "identical", PYTORCH_NPU_ALLOC_CONF="expandable_segments:True")
    yield _exported("streams", "identical", MULTI_STREAM_MEMORY_REUSE="2")


def _numbers_up_to(largest: int, *, besides: int) -> Iterable[int]:
    """The largest number and the powers of two below it, without the current one."""
    numbers = {1 << power for power in range(largest.bit_length()) if 1 << power <= largest} | {
        largest
    }
    return [each for each in sorted(numbers, reverse=True) if each != besides]
