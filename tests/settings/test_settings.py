import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.ground.errors import UserError
from jumar.recipes.registry import create_recipe
from jumar.settings import (
    Component,
    checked,
    describe,
    fixed_differences,
    from_json,
    override,
    setting,
    to_json,
    value_text,
)
from jumar.training.settings import TrainingSettings


@dataclass(frozen=True, kw_only=True)
class Inner:
    rate: float = setting(0.1, "a rate", unit="1/s", minimum=0.0, maximum=1.0)
    kind: str = setting("red", "a kind", choices=("red", "green"))
    sizes: tuple[int, ...] = setting((1, 2), "sizes", minimum=1)
    parts: tuple[str, ...] = setting((), "parts", choices=("head", "tail"))


@dataclass(frozen=True, kw_only=True)
class Outer:
    count: int = setting(3, "a count")
    flag: bool = setting(True, "a flag")
    path: str | None = setting(None, "a path")
    inner: Inner = Inner()


def test_fields_are_listed_with_meaning_unit_and_allowed_values() -> None:
    rows = {row.path: row for row in describe(Outer())}
    assert list(rows) == [
        "count",
        "flag",
        "path",
        "inner.rate",
        "inner.kind",
        "inner.sizes",
        "inner.parts",
    ]
    assert (rows["inner.rate"].unit, rows["inner.rate"].allowed) == ("1/s", "0 to 1")
    assert rows["inner.kind"].allowed == "red, green"


def test_assignments_change_fields_and_the_last_one_wins() -> None:
    changed = override(
        Outer(),
        ["count=4", "count=5", "flag=no", "path=/tmp/a=b", "inner.rate=1e-3", "inner.sizes=4,5,6"],
    )
    assert changed == Outer(
        count=5, flag=False, path="/tmp/a=b", inner=Inner(rate=1e-3, sizes=(4, 5, 6))
    )
    assert override(changed, ["path=none"]).path is None


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("cuont=1", "Did you mean 'count'"),
        ("inner.rat=1", "Did you mean 'inner.rate'"),
        ("inner=1", "section"),
        ("count.x=1", "no fields of its own"),
        ("count=many", "a whole number"),
        ("count=1.5", "a whole number"),
        ("inner.rate=nan", "a number"),
        ("inner.rate=1e400", "a number"),
        ("inner.rate=10**400", "a number"),
        ("inner.rate=0**-1", "a number"),
        ("inner.rate=-8**0.5", "a number"),
        ("count=3000000000", "Allowed: .* to 2147483647"),
        (f"count={'9' * 5000}", r"a whole number, not '9{40}\.\.\.'"),
        ("inner.rate=2", "Allowed: 0 to 1"),
        ("inner.kind=gren", "Did you mean 'green'"),
        ("inner.sizes=1,0", "1 or more"),
        ("flag=perhaps", "true or false"),
        ("count", "section.field=value"),
    ],
)
def test_each_mistake_is_named_with_the_allowed_values(assignment: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        override(Outer(), [assignment])


@given(
    count=st.integers(-(10**9), 10**9),
    rate=st.floats(0, 1),
    flag=st.booleans(),
    path=st.none() | st.text(min_size=1).filter(lambda text: "\0" not in text),
    sizes=st.lists(st.integers(1, 99), max_size=4).map(tuple),
)
def test_settings_round_trip_through_json(count, rate, flag, path, sizes) -> None:
    settings = Outer(count=count, flag=flag, path=path, inner=Inner(rate=rate, sizes=sizes))
    assert from_json(Outer(), to_json(settings), where="x") == settings


@given(
    count=st.integers(-(10**9), 10**9), sizes=st.lists(st.integers(1, 99), min_size=1).map(tuple)
)
def test_shown_values_can_be_set(count: int, sizes: tuple[int, ...]) -> None:
    settings = Outer(count=count, inner=Inner(sizes=sizes))
    texts = {row.path: value_text(row.value) for row in describe(settings)}
    assert override(Outer(), [f"{path}={text}" for path, text in texts.items()]) == settings


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400])
def test_non_finite_json_number_is_refused_even_without_a_declared_limit(
    value: float,
) -> None:
    @dataclass(frozen=True)
    class Free:
        rate: float = setting(0.1, "a rate")

    with pytest.raises(UserError, match=r"'rate' cannot be -?(nan|inf)\n  Allowed: finite numbers"):
        checked(from_json(Free(), {"rate": value}, where="recipe.json"))


