"""What is configured or reported in this room is frozen, and its fields are given by name."""

import inspect
from dataclasses import fields, is_dataclass
from types import ModuleType

import pytest

from jumar.training import (
    cadence,
    checkpoint,
    checkpoint_files,
    checkpoint_parts,
    checkpoint_state,
    checkpoint_writer,
    device_load,
    durations,
    evaluation,
    freezing,
    passes,
    rehearsal,
    results,
    run_directory,
    schedules,
    settings,
    state,
    throughput,
    transfer,
)
from jumar.training.optimizers import kinds, optimizer
from jumar.training.parallel import exact, ranks, replicated, silence
from jumar.training.profiling import capture, files, shapes
from jumar.training.trackers import records, services, tracker

MODULES = (
    *(cadence, checkpoint, checkpoint_files, checkpoint_parts, checkpoint_state, checkpoint_writer),
    *(device_load, durations, evaluation, freezing, passes, rehearsal, results, run_directory),
    *(schedules, settings, state, throughput, transfer, kinds, optimizer, exact, ranks),
    *(replicated, silence, capture, files, shapes, records),
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
