import errno
import fcntl
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.ground.errors import UserError
from jumar.training.run_directory import (
    RecordedRecipe,
    RunDirectory,
    next_run_path,
    read_json,
    recorded_recipe,
    write_json,
)


@given(
    steps=st.lists(st.integers(0, 50), max_size=40).map(sorted),
    cut=st.integers(0, 50),
    pad=st.integers(0, 4000),
)
def test_truncating_metrics_keeps_records_up_to_the_step(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], cut: int, pad: int
) -> None:
    run = RunDirectory(tmp_path_factory.mktemp("run"))
    lines = [json.dumps({"kind": "train", "step": step, "pad": "x" * pad}) for step in steps]
    run.metrics.write_text("".join(line + "\n" for line in lines))
    run.cut_metrics(cut)
    assert [record["step"] for record in run.read_metrics()] == [s for s in steps if s <= cut]


def test_partial_last_line_is_removed_and_not_read(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.metrics.write_text('{"step": 1}\n{"step": 2}\n{"st')
    assert [record["step"] for record in run.read_metrics()] == [1, 2]
    run.cut_metrics(2)
    assert run.metrics.read_text() == '{"step": 1}\n{"step": 2}\n'


def test_numbers_json_cannot_express_become_null(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": float("nan"), "b": [float("inf"), 1.0]})
    assert read_json(tmp_path / "x.json") == {"a": None, "b": [None, 1.0]}


def test_run_in_use_is_refused(tmp_path: Path) -> None:
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


def test_directory_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no recipe\.json"):
        RunDirectory(tmp_path).read_recipe()
    with pytest.raises(UserError, match="no such run directory"):
        RunDirectory(tmp_path / "x").read_recipe()


def test_next_free_number_is_used(tmp_path: Path) -> None:
    (tmp_path / "alexnet-1").mkdir()
    assert next_run_path(tmp_path, "alexnet").name == "alexnet-2"


def test_command_that_resumes_names_the_modules_of_the_run(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "my run")
    assert run.resume_command("auto") == f"jumar train --resume --run-dir '{run}'"
    stored = {"recipe": "r", "imports": ["my_net", "my.data"], "settings": {}}
    write_json(run.recipe, stored)
    assert run.resume_command("npu:1").endswith("--device npu:1 --import my_net --import my.data")


def test_first_free_number_is_used_even_if_later_ones_are_free(tmp_path: Path) -> None:
    assert next_run_path(tmp_path / "none", "alexnet") == tmp_path / "none" / "alexnet-1"
    for number in (1, 2, 4):
        (tmp_path / f"alexnet-{number}").touch()
    assert next_run_path(tmp_path, "alexnet") == tmp_path / "alexnet-3"
    assert next_run_path(tmp_path, "bert") == tmp_path / "bert-1"


def test_run_has_its_files_at_fixed_paths() -> None:
    run = RunDirectory(Path("runs/x"))
    assert str(run) == "runs/x"
    places = {name: str(place) for name, place in vars(run).items()}
    assert places == {
        "path": "runs/x",
        "recipe": "runs/x/recipe.json",
        "first_stage": "runs/x/first_stage.json",
        "resolved": "runs/x/resolved.json",
        "environment": "runs/x/environment.json",
        "metrics": "runs/x/metrics.jsonl",
        "results": "runs/x/results.json",
        "log": "runs/x/log.txt",
        "checkpoints": "runs/x/checkpoints",
        "tensorboard": "runs/x/tensorboard",
        "tracked": "runs/x/tracked.json",
        "pictures": "runs/x/pictures",
    }


WHOLE = {"recipe": "alexnet", "settings": {"seed": 1}, "imports": ["a.b", "c"], "global_batch": 32}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"recipe": 3}, "'recipe' must be a name, not 3"),
        ({"settings": []}, "'settings' must be an object"),
        ({"imports": "a"}, "'imports' must be a list"),
        ({"imports": ["a", "b c"]}, "'imports' contains 'b c', which is not a module name"),
        ({"imports": ["a..b"]}, "'imports' contains 'a..b', which is not a module name"),
        ({"imports": [3]}, "'imports' contains 3, which is not a module name"),
        ({"global_batch": -1}, "'global_batch' must be a number of samples"),
        ({"global_batch": True}, "'global_batch' must be a number of samples"),
        ({"global_batch": 1.0}, "'global_batch' must be a number of samples"),
    ],
)
def test_recipe_with_a_field_of_another_kind_is_refused(
    changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as refused:
        recorded_recipe({**WHOLE, **changed}, where="recipe.json")
    assert str(refused.value) == f"recipe.json: {message}"


def test_recipe_is_read_with_its_types_and_may_lack_newer_fields() -> None:
    assert recorded_recipe(WHOLE, where="x") == RecordedRecipe(
        recipe="alexnet", settings={"seed": 1}, imports=["a.b", "c"], global_batch=32
    )
    assert recorded_recipe({"recipe": "r", "settings": {}}, where="x") == RecordedRecipe(
        recipe="r", settings={}, imports=[], global_batch=0
    )
    assert RecordedRecipe(recipe="r", settings={}, imports=[]).global_batch == 0
    for name in ("recipe", "settings"):
        lacking = {key: value for key, value in WHOLE.items() if key != name}
        with pytest.raises(UserError) as refused:
            recorded_recipe(lacking, where="x")
        assert str(refused.value) == f"x: lacks the field '{name}'"


def test_results_give_the_headline_metric_if_present(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    assert (run.read_results(), run.headline()) == (None, None)
    write_json(run.results, {"state": "failed"})
    assert (run.read_results(), run.headline()) == ({"state": "failed"}, None)
    for higher in (True, False):
        write_json(run.results, {"headline": {"name": "loss", "higher_is_better": higher}})
        assert run.headline() == ("loss", higher)
    for odd in ({"name": "loss"}, "loss", ["loss"], 3):
        write_json(run.results, {"headline": odd})
        with pytest.raises(UserError) as refused:
            run.headline()
        assert str(refused.value) == (
            f"{run.results}: 'headline' names no metric\n  Delete this file."
        )
    write_json(run.results, {"metrics": [1]})
    with pytest.raises(UserError) as refused:
        run.read_results()
    assert str(refused.value) == f"{run.results}: 'metrics' is not an object"
    run.results.write_text("[1]")
    with pytest.raises(UserError) as refused:
        run.read_results()
    assert str(refused.value) == (
        f"{run.results}: is not a JSON object\n  Delete it: `jumar train` writes it again."
    )


def test_unreadable_json_is_reported_with_the_given_advice(
    tmp_path: Path,
) -> None:
    file = tmp_path / "x.json"
    with pytest.raises(UserError) as refused:
        read_json(file, todo="Make one.")
    assert str(refused.value) == f"{file}: there is no such file\n  Make one."
    file.write_text("{")
    with pytest.raises(UserError, match=r"x\.json: cannot be read as JSON: .*\n  Make one\."):
        read_json(file, todo="Make one.")
    assert not RunDirectory(tmp_path / "none").exists


def test_json_is_written_indented_with_a_final_newline(tmp_path: Path) -> None:
    data = {"a": (1, float("-inf")), "b": {"c": float("nan"), "d": [{"e": 2.5}]}, "f": "nan"}
    write_json(tmp_path / "x.json", data)
    assert (tmp_path / "x.json").read_text() == (
        '{\n  "a": [\n    1,\n    null\n  ],\n  "b": {\n    "c": null,\n    "d": [\n      {\n'
        '        "e": 2.5\n      }\n    ]\n  },\n  "f": "nan"\n}\n'
    )


def test_records_with_a_numeric_step_are_read_and_other_lines_skipped(
    tmp_path: Path,
) -> None:
    run = RunDirectory(tmp_path)
    assert run.read_metrics() == []
    run.cut_metrics(3)
    assert not run.metrics.exists()
    lines = ['{"step": 1}', "[2]", '{"kind": "note"}', '{"step": "3"}', "", '{"step": 4}', "5"]
    run.metrics.write_text("\n".join(lines) + "\n")
    assert run.read_metrics() == [{"step": 1}, {"kind": "note"}, {"step": 4}]
    run.cut_metrics(4)
    assert run.metrics.read_text() == "\n".join(lines[:6]) + "\n"
    run.cut_metrics(3)
    assert run.metrics.read_text() == "\n".join(lines[:3]) + "\n"
    run.cut_metrics(0)
    assert run.metrics.read_text() == "\n".join(lines[:3]) + "\n"
    run.metrics.write_text('{"step": 1}\n{"step": 2}\n')
    run.cut_metrics(0)
    assert run.metrics.read_text() == ""


def test_lock_leaves_nothing_behind_if_the_run_did_not_start(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    run = RunDirectory(tmp_path / "runs" / "a" / "b")
    with run.locked():
        assert [path.name for path in run.path.iterdir()] == [".lock"]
        with pytest.raises(UserError) as refused, run.locked():
            pass
        assert str(refused.value) == (
            f"another process is using '{run.path}'\n"
            "  Wait until it ends, stop it, or choose another --run-dir."
        )
        assert run.path.exists()
    assert list(tmp_path.iterdir()) == [tmp_path / "runs"]
    assert list((tmp_path / "runs").iterdir()) == []
    with pytest.raises(RuntimeError), run.locked():
        raise RuntimeError
    assert not run.path.parent.exists()
    with run.locked():
        run.recipe.write_text("{}")
    assert sorted(path.name for path in run.path.iterdir()) == [".lock", "recipe.json"]
    with run.locked():
        pass


def held_elsewhere(lock: Path, until: Callable[[], bool]) -> int:
    """Another process that keeps a lock until a condition is true; its id, once it has the lock."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with lock.open("w") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            os.write(writing, b"x")
            while not until():
                time.sleep(0.01)
        os._exit(0)
    os.read(reading, 1)
    os.close(reading)
    os.close(writing)
    return child


def test_run_in_use_is_awaited_for_the_requested_time(tmp_path: Path) -> None:
    run, goes = RunDirectory(tmp_path), tmp_path / "go"
    child = held_elsewhere(tmp_path / ".lock", goes.exists)
    with pytest.raises(UserError, match="another process is using"), run.locked():
        pass
    assert os.waitpid(child, os.WNOHANG) == (0, 0)  # it has not been waited for
    timer = Timer(0.2, goes.touch)
    timer.start()
    with run.locked(patience_s=60.0):
        assert goes.exists()
    timer.join()
    assert os.waitpid(child, 0)[1] == 0


def test_replaced_lock_file_is_not_held(tmp_path: Path) -> None:
    """Of a run that ends without having begun, which removes its file while another waits."""
    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc")
    run, lock, ours = RunDirectory(tmp_path), tmp_path / ".lock", os.getpid()

    def removed_once_awaited() -> bool:
        files = [os.path.realpath(each) for each in Path(f"/proc/{ours}/fd").iterdir()]
        if str(lock) not in files:
            return False
        lock.unlink()
        return True

    child = held_elsewhere(lock, removed_once_awaited)
    with pytest.raises(UserError, match="another process is using"), run.locked(patience_s=60.0):
        pass
    assert os.waitpid(child, 0)[1] == 0


def test_file_system_without_locks_is_named(tmp_path: Path) -> None:
    error = RunDirectory(tmp_path)._held_by_another(OSError(errno.ENOLCK, "No locks available"))
    assert str(error) == (
        f"{tmp_path}: the file system does not support locks: No locks available\n"
        "  Choose a --run-dir on another disk."
    )
    for held in (errno.EAGAIN, errno.EACCES):
        assert "another process" in RunDirectory(tmp_path)._held_by_another(OSError(held, "")).what


def test_unwritable_destination_is_named_and_no_files_left(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    run = RunDirectory(tmp_path / "file" / "run")
    with pytest.raises(UserError, match="not writable") as refused, run.locked():
        pass
    assert refused.value.where == str(run.path)
    assert "Choose another --run-dir." in refused.value.todo
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_links_must_stay_within_a_run(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    (run.path / "deep").mkdir()
    (run.path / "within").symlink_to(run.path / "deep")
    with run.locked():
        pass
    (run.path / "out").symlink_to(tmp_path)
    with pytest.raises(UserError) as refused, run.locked():
        pass
    assert str(refused.value) == (
        f"{run.path / 'out'}: is a link to a place outside the run, so nothing is written here\n"
        "  Replace it with its target. To use another disk, move the whole run."
    )


def test_command_keeps_the_launcher_and_omits_defaults() -> None:
    run = RunDirectory(Path("runs/x"))
    assert run.resume_command("cpu", ("torchrun", "-m", "jumar")) == (
        "torchrun -m jumar train --resume --run-dir runs/x --device cpu"
    )
    assert run.resume_command("auto") == "jumar train --resume --run-dir runs/x"


def test_folders_created_for_a_lock_that_cannot_be_opened_are_removed(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    run = RunDirectory(tmp_path / "new" / "run")
    # Folders can still be created without a free file descriptor, and files cannot be opened.
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(UserError, match="Too many open files"), run.locked():
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert list(tmp_path.iterdir()) == []
