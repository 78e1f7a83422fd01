"""The files for Ascend's tuner: their order, what each sets, and that shells read them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from jumar.launching.aoe import Tuned, aoe_files
from tests.cli.in_process import here

AWKWARD = "it's $HOME"


def tensorflow(chip: str = "910", folder: str = "/a 'b'/c d") -> Tuned:
    return Tuned(
        framework="tensorflow",
        folder=folder,
        command=("python3", "train it.py", AWKWARD),
        chip=chip,  # pyright: ignore[reportArgumentType]
    )


def torch() -> Tuned:
    return Tuned(framework="torch", folder="/x", command=("python3", "-m", "jumar", "profile", "r"))


def steps(tuned: Tuned) -> list[str]:
    return sorted(name for name in aoe_files(tuned) if name[0].isdigit())


def test_sub_graphs_are_tuned_before_operators() -> None:
    assert steps(tensorflow()) == [
        "1-before.sh",
        "2-subgraphs.sh",
        "3-operators.sh",
        "4-after.sh",
        "5-compare.sh",
    ]
    files = aoe_files(tensorflow())
    assert "export AOE_MODE=1\n" in files["2-subgraphs.sh"]
    assert "export AOE_MODE=2\n" in files["3-operators.sh"]


def test_chips_without_sub_graph_tuning_skip_that_step() -> None:
    for chip in ("910b", "a3"):
        assert not [name for name in steps(tensorflow(chip)) if "subgraphs" in name]
        assert [name for name in steps(tensorflow(chip)) if "operators" in name]


def test_pytorch_graphs_are_recorded_before_tuning() -> None:
    files = aoe_files(torch())
    assert steps(torch())[1:4] == ["2-graphs.sh", "3-subgraphs.sh", "4-operators.sh"]
    assert 'aoe --job_type=1 --model_path="$here/graphs"' in files["3-subgraphs.sh"]
    assert 'aoe --job_type=2 --model_path="$here/graphs"' in files["4-operators.sh"]
    compile(files["record_graphs.py"], "record_graphs.py", "exec")


def test_only_the_steps_after_the_first_profile_use_the_bank(tmp_path: Path) -> None:
    """Runs the steps with a msprof and a python3 that print what they were started with."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "msprof").write_text('#!/bin/sh\nshift\nexec "$@"\n')
    (tools / "python3").write_text(
        '#!/bin/sh\necho "bank=${TUNE_BANK_PATH:-none} mode=${AOE_MODE:-none} words=$*"\n'
    )
    for tool in tools.iterdir():
        tool.chmod(0o755)
    for name, text in aoe_files(tensorflow(folder=str(folder))).items():
        (folder / name).write_text(text)
    printed: dict[str, str] = {}
    for name in steps(tensorflow())[:4]:
        done = subprocess.run(
            ["bash", str(folder / name), "more"],
            env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        printed[name] = done.stdout.strip()
    words = f"words=train it.py {AWKWARD} more"
    assert printed == {
        "1-before.sh": f"bank=none mode=none {words}",
        "2-subgraphs.sh": f"bank={folder}/bank mode=1 {words}",
        "3-operators.sh": f"bank={folder}/bank mode=2 {words}",
        "4-after.sh": f"bank={folder}/bank mode=none {words}",
    }
    assert (folder / "bank").is_dir()


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck")
def test_shellcheck_has_no_findings_in_the_aoe_steps(tmp_path: Path) -> None:
    for kind, tuned in (("tf", tensorflow()), ("pt", torch())):
        for name, text in aoe_files(tuned).items():
            if name.endswith(".sh"):
                (tmp_path / f"{kind}-{name}").write_text(text)
    done = subprocess.run(
        ["shellcheck", "--exclude=SC2016", *sorted(map(str, tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_command_names_untested_parts_and_overrides(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text('import tensorflow as tf\naoe_mode = "2"\n')
    done = here("tune", "aoe", "train.py", "--to", "aoe", cwd=tmp_path)
    assert "not yet run on an NPU" in done.out
    assert "sets aoe_mode itself" in done.out
    assert (tmp_path / "aoe" / "2-subgraphs.sh").is_file()
    others = here("tune", "aoe", "train.py", "--to", "aoe", "--chip", "910b", cwd=tmp_path, code=2)
    assert "2-subgraphs.sh" in others.message
    newer = here("tune", "aoe", "train.py", "--to", "other", "--chip", "910b", cwd=tmp_path)
    assert "no sub-graph tuning" in newer.out


def test_path_that_is_neither_script_nor_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("print(1)\n")
    (tmp_path / "folder").mkdir()
    for what, why in (
        ("other.py", "neither TensorFlow nor torch"),
        ("folder", "not a run directory"),
        ("nowhere.py", "no such script"),
    ):
        done = here("tune", "aoe", what, "--to", "aoe", cwd=tmp_path, code=2)
        assert why in done.message
        assert not (tmp_path / "aoe").exists()
