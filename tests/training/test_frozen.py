"""What is configured or reported in this room is frozen; fields and arguments have names."""

import inspect
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import FunctionType, ModuleType

import pytest

from jumar.training import (
    batches,
    cadence,
    checkpoint,
    checkpoint_files,
    checkpoint_parts,
    checkpoint_retention,
    checkpoint_state,
    checkpoint_writer,
    clipping,
    device_load,
    durations,
    early_stopping,
    ema,
    evaluation,
    exact_passes,
    explaining,
    freezing,
    guard,
    illustrations,
    keeper,
    lanes,
    name_patterns,
    older_checkpoints,
    passes,
    progress,
    rehearsal,
    results,
    resume_hint,
    run_directory,
    schedules,
    settings,
    skipped_updates,
    state,
    state_hashes,
    step,
    step_loop,
    throughput,
    trainer,
    transfer,
)
from jumar.training.optimizers import kinds, layer_rates, optimizer, slots, tensorflow, updating
from jumar.training.parallel import exact, gradient_sums, ranks, replicated, silence, spare
from jumar.training.profiling import capture, files, layers, memory, ranges, shapes, work
from jumar.training.trackers import chosen, records, services, tensorboard, tracker

MODULES = (
    *(cadence, checkpoint, checkpoint_files, checkpoint_parts, checkpoint_state, checkpoint_writer),
    *(device_load, durations, evaluation, freezing, passes, rehearsal, results, run_directory),
    *(schedules, settings, state, throughput, transfer, kinds, optimizer, exact, ranks),
    *(replicated, silence, capture, files, shapes, records),
)


OTHERS = (
    *(batches, checkpoint_retention, clipping, early_stopping, ema, exact_passes, explaining),
    *(guard, illustrations, keeper, lanes, name_patterns, older_checkpoints, progress),
    *(resume_hint, skipped_updates, state_hashes, step, step_loop, trainer, layer_rates, slots),
    *(tensorflow, updating, gradient_sums, spare, layers, memory, ranges, work, chosen, services),
    *(tensorboard, tracker),
)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_its_dataclasses_are_frozen_and_take_keywords_only(module: ModuleType) -> None:
    own = [
        each
        for each in vars(module).values()
        if isinstance(each, type) and each.__module__ == module.__name__ and is_dataclass(each)
    ]
    assert own
    for each in own:
        options = vars(each)["__dataclass_params__"]
        assert options.frozen, each
        # Before Python 3.12 only fields tell.
        assert getattr(options, "kw_only", True), each
        assert all(field.kw_only for field in fields(each)), each


def functions_of(module: ModuleType) -> Iterator[FunctionType]:
    """The functions and methods that a module defines."""
    for each in vars(module).values():
        inside = vars(each).values() if isinstance(each, type) else (each,)
        for one in inside:
            function = inspect.unwrap(one) if callable(one) else getattr(one, "__func__", None)
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                yield function


@pytest.mark.parametrize("module", MODULES + OTHERS, ids=lambda module: module.__name__)
def test_every_argument_can_be_given_by_name(module: ModuleType) -> None:
    for function in functions_of(module):
        kinds_of = {each.kind for each in inspect.signature(function).parameters.values()}
        assert inspect.Parameter.POSITIONAL_ONLY not in kinds_of, function


@pytest.mark.parametrize(
    ("kind", "left_open"),
    [
        (schedules.ScheduleSettings, {"decay"}),
        (schedules._Decaying, {"factor"}),
        (schedules._Ending, {"shape"}),
        (schedules._Periodic, {"factor"}),
        (schedules._Rated, {"after"}),
        (optimizer.OptimizerSettings, {"build"}),
        (kinds.WithFusedKernel, {"build"}),
        (kinds._Averaging, {"build"}),
        (tracker.Tracker, {"start", "write", "finish"}),
        (services.Service, {"begin", "send", "end"}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_what_a_kind_of_ones_own_has_to_define_is_abstract(kind: type, left_open: set[str]) -> None:
    assert inspect.isabstract(kind)
    assert kind.__abstractmethods__ == left_open
