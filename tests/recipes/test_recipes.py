import dataclasses
import sys

import pytest

from jumar.ground.errors import UserError
from jumar.recipes.classification import ClassificationRecipe
from jumar.recipes.registry import create_recipe, list_recipes, recipe_text
from jumar.settings import describe, from_json, to_json
from jumar.training.schedules import learning_rate

NAMES = [row.name for row in list_recipes() if row.module.startswith("jumar.")]


def recipe(name: str) -> ClassificationRecipe:
    made = create_recipe(name)
    assert isinstance(made, ClassificationRecipe)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_every_field_has_a_meaning(name: str) -> None:
    unsaid = [row.path for row in describe(create_recipe(name)) if not row.meaning]
    assert unsaid == []


@pytest.mark.parametrize("name", NAMES)
def test_recipe_round_trips_through_its_file(name: str) -> None:
    made = create_recipe(name)
    assert from_json(create_recipe(name), to_json(made), where="x") == made


@pytest.mark.parametrize("name", NAMES)
def test_docstring_names_source_data_and_command(name: str) -> None:
    text = recipe_text(name)
    assert "https://arxiv.org/abs/" in text
    assert "Data:" in text
    assert "Run:" in text


def test_unknown_recipe_suggests_the_nearest() -> None:
    with pytest.raises(UserError, match="Did you mean 'resnext50'"):
        create_recipe("resnet50")


def test_alexnet_has_the_published_hyperparameters_of_one_and_eight_cards() -> None:
    for name, rate, batch in (("alexnet", 0.015, 256), ("alexnet-8p", 0.06, 128)):
        made = recipe(name)
        assert (made.optimizer.learning_rate, made.data.batch_size) == (rate, batch)
        assert (made.optimizer.momentum, made.optimizer.nesterov) == (0.9, True)
        assert made.optimizer.weight_decay == 1e-4
        assert made.loss.label_smoothing == 0.1
        assert made.training.duration == "150ep"
        assert made.precision.mode == "allow_mix_precision"


def test_resnext50_has_the_published_hyperparameters() -> None:
    eight = recipe("resnext50-8p")
    assert (eight.data.batch_size, eight.optimizer.learning_rate) == (32, 0.1)
    assert eight.precision.loss_scale.kind == "fixed"
    assert eight.precision.loss_scale.init_loss_scale == 1024
    assert eight.training.duration == "120ep"
    assert recipe("resnext50-256bs-8p").optimizer.learning_rate == 0.8
    one = recipe("resnext50")
    assert one.data.batch_size == 8 * eight.data.batch_size
    assert one.schedule == eight.schedule


def test_schedules_match_the_published_logs() -> None:
    one = recipe("resnext50-1p")
    rates = {
        learning_rate(one.schedule, 0.1, step, steps_per_epoch=40036, total_steps=10000)
        for step in (0, 999, 9999)
    }
    assert rates == {0.1}
    alexnet = recipe("alexnet-8p").schedule
    at = lambda step: learning_rate(alexnet, 0.06, step, steps_per_epoch=1251, total_steps=187650)  # noqa: E731
    assert at(0) == pytest.approx(0.06 / (5 * 1251))
    assert at(5 * 1251 - 1) == pytest.approx(0.06)
    assert at(10 * 1251) == at(11 * 1251 - 1)


def test_every_meaning_is_a_sentence_with_a_capital_letter_and_a_full_stop() -> None:
    fields = {
        f"{value.__name__}.{field.name}": field.metadata
        for name, module in list(sys.modules.items())
        if name.startswith("jumar.")
        for value in list(vars(module).values())
        if isinstance(value, type) and dataclasses.is_dataclass(value)
        for field in dataclasses.fields(value)
        if "meaning" in field.metadata
    }
    assert len(fields) > 300
    code = ("vocab.txt",)
    wrong = {
        name: data["meaning"]
        for name, data in fields.items()
        if not data["meaning"].endswith(".")
        or (
            not data["meaning"][0].isupper()
            and data["meaning"].split()[0].rstrip(":") not in (*data["choices"], *code)
        )
    }
    assert wrong == {}
