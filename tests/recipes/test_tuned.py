"""The tuned file: what it is valid for, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jumar.experiments.tuning.bottleneck import Facts, Limit
from jumar.experiments.tuning.knobs import Start, choices_for
from jumar.ground.errors import UserError
from jumar.recipes.registry import create_recipe
from jumar.recipes.tuned import Tuned, Validity, effective_fields, read_tuned
from jumar.settings import override

VALIDITY = Validity(
    recipe="alexnet-demo",
    fields={"data.batch_size": 64, "data.workers": 4},
    machine={"processor": "P", "cores": 2},
    versions={"torch": "2.13.0"},
)


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "tuned.json"
    Tuned(
        state="finished",
        validity=VALIDITY,
        settings={"data.workers": "1"},
        environment={"THP_MEM_ALLOC_ENABLE": "1"},
        weights="identical",
        measured={"seconds": 3},
    ).write(path)
    content = json.loads(path.read_text())
    content.update(changes)
    path.write_text(json.dumps(content))
    return path


def test_tuned_settings_are_read_from_the_file_or_its_folder(tmp_path: Path) -> None:
    path = written(tmp_path)
    tuned = read_tuned(path)
    assert read_tuned(tmp_path) == tuned
    assert tuned.validity == VALIDITY
    assert tuned.assignments == ["data.workers=1"]
    assert tuned.environment == {"THP_MEM_ALLOC_ENABLE": "1"}
    content = json.loads(path.read_text())
    assert content["validity"]["recipe_hash"] == VALIDITY.recipe_hash


def test_every_kind_of_difference_is_named_with_both_values() -> None:
    now = Validity(
        recipe="alexnet",
        fields={"data.batch_size": 32, "data.workers": 1},
        machine={"processor": "Q", "cores": 2},
        versions={"torch": "2.13.0", "cuda": "13"},
    )
    assert VALIDITY.differences(now, apart_from=["data.workers"]) == [
        "recipe was alexnet-demo, is alexnet",
        "data.batch_size was 64, is 32",
        "processor was P, is Q",
        "cuda was missing, is 13",
    ]
    assert VALIDITY.differences(VALIDITY) == []
    assert VALIDITY.recipe_hash != replace(VALIDITY, recipe="alexnet").recipe_hash


def test_fields_without_effect_on_a_step_are_ignored() -> None:
    recipe = create_recipe("alexnet-demo")
    longer = override(recipe, ["training.duration=1000it", "seed=7", "checkpoints.keep=9"])
    assert effective_fields(recipe) == effective_fields(longer)
    smaller = override(recipe, ["data.batch_size=3"])
    assert effective_fields(recipe) != effective_fields(smaller)
    # Equal after a file, where tuples have become lists.
    assert json.loads(json.dumps(effective_fields(recipe))) == effective_fields(recipe)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"environment": {"PYTHONPATH": "/tmp"}}, "which no tuning does"),
        ({"environment": {"LD_PRELOAD": "/tmp/libjemalloc.so.2"}}, "which no tuning does"),
        ({"environment": {"LD_PRELOAD": "libevil.so"}}, "which no tuning does"),
        ({"environment": {"OMP_PLACES": 3}}, "a value that is not a text"),
        ({"environment": []}, "not an object"),
        ({"settings": {"data.workers": 1}}, "a value that is not a text"),
        ({"settings": {"optimizer.learning_rate": "10"}}, "learning_rate, which no tuning does"),
        ({"settings": {"precision.mode": "force_fp16"}}, "precision.mode, which no tuning does"),
        ({"settings": {"data.path": "elsewhere"}}, "data.path, which no tuning does"),
        ({"state": "made up"}, "state or weights are not valid"),
        ({"weights": "better"}, "state or weights are not valid"),
        ({"validity": {}}, "state or weights are not valid"),
        ({"validity": 3}, "not an object"),
        ({"format": 9}, "the format is 9"),
        ({"measured": None}, "not an object"),
    ],
)
def test_content_no_tuning_writes_is_refused(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UserError, match=reason):
        read_tuned(written(tmp_path, **changes))


def test_allocator_is_accepted_by_its_bare_name(tmp_path: Path) -> None:
    path = written(tmp_path, environment={"LD_PRELOAD": "libjemalloc.so.2"})
    assert read_tuned(path).environment == {"LD_PRELOAD": "libjemalloc.so.2"}


def test_every_tunable_field_is_read_from_the_file(tmp_path: Path) -> None:
    facts = Facts(
        device="cpu",
        device_name="P",
        on_host=True,
        cores=4,
        threads=1,
        workers=2,
        step_s=1.0,
        data_share=0.5,
        loader_share=0.5,
        queued_share=0.0,
        memory_bytes=1,
        memory_free_bytes=1,
    )
    limits = [Limit(kind=kind, reason="") for kind in ("input", "host", "compute")]
    for recipe in ("alexnet-demo", "ds-cnn-s", "bert-tiny"):
        fields = effective_fields(create_recipe(recipe))
        start = Start(fields=fields, environment={})
        chosen = choices_for(start, facts, limits, allow_rounding=True)
        settings = {name: value for each in chosen for name, value in each.settings.items()}
        assert len(settings) >= 4
        path = written(tmp_path, settings=settings)
        assert read_tuned(path).settings == settings
