"""Which settings are tried against which limit."""

import os
from dataclasses import replace

import pytest

from jumar.experiments.tuning.bottleneck import Facts, limits
from jumar.experiments.tuning.knobs import (
    DEFAULT_VARIABLES,
    Choice,
    Combination,
    Start,
    choices_for,
    variables_set_by_user,
)
from jumar.recipes.recipe import Recipe
from jumar.recipes.registry import create_recipe
from jumar.recipes.tuned import VARIABLES, effective_fields
from jumar.settings import override

CPU = Facts(
    device="cpu",
    device_name="a processor",
    on_host=True,
    cores=4,
    threads=1,
    workers=8,
    step_s=0.1,
    data_share=0.0,
    loader_share=0.0,
    queued_share=0.0,
    memory_bytes=1 << 30,
    memory_free_bytes=1 << 34,
)
NPU = replace(CPU, device="npu", on_host=False, queued_share=0.4)


def start(recipe: str = "alexnet-demo", **environment: str) -> Start:
    return Start(fields=effective_fields(create_recipe(recipe)), environment=environment)


def labels(facts: Facts, *, rounding: bool, begin: Start | None = None) -> list[str]:
    chosen = choices_for(begin or start(), facts, limits(facts), allow_rounding=rounding)
    return [choice.label for choice in chosen]


@pytest.mark.parametrize(
    ("facts", "kinds"),
    [
        (CPU, ["compute"]),
        (replace(CPU, data_share=0.2), ["input", "compute"]),
        (replace(CPU, data_share=0.8), ["input"]),
        (replace(CPU, loader_share=0.2), ["input", "compute"]),
        (replace(NPU, loader_share=0.2), ["compute"]),
        (replace(NPU, queued_share=0.01), ["host"]),
        (replace(NPU, queued_share=0.01, data_share=0.1), ["input", "host"]),
    ],
)
def test_baseline_measurement_names_the_bottleneck(facts: Facts, kinds: list[str]) -> None:
    assert [limit.kind for limit in limits(facts)] == kinds


def test_only_knobs_for_the_bottleneck_are_tried() -> None:
    computing = labels(CPU, rounding=True)
    assert "threads.intra_op=4" in computing
    assert not [label for label in computing if label.startswith("data.")]
    waiting = labels(replace(CPU, data_share=0.8), rounding=True)
    assert "data.workers=4" in waiting
    assert not [label for label in waiting if not label.startswith("data.")]


def test_knobs_that_change_rounding_are_tried_only_if_allowed() -> None:
    for facts in (CPU, NPU, replace(CPU, data_share=0.2), replace(NPU, queued_share=0.0)):
        chosen = choices_for(start(), facts, limits(facts), allow_rounding=False)
        assert chosen
        assert {choice.claim for choice in chosen} == {"identical"}


def test_knobs_that_change_the_training_are_never_tried() -> None:
    for recipe in ("alexnet-demo", "biggan128", "ds-cnn-s", "bert-tiny"):
        for facts in (replace(CPU, data_share=0.2), replace(NPU, queued_share=0.0)):
            for choice in choices_for(start(recipe), facts, limits(facts), allow_rounding=True):
                fields = [name for name in choice.settings if not name.endswith(".fused")]
                assert set(fields) <= {
                    "data.workers",
                    "data.prefetch",
                    "threads.intra_op",
                    "training.channels_last",
                    "training.compile",
                }


def test_every_field_and_variable_that_is_tried_can_be_applied() -> None:
    recipe: Recipe = create_recipe("alexnet-demo")
    for facts in (replace(CPU, data_share=0.2), replace(NPU, queued_share=0.0)):
        for choice in choices_for(start(), facts, limits(facts), allow_rounding=True):
            override(recipe, [f"{name}={value}" for name, value in choice.settings.items()])
            assert set(choice.environment) <= VARIABLES


def test_current_value_is_not_a_choice() -> None:
    tried = labels(replace(CPU, data_share=0.2, workers=2, threads=4), rounding=True)
    assert "data.workers=2" not in tried
    assert "threads.intra_op=4" not in tried
    assert "training.channels_last=true" not in tried


def test_variable_set_by_the_user_is_left_alone() -> None:
    own = start(OMP_PROC_BIND="spread")
    assert [each for each in labels(CPU, rounding=True) if "OMP_PROC_BIND" in each]
    assert not [each for each in labels(CPU, rounding=True, begin=own) if "OMP_PROC_BIND" in each]
    assert variables_set_by_user(own) == ["OMP_PROC_BIND"]


def test_variables_set_by_jumar_are_not_treated_as_the_users() -> None:
    import jumar

    assert jumar.__version__
    by_jumar = {name: os.environ[name] for name in DEFAULT_VARIABLES}
    assert by_jumar == DEFAULT_VARIABLES
    assert variables_set_by_user(start(**by_jumar)) == []
    assert variables_set_by_user(start(THP_MEM_ALLOC_ENABLE="0")) == ["THP_MEM_ALLOC_ENABLE"]


def test_host_bound_npu_is_offered_the_task_queue() -> None:
    tried = labels(replace(NPU, queued_share=0.0), rounding=False)
    assert "TASK_QUEUE_ENABLE=2" in tried
    assert "TASK_QUEUE_ENABLE=2" not in labels(NPU, rounding=False)


def test_combination_has_one_choice_per_knob() -> None:
    def workers(number: int) -> Choice:
        value = str(number)
        return Choice(
            knob="data.workers", label=value, claim="identical", settings={"data.workers": value}
        )

    pages = Choice(knob="pages", label="p", claim="identical", environment={"P": "1"})
    one = Combination().with_choice(workers(1)).with_choice(pages)
    other = Combination().with_choice(pages).with_choice(workers(1))
    assert one.labels == other.labels
    assert one.with_choice(workers(2)).settings == {"data.workers": "2"}
    assert one.with_choice(workers(2)).environment == {"P": "1"}
