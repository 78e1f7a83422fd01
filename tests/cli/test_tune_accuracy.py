"""`jumar tune accuracy` trains precision modes and names the fastest that is good enough."""

import json
from pathlib import Path

import pytest

from tests.cli.command_line import CHECKOUT
from tests.cli.in_process import SMALL_RECIPE, here, settings


def test_mode_that_keeps_the_target_is_named_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{CHECKOUT / 'src'}:{CHECKOUT}")
    command = ["tune", "accuracy", *SMALL_RECIPE, "--target", "top1=0", "--seeds", "1"]
    command += [
        "--modes",
        "must_keep_origin_dtype",
        "--to",
        "a",
        *settings(training__duration="9it"),
    ]
    done = here(*command, cwd=tmp_path)
    assert "must_keep_origin_dtype is the fastest that meets top1=0 beyond chance" in done.out
    assert "not tried, op list:" in done.out
    assert done.out.splitlines()[-1] == (
        "jumar train small --import tests.cli.small_recipe --set "
        "training.duration=9it --set precision.mode=must_keep_origin_dtype"
    )
    saved = json.loads((tmp_path / "a" / "accuracy.json").read_text())
    assert saved["is_sure"] is True
    assert (tmp_path / "a" / "accuracy.md").read_text().startswith("| precision mode | top1 |")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target", "top1"), "is not a target"),
        (("--target", "top1=1", "--modes", "force_fp17"), "unknown precision mode"),
        (("--target", "top1=1", "--modes", "fp16,force_fp16"), "a mode is missing or repeated"),
        (("--target", "top1=1", "--seeds", "0"), "--seeds: cannot be 0"),
        (("--target", "top1=1", "--set", "model.widht=3"), "Did you mean"),
    ],
)
def test_mistakes_are_reported_before_any_training(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = here("tune", "accuracy", *SMALL_RECIPE, *arguments, cwd=tmp_path, code=2)
    assert message in done.message
    assert not list(tmp_path.rglob("recipe.json"))
