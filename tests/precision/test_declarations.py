"""How the room's classes and functions may be made and called."""

import inspect
from collections.abc import Iterator
from dataclasses import is_dataclass
from types import ModuleType
from typing import Any

import pytest

from jumar.precision import (
    autocast_lists,
    float32_layers,
    json_places,
    loss_scale,
    mixlist,
    modes,
    oplist,
    optypes,
    overloads,
    policy,
    settings,
    shipped_mixlists,
)
from jumar.precision.comparing import (
    compare,
    comparison,
    drift,
    explained,
    judging,
    observed,
    pairing,
    replay,
    tables,
    unequal,
)
from jumar.precision.dumps import (
    cann,
    cann_results,
    digest,
    dump,
    msprobe,
    msprobe_writing,
    opening,
    ours,
    ptdbg,
    shards,
    tensor_file,
    tensor_files,
)
from jumar.precision.overflow import head_room, origin, wording
from jumar.precision.recording import (
    calls,
    contents,
    dumping,
    layers,
    modules,
    observing,
    ops,
    recorder,
    restoring,
    scripts,
    statistics,
    updates,
)
from jumar.precision.recording import cann as cann_types
from jumar.precision.searching import attribution, candidates, effects, smallest
from jumar.precision.sensitivity import measuring, perturbing, rounding
from jumar.precision.sensitivity import tables as noise_tables

MODULES = (
    autocast_lists,
    float32_layers,
    json_places,
    loss_scale,
    mixlist,
    modes,
    oplist,
    optypes,
    overloads,
    policy,
    settings,
    shipped_mixlists,
    compare,
    comparison,
    drift,
    explained,
    judging,
    observed,
    pairing,
    replay,
    tables,
    unequal,
    cann,
    cann_results,
    digest,
    dump,
    msprobe,
    msprobe_writing,
    opening,
    ours,
    ptdbg,
    shards,
    tensor_file,
    tensor_files,
    head_room,
    origin,
    wording,
    calls,
    contents,
    dumping,
    layers,
    modules,
    observing,
    ops,
    cann_types,
    recorder,
    restoring,
    scripts,
    statistics,
    updates,
    attribution,
    candidates,
    effects,
    smallest,
    measuring,
    perturbing,
    rounding,
    noise_tables,
)
CHANGING = {"Judge", "_Entry", "_Gathered", "_Known", "_Running", "Entry"}
"""Dataclasses that gather something."""
POSITIONAL = {*CHANGING, "_Side", "_Leaf", "_Place", "View"} - {"_Entry"}
MANY = {
    *("Difference", "Row", "Compared", "Replayed", "Operand", "Statistics", "Value", "Call"),
    *("AscendResult", "Overflow", "_Leaf", "_Place", "View", "Entry", "_Known", "_Running"),
}
"""Of which a dump or comparison has so many that they have slots."""


def own(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, each in vars(module).items():
        if getattr(each, "__module__", None) == module.__name__:
            yield name, each


def functions(module: ModuleType) -> Iterator[Any]:
    for _, each in own(module):
        if inspect.isclass(each):
            for method in vars(each).values():
                plain = getattr(method, "__func__", method)
                if inspect.isfunction(plain) and plain.__module__ == module.__name__:
                    yield plain
        elif callable(each):
            yield inspect.unwrap(each)


@pytest.mark.parametrize("module", MODULES, ids=lambda each: each.__name__)
def test_records_cannot_be_changed_and_are_made_by_name(module: ModuleType) -> None:
    for name, each in own(module):
        if inspect.isclass(each) and is_dataclass(each):
            parameters: Any = each.__dataclass_params__  # type: ignore[attr-defined]
            kinds = {one.kind for one in inspect.signature(each).parameters.values()}
            assert parameters.frozen is (name not in CHANGING), name
            assert (inspect.Parameter.POSITIONAL_OR_KEYWORD in kinds) is (name in POSITIONAL), name
            assert ("__slots__" in vars(each)) is (name in MANY), name
            assert parameters.eq is (name != "_Running"), name


@pytest.mark.parametrize("module", MODULES, ids=lambda each: each.__name__)
def test_every_argument_may_be_given_by_its_name(module: ModuleType) -> None:
    for function in functions(module):
        if function.__name__ in ("__new__", "_make", "_replace"):  # of named tuples
            continue
        kinds = [one.kind for one in inspect.signature(function).parameters.values()]
        assert inspect.Parameter.POSITIONAL_ONLY not in kinds, function


def test_tables_are_read_once() -> None:
    assert optypes.op_groups() is optypes.op_groups()
    assert optypes.groups_by_type() is optypes.groups_by_type()
    assert oplist.listed_ops() is oplist.listed_ops()
    for cached in (optypes._types_by_op, overloads.find_overload, cann_types.cann_type):
        assert cached.cache_info().maxsize is None


def test_a_kind_of_loss_scale_must_say_how_it_is_made() -> None:
    with pytest.raises(TypeError, match="abstract"):
        loss_scale.LossScaleSettings()  # type: ignore[abstract]
