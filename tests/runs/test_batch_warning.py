"""The warning that a learning rate belongs to another batch."""

import pytest

from jumar.recipes.registry import create_recipe
from jumar.runs.batch_warning import batch_warnings
from jumar.settings import override


def warned(name: str, *assignments: str, batch: int) -> list[str]:
    recipe = override(create_recipe(name), assignments)
    return list(batch_warnings(name, recipe, assignments, batch))


def test_warning_gives_the_rates_of_both_rules() -> None:
    (line,) = warned("resnext50", "data.batch_size=64", batch=64)
    assert "the recipe's 0.1, which belongs to a batch of 256;" in line
    assert "for 64 the linear rule gives 0.025, the square-root rule 0.05" in line


def test_batch_size_of_an_eight_card_recipe_is_the_global_one() -> None:
    assert warned("resnext50-8p", batch=8 * 32) == []
    (line,) = warned("resnext50-8p", batch=32)
    assert "a batch of 256 (8 ranks x 32); for 32 the linear rule gives 0.0125" in line


@pytest.mark.parametrize(
    "assignment",
    [
        "optimizer.learning_rate=0.1",
        "optimizer=adam",
        "optimizer.kind=adam",
        "schedule=constant",
        "schedule.warmup=10ep",
    ],
)
def test_no_warning_if_the_rate_was_set(assignment: str) -> None:
    assert warned("resnext50", assignment, batch=64) == []


def test_no_warning_for_the_recipes_own_batch_size() -> None:
    assert warned("resnext50", "data.batch_size=128", batch=256) == []