def test_unknown_or_mistyped_json_field_is_named() -> None:
    with pytest.raises(UserError, match=r"unknown field 'inner\.ratee'"):
        from_json(Outer(), {"inner": {"ratee": 1}}, where="recipe.json")
    with pytest.raises(UserError, match="'count' takes a whole number, not true"):
        from_json(Outer(), {"count": True}, where="recipe.json")
    with pytest.raises(UserError, match="'count' takes a whole number, not null"):
        from_json(Outer(), {"count": None}, where="recipe.json")
    with pytest.raises(UserError, match="'inner' must be an object, not null"):
        from_json(Outer(), {"inner": None}, where="recipe.json")


@dataclass(frozen=True, kw_only=True)
class Shape(Component):
    area: float = setting(1.0, "area", minimum=0.0)


@dataclass(frozen=True, kw_only=True)
class Circle(Shape, kind="circle"):
    radius: float = setting(0.5, "radius")


@dataclass(frozen=True, kw_only=True)
class Box(Shape, kind="box"):
    width: int = setting(2, "width")


@dataclass(frozen=True, kw_only=True)
class Drawing:
    shape: Shape = setting(Circle(area=3.0), "what is drawn")
    title: str = setting("none", "its title", changeable=True)


@pytest.mark.parametrize("field", ["shape", "shape.kind"])
def test_switching_kind_keeps_common_values(field: str) -> None:
    changed = override(Drawing(), [f"{field}=box", "shape.width=4"])
    assert changed.shape == Box(area=3.0, width=4)
    assert override(Drawing(), [f"{field}=circle"]) == Drawing()


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("shape=bix", "'shape' cannot be 'bix'\n  Did you mean 'box'?"),
        ("shape.kind=bix", "'shape.kind' cannot be 'bix'"),
        ("shape.width=3", "'shape.width': 'circle' has no field 'width'\n  'width' belongs to box"),
        ("shape.rodius=3", "Did you mean 'shape.radius'"),
        ("shape.area=-1", "'shape.area' cannot be -1"),
    ],
)
def test_field_of_another_kind_is_refused_naming_that_kind(assignment: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        override(Drawing(), [assignment])
    assert message in str(refused.value)


def test_component_is_listed_with_its_kind_before_its_fields() -> None:
    rows = describe(Drawing())
    assert [(row.path, row.value) for row in rows][:3] == [
        ("shape", "circle"),
        ("shape.area", 3.0),
        ("shape.radius", 0.5),
    ]
    assert rows[0].allowed == "circle, box"


def test_json_from_earlier_versions_may_have_fields_of_other_kinds() -> None:
    stored = {"shape": {"kind": "box", "area": 2.0, "width": 7, "radius": 0.1}}
    assert from_json(Drawing(), stored, where="x").shape == Box(area=2.0, width=7)
    with pytest.raises(UserError, match=r"shape\.colour"):
        from_json(Drawing(), {"shape": {"kind": "box", "colour": 1}}, where="x")
    made = Drawing(shape=Box(width=5))
    assert to_json(made)["shape"] == {"kind": "box", "area": 1.0, "width": 5}
    assert from_json(Drawing(), to_json(made), where="x") == made


def test_only_fixed_fields_count_as_differences() -> None:
    one = Drawing()
    assert list(fixed_differences(one, override(one, ["title=new"]))) == []
    assert list(fixed_differences(one, override(one, ["shape.area=4"]))) == [
        ("shape.area", 3.0, 4.0)
    ]
    assert list(fixed_differences(one, override(one, ["shape=box"]))) == [
        ("shape", "circle", "box")
    ]


def test_kind_that_exists_in_another_module_is_refused() -> None:
    with pytest.raises(UserError, match="'box' already exists"):
        type("Other", (Shape,), {"__module__": "elsewhere"}, kind="box")


def test_out_of_range_default_is_detected() -> None:
    with pytest.raises(UserError, match=r"inner\.rate"):
        checked(Outer(inner=Inner(rate=7.0)))


def test_each_list_item_must_be_allowed() -> None:
    assert override(Outer(), ["inner.parts=tail,head"]).inner.parts == ("tail", "head")
    with pytest.raises(UserError, match="cannot be 'taill'") as caught:
        override(Outer(), ["inner.parts=head,taill"])
    assert "Did you mean 'tail'?" in str(caught.value.todo)


def test_field_without_effect_is_refused_naming_its_owner() -> None:
    training = TrainingSettings()
    with pytest.raises(UserError) as refused:
        override(training, ["clip_limit=0.5"])
    assert str(refused.value) == (
        "--set: 'clip_limit' has no effect with clip=none\n"
        "  It belongs to clip=global_norm or norm or value: set both or neither."
    )
    for assignments in (["clip=norm", "clip_limit=0.5"], ["clip_limit=0.5", "clip=norm"]):
        assert override(training, assignments).clip_limit == 0.5
    clipping = override(training, ["clip=norm", "clip_limit=0.5"])
    assert override(clipping, ["clip=none"]).clip_limit == 0.5


@pytest.mark.parametrize(
    ("recipe", "assignment", "with_it"),
    [
        ("resnext50", "data.preprocessing.crop_area=0.5,1", "data.preprocessing.crop=none"),
        ("resnext50", "data.preprocessing.crop_aspect=0.5,1", "data.preprocessing.crop=none"),
        ("resnext50", "data.preprocessing.crop_attempts=5", "data.preprocessing.crop=none"),
        ("resnext50", "data.preprocessing.crop_object_covered=0", "data.preprocessing.crop=none"),
        ("resnext50", "data.preprocessing.crop_frame=300", "data.preprocessing.crop=picture"),
        ("resnext50", "data.preprocessing.eval_fraction=0.5", "data.preprocessing.eval_view=whole"),
        ("videnn-spatial", "data.noise.sigma=5", "data.noise.kind=poisson"),
        ("videnn-spatial", "data.noise.photons=5", "data.noise.kind=mixed"),
        ("videnn-spatial", "data.noise.analog_gain=5", "data.noise.kind=gaussian"),
        ("videnn-spatial", "data.noise.digital_gain=5", "data.noise.kind=gaussian"),
        ("bert-base", "training.clip_limit=2", "training.clip=none"),
    ],
)
def test_fields_ignored_by_another_choice_are_refused_naming_it(
    recipe: str, assignment: str, with_it: str
) -> None:
    with pytest.raises(UserError) as refused:
        override(create_recipe(recipe), [with_it, assignment])
    assert f"has no effect with {with_it}" in str(refused.value)


@pytest.mark.parametrize(
    ("assignment", "needs"),
    [
        ("transfer.restore_exclude=head", "transfer.start_from=run"),
        ("transfer.use_ema=false", "transfer.start_from=run"),
        ("transfer.freeze_batch_norms=true", "transfer.freeze=conv1"),
        ("transfer.unfreeze_at=2ep", "transfer.freeze=conv1"),
        ("early_stopping.min_delta=0.5", "early_stopping.patience=3"),
        ("training.ema_warm_up=false", "training.ema_decay=0.9"),
    ],
)
def test_fields_are_refused_without_the_one_they_refine(assignment: str, needs: str) -> None:
    recipe = create_recipe("alexnet")
    with pytest.raises(UserError) as refused:
        override(recipe, [assignment])
    field, needed = (text.partition("=")[0] for text in (assignment, needs))
    assert f"'{field}' has no effect without {needed}" in str(refused.value)
    assert override(recipe, [assignment, needs]) == override(recipe, [needs, assignment])
