"""What each view declares: its place in lists, when it is shown, and how its rows are cut."""

from types import ModuleType

import pytest

from jumar.profiling.advice import todo
from jumar.profiling.views import (
    VIEWS,
    View,
    aicpu,
    casts,
    chains,
    collectives,
    core_use,
    critical_path,
    data_stalls,
    default_views,
    environment,
    frequency,
    fusion,
    host_bound,
    layers,
    memory,
    roofline,
    slow_ranks,
    step_split,
    tensors,
    top,
    variability,
)
from tests.profiling.generated import profile_of

PLACES = {
    "todo": (todo, 0),
    "steps": (step_split, 10),
    "types": (top, 20),
    "ops": (top, 30),
    "aicpu-time": (top, 40),
    "aicpu": (aicpu, 50),
    "by-core": (top, 60),
    "by-shape": (top, 61),
    "by-dtype": (top, 62),
    "by-module": (top, 63),
    "layers": (layers, 64),
    "by-tensor": (tensors, 65),
    "casts": (casts, 70),
    "chains": (chains, 71),
    "cores": (core_use, 80),
    "dynamic": (core_use, 81),
    "frequency": (frequency, 90),
    "ranks": (slow_ranks, 100),
    "links": (slow_ranks, 101),
    "packets": (slow_ranks, 102),
    "alignment": (slow_ranks, 103),
    "collectives": (collectives, 110),
    "host": (host_bound, 120),
    "launches": (host_bound, 121),
    "data": (data_stalls, 130),
    "roofline": (roofline, 140),
    "critical": (critical_path, 150),
    "variability": (variability, 160),
    "op-variability": (variability, 161),
    "fused": (fusion, 170),
    "fusion": (fusion, 171),
    "memory": (memory, 180),
    "memory-by-op": (memory, 181),
    "environment": (environment, 210),
}
"""The module and the place of each view. A view of another package stands between two of ours, so
the places themselves are part of what is promised."""

WHOLE = (
    *("todo", "steps", "frequency", "ranks", "alignment", "launches", "data"),
    *("variability", "memory", "environment"),
)
"""Views whose rows are no ranking: a step, a rank or a variable each, of which none is cut."""


def test_every_view_has_a_position() -> None:
    assert {view.name: view.order for view in VIEWS.values()} == {
        name: place for name, (_, place) in PLACES.items()
    }
    assert list(VIEWS) == list(PLACES)


@pytest.mark.parametrize("name", PLACES)
def test_view_is_computed_by_its_module(name: str) -> None:
    module: ModuleType = PLACES[name][0]
    compute = getattr(VIEWS[name].compute, "func", VIEWS[name].compute)
    assert compute.__module__ == module.__name__


def test_default_views_are_the_to_do_list_the_steps_and_the_first_rankings() -> None:
    usual = [view.name for view in VIEWS.values() if view.usual]
    assert usual == ["todo", "steps", "types", "ops", "aicpu-time"]
    for kind, shown in (("npu", usual), ("cuda", usual[:-1]), ("cpu", usual[:-1])):
        assert [view.name for view in default_views(profile_of(kind=kind))] == shown


def test_step_rank_and_setting_tables_are_not_rankings() -> None:
    assert {view.name for view in VIEWS.values() if not view.ranking} == set(WHOLE)


def test_chip_is_used_by_views_that_compare_with_it() -> None:
    assert [view.name for view in VIEWS.values() if view.uses_rates] == [
        "todo",
        "cores",
        "roofline",
    ]


def test_one_view_is_advice_and_one_is_slow() -> None:
    assert [view.name for view in VIEWS.values() if view.advice] == ["todo"]
    assert [view.name for view in VIEWS.values() if view.slow] == ["fusion"]


def test_third_party_view_is_last_as_an_optional_ranking() -> None:
    text = VIEWS["ops"].title
    own = View(name="own", title=text, question=text, columns=(), compute=VIEWS["ops"].compute)
    assert (own.order, own.usual, own.ranking) == (1000, False, True)
    assert (own.uses_rates, own.slow, own.advice) == (False, False, False)
    with pytest.raises(AttributeError):
        own.order = 3  # pyright: ignore[reportAttributeAccessIssue]
    # Thousands of letters of a view's function and columns are nothing to read.
    assert "columns" not in repr(own)
    assert "compute" not in repr(own)
    with pytest.raises(TypeError):
        View("own", text, text, (), VIEWS["ops"].compute)  # pyright: ignore
