"""`jumar train --tuned`: what is applied, what is not, and why."""

import json
from pathlib import Path
from typing import Any

import pytest

from jumar.devices.cpu import Cpu
from jumar.recipes.registry import create_recipe, import_modules
from jumar.recipes.tuned import Tuned, default_folder, validity_of
from jumar.settings import override
from tests.cli.command_line import CHECKOUT, jumar
from tests.cli.in_process import SMALL_RECIPE, here, settings, train


def tuned(folder: Path, *assignments: str, place: Path | None = None, **fields: Any) -> Path:
    """A tuned file for the small recipe on this machine."""
    import_modules(["tests.cli.small_recipe"])
    recipe = override(create_recipe("small"), assignments)
    validity = validity_of("small", recipe, device="cpu", device_name=Cpu.open().name)
    path = folder / (place or default_folder("small") / "tuned.json")
    values: dict[str, Any] = {"settings": {"threads.intra_op": "1", "data.workers": "1"}}
    Tuned(state="finished", validity=validity, **{**values, **fields}).write(path)
    return path


def recorded(folder: Path, name: str) -> dict[str, Any]:
    return json.loads((folder / "run" / name).read_text())


def test_settings_in_the_default_file_are_applied_reported_and_recorded(tmp_path: Path) -> None:
    tuned(tmp_path)
    done = train("--tuned", "--run-dir", "run", cwd=tmp_path)
    line = "tuned by tuned/small/tuned.json: threads.intra_op=1 data.workers=1\n"
    assert line in done.out
    assert recorded(tmp_path, "recipe.json")["settings"]["data"]["workers"] == 1
    applied = recorded(tmp_path, "environment.json")["tuned"]
    assert applied["settings"] == {"threads.intra_op": "1", "data.workers": "1"}
    assert applied["weights"] == "identical"


def test_file_may_be_named_before_the_recipe(tmp_path: Path) -> None:
    tuned(tmp_path, place=Path("mine.json"))
    done = here("train", "--tuned", "mine.json", *SMALL_RECIPE, "--run-dir", "run", cwd=tmp_path)
    assert "tuned by mine.json: threads.intra_op=1" in done.out


def test_set_option_overrides_tuned_settings_with_a_notice(tmp_path: Path) -> None:
    tuned(tmp_path)
    done = train("--tuned", "--run-dir", "run", *settings(data__workers=0), cwd=tmp_path)
    assert "not changed by it, since you set it: data.workers\n" in done.out
    assert recorded(tmp_path, "recipe.json")["settings"]["data"]["workers"] == 0
    assert recorded(tmp_path, "environment.json")["tuned"]["own"] == ["data.workers"]


def test_stale_file_is_not_applied_and_differences_are_named(tmp_path: Path) -> None:
    tuned(tmp_path, "data.batch_size=8")
    options = ("--tuned", "--run-dir", "run")
    done = train(*options, cwd=tmp_path)
    assert "not applied, since it is stale: data.batch_size was 8, is 4\n" in done.out
    assert recorded(tmp_path, "recipe.json")["settings"]["data"]["workers"] == 0
    assert "tuned" not in recorded(tmp_path, "environment.json")
    other = ("--tuned", "--tuned-anyway", "--run-dir", "other")
    anyway = train(*other, cwd=tmp_path)
    assert "although data.batch_size was 8, is 4: threads.intra_op=1" in anyway.out


def test_another_length_or_seed_is_not_stale(tmp_path: Path) -> None:
    tuned(tmp_path)
    changed = settings(training__duration="1it", seed=3)
    done = train("--tuned", "--run-dir", "run", *changed, cwd=tmp_path)
    assert "tuned by" in done.out


def test_unconfirmed_result_is_reported_as_such(tmp_path: Path) -> None:
    path = tuned(tmp_path, weights="rounding")
    path.write_text(path.read_text().replace('"finished"', '"partial"'))
    done = train("--tuned", "--dry-run", cwd=tmp_path)
    assert "(interrupted, not confirmed)" in done.out
    assert "weights round differently" in done.out


def test_environment_variables_are_set_before_torch_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    variables = {"THP_MEM_ALLOC_ENABLE": "1", "OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}
    tuned(tmp_path, settings={}, environment=variables)
    words = ("train", *SMALL_RECIPE, "--tuned", "--run-dir", "run")
    done = jumar(*words, cwd=tmp_path)
    assert "tuned by tuned/small/tuned.json: " in done.stdout
    applied = recorded(tmp_path, "environment.json")["tuned"]
    assert set(applied["environment"]) | set(applied["own"]) == set(variables)
    assert applied["differences"] == []


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--tuned",), "there is no such tuned file"),
        (("--tuned", "nowhere.json"), "there is no such tuned file"),
        (("--tuned", "a", "b", "c"), "accepts one file, not 3"),
        (("--tuned-anyway",), "there is nothing to apply"),
    ],
)
def test_mistake_is_reported_before_anything_is_written(
    tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    done = train(*words, "--run-dir", "run", cwd=tmp_path, code=2)
    assert reason in done.message
    assert not (tmp_path / "run").exists()


def test_unknown_recipe_field_is_refused(tmp_path: Path) -> None:
    tuned(tmp_path, settings={"data.worker": "1"})
    done = train("--tuned", "--dry-run", cwd=tmp_path, code=2)
    assert "data.worker" in done.message
