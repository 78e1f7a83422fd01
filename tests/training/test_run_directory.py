import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.ground.errors import UserError
from jumar.training.run_directory import RunDirectory, next_run_path, read_json, write_json


@given(
    steps=st.lists(st.integers(0, 50), max_size=40).map(sorted),
    cut=st.integers(0, 50),
    pad=st.integers(0, 4000),
)
def test_cutting_metrics_keeps_just_the_records_up_to_the_step(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], cut: int, pad: int
) -> None:
    run = RunDirectory(tmp_path_factory.mktemp("run"))
    lines = [json.dumps({"kind": "train", "step": step, "pad": "x" * pad}) for step in steps]
    run.metrics.write_text("".join(line + "\n" for line in lines))
    run.cut_metrics(cut)
    assert [record["step"] for record in run.read_metrics()] == [s for s in steps if s <= cut]


def test_half_a_last_line_is_cut_and_not_read(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.metrics.write_text('{"step": 1}\n{"step": 2}\n{"st')
    assert [record["step"] for record in run.read_metrics()] == [1, 2]
    run.cut_metrics(2)
    assert run.metrics.read_text() == '{"step": 1}\n{"step": 2}\n'


def test_numbers_that_json_has_no_word_for_become_null(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": float("nan"), "b": [float("inf"), 1.0]})
    assert read_json(tmp_path / "x.json") == {"a": None, "b": [None, 1.0]}


def test_a_run_that_somebody_works_in_is_refused(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\nfrom jumar.training.run_directory import RunDirectory\n"
        "with RunDirectory(pathlib.Path(sys.argv[1])).locked():\n"
        "    print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(UserError, match="another process"), RunDirectory(tmp_path).locked():
        pass
    holder.communicate()
    with RunDirectory(tmp_path).locked():
        pass


def test_a_directory_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no recipe\.json"):
        RunDirectory(tmp_path).read_recipe()
    with pytest.raises(UserError, match="no such run directory"):
        RunDirectory(tmp_path / "x").read_recipe()


def test_the_next_free_number_is_taken(tmp_path: Path) -> None:
    (tmp_path / "alexnet-1").mkdir()
    assert next_run_path(tmp_path, "alexnet").name == "alexnet-2"


def test_the_command_that_goes_on_names_the_modules_of_the_run(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "my run")
    assert run.resume_command("auto") == f"jumar train --resume --run-dir '{run}'"
    stored = {"recipe": "r", "imports": ["my_net", "my.data"], "settings": {}}
    write_json(run.recipe, stored)
    assert run.resume_command("npu:1").endswith("--device npu:1 --import my_net --import my.data")
