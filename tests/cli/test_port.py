import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.porting.options import PortOptions
from jumar.porting.report.json_report import read_report
from jumar.porting.tree.additions import additions
from jumar.porting.tree.porting import port_tree
from tests.cli.command_line import jumar
from tests.cli.in_process import here
from tests.porting.trees import SESSION, content, write_files

MAIN = "if __name__ == '__main__':\n    pass\n"


BROKEN_RULE = """\
import sys

from jumar.cli.main import run
from jumar.porting.edits import Text
from jumar.porting.rewriting.registry import rule


@rule("broken", title=Text(en="a", zh="a"), source="a")
def broken(tree, view):
    raise KeyError(view.module.path)
    yield


run(sys.argv[1:])
"""
"""The command line with a rule that stops with an error of its own."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_files(
        tmp_path / "tree",
        {"train.py": SESSION + MAIN, "sub/model.py": "x = 1\n", "data.txt": "tf.Session()\n"},
    )


def test_without_to_the_diff_is_shown_and_no_file_changes(tree: Path, tmp_path: Path) -> None:
    before = content(tmp_path)
    done = here("port", "tree", cwd=tmp_path)
    assert "--- a/train.py\n+++ b/train.py\n" in done.out
    assert "-with tf.Session() as sess:\n+with tf.Session(config=" in done.out
    assert "files: 3  ported 1" in done.out
    assert "jumar port tree --to tree-npu" in done.out
    assert content(tmp_path) == before


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_applying_the_diff_gives_the_ported_tree(tree: Path, tmp_path: Path) -> None:
    write_files(tree, {"dos.py": SESSION.replace("\n", "\r\n"), "end.py": SESSION.rstrip("\n")})
    diff = here("port", "tree", "--minimal", cwd=tmp_path).out.split("files: ")[0]
    here("port", "tree", "--minimal", "--to", "out", cwd=tmp_path)
    subprocess.run(["git", "apply", "-p1"], cwd=tree, check=True, input=diff.encode())
    assert content(tree) == content(tmp_path / "out")


def test_to_writes_the_tree_with_its_launch_file_and_reports(tree: Path, tmp_path: Path) -> None:
    done = here(
        *("port", "tree", "--to", "out", "--report", "out/port.json", "--report", "a.html"),
        *("--report", "a.md", "--lang", "zh"),
        cwd=tmp_path,
    )
    assert "run_npu.sh" in done.out
    assert "新增：run_npu.sh\n已写入：out\n" in done.out
    assert "jumar port check out --against tree -- train.py" in done.out
    report = read_report(tmp_path / "out" / "port.json")
    assert report.added == ("run_npu.sh",)
    assert (tmp_path / "out" / "train.py").read_text() == report.files[2].after
    assert os.access(tmp_path / "out" / "run_npu.sh", os.X_OK)
    assert "train.py" in (tmp_path / "out" / "run_npu.sh").read_text()
    assert "<html" in (tmp_path / "a.html").read_text()
    shown = here("port", "report", "out/port.json", "--lang", "zh", cwd=tmp_path).out
    assert shown == (tmp_path / "a.md").read_text()
    here("port", "report", "out/port.json", "--to", "b.html", "--lang", "zh", cwd=tmp_path)
    assert (tmp_path / "b.html").read_bytes() == (tmp_path / "a.html").read_bytes()


def test_single_script_is_checked_against_its_folder(tree: Path, tmp_path: Path) -> None:
    done = here("port", "tree/train.py", "--to", "out", cwd=tmp_path)
    assert "jumar port check out --against tree -- train.py" in done.out


def test_second_run_changes_nothing(tree: Path, tmp_path: Path) -> None:
    options = ("--precision", "allow_mix_precision", "--devices", "8")
    here("port", "tree", "--to", "out", *options, "--exit-code", cwd=tmp_path, code=1)
    done = here("port", "out", *options, "--exit-code", cwd=tmp_path)
    assert "--- " not in done.out
    assert "ported" not in done.out
    # With other options a launch file that already exists is kept, and named.
    done = here("port", "out", "--devices", "4", cwd=tmp_path)
    assert "kept existing files that differ: run_npu.sh" in done.out


def test_in_place_needs_git_or_force(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(tmp_path)
    if shutil.which("git"):
        done = here("port", "tree", "--in-place", cwd=tmp_path, code=2)
        assert "not tracked by git" in done.message
    monkeypatch.setenv("PATH", str(tmp_path / "no programs"))
    done = here("port", "tree", "--in-place", cwd=tmp_path, code=2)
    assert "git is not installed" in done.message
    assert content(tmp_path) == before
    here("port", "tree", "--in-place", "--force", "--minimal", "--quiet", cwd=tmp_path)
    assert "npu_config_proto" in (tree / "train.py").read_text()
    assert {path.name for path in tree.iterdir()} == {"train.py", "sub", "data.txt"}


def test_mixlist_is_written_next_to_every_script_that_reads_it(tree: Path, tmp_path: Path) -> None:
    write_files(tree, {"sub/eval.py": SESSION})
    text = '{"black-list": {"to-add": ["MatMul"]}}'
    write_files(tmp_path, {"lists/ops.json": text})
    options = ("--precision", "allow_mix_precision", "--mixlist", "lists/ops.json")
    here("port", "tree", "--to", "out", *options, cwd=tmp_path)
    for folder in ("out", "out/sub"):
        assert (tmp_path / folder / "ops.json").read_text() == text
    write_files(tmp_path, {"lists/ops.json": "{"})
    assert "is not JSON" in here("port", "tree", *options, cwd=tmp_path, code=2).message
    write_files(tmp_path, {"lists/ops.json": "[]"})
    assert "not an op list" in here("port", "tree", *options, cwd=tmp_path, code=2).message
    (tmp_path / "lists" / "ops.json").unlink()
    assert "there is no such file" in here("port", "tree", *options, cwd=tmp_path, code=2).message


def test_json_prints_the_report_and_quiet_prints_nothing(tree: Path, tmp_path: Path) -> None:
    write_files(tree, {"bad.py": "import tensorflow\nx = = 1\n"})
    shown = here("port", "tree", "--json", cwd=tmp_path).out
    statuses = {file["path"]: file["status"] for file in json.loads(shown)["files"]}
    assert statuses["train.py"] == "ported"
    assert here("port", "tree", "--quiet", cwd=tmp_path).out == ""
    assert "bad.py: neither Python 3 nor" in here("port", "tree", cwd=tmp_path).out


def test_single_script_is_ported_to_a_script(tree: Path, tmp_path: Path) -> None:
    here("port", "tree/train.py", "--to", "new.py", cwd=tmp_path)
    assert "npu_bridge" in (tmp_path / "new.py").read_text()
    assert not (tmp_path / "run_npu.sh").exists()
    done = here("port", "tree/train.py", "--to", "b.py", "--devices", "8", cwd=tmp_path, code=2)
    assert "Specify a folder" in done.message
    here("port", "tree/train.py", "--to", "folder", "--devices", "8", cwd=tmp_path)
    assert (tmp_path / "folder" / "run_npu.sh").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tre"], "Did you mean tree?"),
        (["tree/sub/none"], "no such file"),
        (["tree/data.txt"], "is not a Python script"),
        (["tree", "--to", "out", "--in-place"], "Use one of them"),
        (["tree", "--force"], "--force requires --in-place"),
        (["tree", "--jobs", "0"], "Allowed: 1 or more"),
        (["tree", "--report", "a.pdf"], "Use a name that ends in one of"),
        (["tree", "--precision", "allow_mix"], "allow_mix_precision"),
        (["tree", "--loss-scale", "fast"], "is not a loss scale"),
        (["tree", "--mixlist", "a.json"], "Add --precision"),
        (["tree", "--devices", "0"], "Use 1 to 65536"),
        (["tree", "--entry", "trian.py"], "Did you mean 'train.py'?"),
        (["tree", "--from", "torch", "--auto-tune"], "exist for TensorFlow only"),
        (["tree", "--to", "tree/out"], "within the original"),
        (["report", "tree/data.txt"], "data.txt"),
        (["report", "none.json"], "none.json"),
    ],
)
def test_wrong_options_give_helpful_errors(
    words: list[str], said: str, tree: Path, tmp_path: Path
) -> None:
    before = content(tmp_path)
    assert said in here("port", *words, cwd=tmp_path, code=2).message
    assert content(tmp_path) == before


@pytest.mark.parametrize(
    ("files", "given", "entry"),
    [
        (["a.py"], "", "a.py"),
        (["a.py", "b/main.py"], "", ""),
        (["a.py", "b/main.py:"], "", "b/main.py"),
        (["eval.py:", "train.py:", "main.py:"], "", "train.py"),
        (["eval.py:", "a/run.py:", "main.py:"], "", "main.py"),
        (["a/train.py:", "b/train.py:"], "", ""),
        (["a/train.py:", "b/train.py:"], "b/train.py", "b/train.py"),
        (["a/train.py:", "b/train.py:"], "./tree/a/../b/train.py", "b/train.py"),
    ],
)
def test_script_that_starts_training_is_found(
    files: list[str], given: str, entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sources = {name.rstrip(":"): SESSION + MAIN * name.endswith(":") for name in files}
    tree = write_files(tmp_path / "tree", sources)
    options = PortOptions(devices=2)
    files_added = additions(port_tree(tree, options), tree, options, entry=given).files
    assert f"{entry or 'none'}" in files_added["run_npu.sh"]
    with pytest.raises(UserError, match="unknown script"):
        additions(port_tree(tree, options), tree, options, entry="missing.py")


def test_rules_are_listed_in_both_languages(tmp_path: Path) -> None:
    lines = here("port", "rules", cwd=tmp_path).out.splitlines()
    rows = json.loads(here("port", "rules", "--json", "--lang", "zh", cwd=tmp_path).out)
    assert [line.split()[0] for line in lines] == [row["id"] for row in rows]
    assert "session-config" in {row["id"] for row in rows}
    only = json.loads(here("port", "rules", "--json", "--from", "torch", cwd=tmp_path).out)
    assert {row["from"] for row in only} <= {"torch"}


def test_torch_is_not_loaded_for_a_port(tree: Path, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom jumar.cli.main import run\n"
        "try: run(['port', 'tree', '--report', 'a.html'])\n"
        "finally: print([name for name in ('torch', 'numpy', 'fissix') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_command_works_in_a_separate_process(tree: Path, tmp_path: Path) -> None:
    write_files(tree, {f"m{number}.py": SESSION * 40 for number in range(20)})
    shown = jumar("port", "tree", "--to", "out", "--jobs", "2", cwd=tmp_path).stdout
    assert "ported 21" in shown


@pytest.mark.parametrize("more", [(), ("--jobs", "2"), ("--json",), ("--to", "out")])
def test_defect_in_a_rule_fails_the_command(
    more: tuple[str, ...], tree: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", BROKEN_RULE, "port", "tree", "--quiet", *more]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("jumar: train.py: a bug in jumar, please report it: ")
    assert done.stderr.count("\n") == 1
    if "--to" in more:
        assert (tmp_path / "out" / "train.py").read_bytes() == (tree / "train.py").read_bytes()
