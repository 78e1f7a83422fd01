"""A tree is walked once and read once, for any use."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.porting.options import PortOptions
from jumar.porting.tree.additions import additions
from jumar.porting.tree.in_place import write_in_place
from jumar.porting.tree.porting import port_tree
from jumar.porting.tree.source_tree import SourceTree, as_tree
from jumar.porting.tree.writing import write_tree
from tests.porting.trees import write_files

SESSION = "import tensorflow as tf\n\nwith tf.Session() as sess:\n    sess.run(x)\n"
FILES = {
    "train.py": f"from lib import model\nimport plain\n{SESSION}",
    "eval.py": f"from lib import model\n{SESSION}",
    "plain.py": "x = 1\n",
    "lib/__init__.py": "",
    "lib/model.py": f"import plain\n{SESSION}",
    "notes.ipynb": '{"tensorflow": 1}',
}
PROGRAM = """
import os, sys
root, log = sys.argv[1], os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def note(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and isinstance(arguments[0], (str, bytes)):
        path = os.path.abspath(os.fsdecode(arguments[0]))
        if path.startswith(root):
            os.write(log, (path[len(root):] + os.linesep).encode())

from jumar.cli.main import run
sys.argv = ["jumar", *sys.argv[3:]]
sys.addaudithook(note)
run()
"""


def touched(root: Path, log: Path, *command: str) -> Counter[str]:
    """How often a command opens each file, and lists each folder, of a tree."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(root), str(log), *command],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
        timeout=120,
    )
    assert not done.stderr, done.stderr
    return Counter(log.read_text().splitlines())


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_porting_opens_every_file_and_folder_once(jobs: str, tmp_path: Path) -> None:
    root = write_files(tmp_path / "tree", FILES)
    out = str(tmp_path / "out")
    counts = touched(root, tmp_path / "log", "port", str(root), "--to", out, "--jobs", jobs)
    files = {f"/{path}" for path in FILES} | {"", "/lib"}
    assert counts == dict.fromkeys(files, 1)
    assert "npu_config_proto" in (tmp_path / "out" / "lib" / "model.py").read_text()


def test_linter_opens_every_script_once(tmp_path: Path) -> None:
    scripts = {
        path: text.replace("tf.Session()", "npu_config_proto()") for path, text in FILES.items()
    }
    root = write_files(tmp_path / "tree", scripts)
    counts = touched(root, tmp_path / "log", "port", "lint", str(root), "--json")
    assert {path: counts[f"/{path}"] for path in FILES if path.endswith(".py")} == dict.fromkeys(
        [path for path in FILES if path.endswith(".py")], 1
    )


def test_cached_content_serves_all_uses(tmp_path: Path) -> None:
    tree = SourceTree(write_files(tmp_path / "tree", FILES))
    assert as_tree(tree) is tree
    options = PortOptions(devices=8)
    report = port_tree(tree, options)
    assert report == port_tree(tmp_path / "tree", options)
    added = additions(report, tree, options)
    assert added == additions(report, tmp_path / "tree", options)
    write_tree(report, tree, tmp_path / "out", added.files)
    write_tree(report, tmp_path / "tree", tmp_path / "again", added.files)
    for path in sorted((tmp_path / "out").rglob("*")):
        other = tmp_path / "again" / path.relative_to(tmp_path / "out")
        assert path.is_dir() or path.read_bytes() == other.read_bytes()


def test_script_changed_after_reading_is_not_written(tmp_path: Path) -> None:
    tree = SourceTree(write_files(tmp_path / "tree", FILES))
    report = port_tree(tree, PortOptions())
    write_files(tmp_path / "tree", {"eval.py": f"{SESSION}# new\n"})
    with pytest.raises(UserError, match="has changed"):
        write_tree(report, tree, tmp_path / "out")
    with pytest.raises(UserError, match="has changed"):
        write_in_place(report, tree, force=True)
    assert not (tmp_path / "out").exists()
    assert (tmp_path / "tree" / "eval.py").read_text() == f"{SESSION}# new\n"


def test_missing_path_is_named_with_the_nearest(tmp_path: Path) -> None:
    write_files(tmp_path, {"model/train.py": ""})
    with pytest.raises(UserError, match="no such file or folder") as raised:
        SourceTree(tmp_path / "modell")
    assert f"Did you mean {tmp_path / 'model'}?" in raised.value.todo
