"""Which of an optimizer's state is in a file, and under which names."""

import pytest

from jumar.models.tf_layout import (
    TfNames,
    TfOptimizer,
    TfVariable,
    Unchanged,
    adam_state,
    momentum_state,
)
from jumar.weights.matching import Match
from jumar.weights.slots import (
    SlotMatching,
    VariableSlots,
    find_powers,
    match_slots,
    trained_variables,
)
from jumar.weights.tensor_types import TensorEntry

A, B, C = (TfVariable(tf_name=f"net/{name}", name=name, layout=Unchanged()) for name in "abc")
ADAM = adam_state(trains=r"^net/[ab]$")
NAMES = TfNames(variables=(A, B, C), optimizers=(ADAM,))


def entries(**shapes: tuple[int, ...]) -> dict[str, TensorEntry]:
    """By names in which a double underscore stands for a slash."""
    named = {name.replace("__", "/"): shape for name, shape in shapes.items()}
    return {n: TensorEntry(name=n, shape=shape, dtype="float32") for n, shape in named.items()}


WHOLE = entries(
    net__a=(2,),
    net__a__Adam=(2,),
    net__a__Adam_1=(2,),
    net__b=(3,),
    net__b__ExponentialMovingAverage=(3,),
    net__b__Adam=(3,),
    net__b__Adam_1=(3,),
    net__c=(4,),
    beta1_power=(),
    beta2_power=(1,),
)
MATCHES = (
    Match(variable=A, raw="net/a", average=""),
    Match(variable=B, raw="net/b/ExponentialMovingAverage", average="net/b"),
    Match(variable=C, raw="net/c", average=""),
)


def slots_of(variable: TfVariable, name: str) -> VariableSlots:
    return VariableSlots(
        variable=variable,
        slots={"exp_avg": f"{name}/Adam", "exp_avg_sq": f"{name}/Adam_1"},
        powers=("beta1_power", "beta2_power"),
    )


def test_slots_are_found_next_to_trained_variables() -> None:
    result = match_slots(NAMES, MATCHES, WHOLE, {"a", "b"})
    assert result == SlotMatching(found=[slots_of(A, "net/a"), slots_of(B, "net/b")], lacking=[])
    assert result.is_complete
    assert result.sources == {
        *("net/a/Adam", "net/a/Adam_1", "net/b/Adam", "net/b/Adam_1"),
        *("beta1_power", "beta2_power"),
    }
    assert match_slots(NAMES, MATCHES, WHOLE, {"b"}).found == [slots_of(B, "net/b")]


def test_variable_with_incomplete_slots_counts_as_without() -> None:
    one_gone = {name: entry for name, entry in WHOLE.items() if name != "net/a/Adam_1"}
    other_shape = {**WHOLE, **entries(net__a__Adam=(3,))}
    for held in (one_gone, other_shape):
        result = match_slots(NAMES, MATCHES, held, {"a", "b"})
        assert result == SlotMatching(found=[slots_of(B, "net/b")], lacking=[A])
        assert not result.is_complete
    # No optimizer of the original trains it.
    assert match_slots(NAMES, MATCHES, WHOLE, {"a", "c"}).lacking == [C]


def test_no_slots_found_is_incomplete() -> None:
    nothing = match_slots(NAMES, MATCHES, WHOLE, set())
    assert nothing == SlotMatching(found=[], lacking=[])
    assert not nothing.is_complete
    assert nothing.sources == frozenset()


def test_optimizer_without_powers_has_none() -> None:
    names = TfNames(variables=(A,), optimizers=(momentum_state(),))
    held = entries(net__a=(2,), net__a__Momentum=(2,))
    (result,) = match_slots(names, MATCHES[:1], held, {"a"}).found
    assert result.powers is None
    assert list(result.slots.values()) == ["net/a/Momentum"]
    assert SlotMatching(found=[result], lacking=[]).sources == {"net/a/Momentum"}


@pytest.mark.parametrize(
    ("held", "powers"),
    [
        (entries(beta1_power=(), beta2_power=()), ("beta1_power", "beta2_power")),
        (entries(x__beta1_power=(), beta2_power=()), ("x/beta1_power", "beta2_power")),
        (
            entries(x__beta1_power=(), beta1_power=(1,), beta2_power=(1, 1)),
            ("beta1_power", "beta2_power"),
        ),
        # Two similar ones and none with the name itself: ambiguous.
        (entries(x__beta1_power=(), y__beta1_power=(), beta2_power=()), None),
        (entries(beta1_power=()), None),
        (entries(xbeta1_power=(), beta2_power=()), None),
        (entries(beta1_power=(2,), beta2_power=()), None),
        (entries(beta1_power=(), beta2_power=(0,)), None),
    ],
)
def test_powers_are_recognised_only_if_unique(
    held: dict[str, TensorEntry], powers: tuple[str, str] | None
) -> None:
    assert find_powers(ADAM, held) == powers
    scoped = TfOptimizer(kind="adam", slots={}, powers=("t/beta1_power", "t/beta2_power"))
    if powers == ("x/beta1_power", "beta2_power"):
        assert find_powers(scoped, held) == powers


def test_trained_variables_are_listed_with_their_optimizer() -> None:
    assert list(trained_variables(NAMES, {"c", "b"})) == [(B, ADAM)]
    assert list(trained_variables(NAMES, {"a", "b"})) == [(A, ADAM), (B, ADAM)]
