"""The number of parameters in `jumar recipes show`."""

import pytest

from jumar.ground.errors import UserError
from jumar.recipes.parameter_count import parameter_text
from jumar.recipes.registry import create_recipe
from jumar.settings import override


def shown(name: str, *assignments: str) -> str:
    return parameter_text(override(create_recipe(name), assignments))


def test_all_parameters_train_unless_some_are_frozen() -> None:
    assert shown("ds-cnn-s") == "23,180, all trained"
    frozen = shown("ds-cnn-s", "transfer.freeze=first,blocks", "transfer.unfreeze_at=2ep")
    assert frozen == "23,180, 780 trained, 22,400 frozen until 2ep"


def test_network_frozen_by_its_recipe_does_not_count_as_trained() -> None:
    assert " trained, " in shown("videnn-temporal")


def test_data_dependent_network_says_what_it_depends_on() -> None:
    assert shown("resnext50").startswith("not known: the number of classes")
    assert shown("resnext50", "model.num_classes=1001") == "25,030,953, all trained"


def test_pattern_that_matches_nothing_is_refused() -> None:
    with pytest.raises(UserError, match="matches no parameter") as error:
        shown("ds-cnn-s", "transfer.freeze=clasifier")
    assert "Did you mean 'classifier'?" in error.value.todo
