"""Ctrl-C while a port is written: what is done is done whole, and reported."""

import signal
from pathlib import Path

import pytest

from jumar.porting.edits import TreeReport
from jumar.porting.options import PortOptions
from jumar.porting.tree import in_place
from jumar.porting.tree.in_place import write_in_place
from jumar.porting.tree.porting import port_tree
from jumar.porting.tree.writing import write_tree
from tests.porting.trees import SESSION, write_files


def port(root: Path) -> TreeReport:
    return port_tree(root, PortOptions())


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_files(tmp_path / "tree", {"train.py": SESSION, "sub/eval.py": SESSION})


def test_interruption_while_files_are_replaced_comes_when_all_are(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[bool] = []

    def interrupted(original: Path, backup: Path) -> None:
        back_up(original, backup)
        signal.raise_signal(signal.SIGINT)

    back_up = in_place._back_up
    report = port(tree)
    monkeypatch.setattr(in_place, "_back_up", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_in_place(report, tree, force=True, done=lambda: done.append(True))
    assert done == [True]
    assert not port(tree).count("ported")
    assert not [path for path in tree.rglob(".*") if path.name.endswith(".original")]


def test_interruption_while_the_copy_is_renamed_comes_after_it(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[bool] = []
    replace = Path.replace

    def interrupted(path: Path, target: Path) -> Path:
        signal.raise_signal(signal.SIGINT)
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    for root, out in ((tree, "out"), (tree / "train.py", "new.py")):
        with pytest.raises(KeyboardInterrupt):
            write_tree(port(root), root, tmp_path / out, done=lambda: done.append(True))
        assert (tmp_path / out).exists()
    assert done == [True, True]
