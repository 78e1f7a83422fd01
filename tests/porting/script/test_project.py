"""The files of a tree, read once, and its modules."""

import os
import pickle
from pathlib import Path

import pytest

from jumar.porting.script import project as projects
from jumar.porting.script.project import Content, Project
from tests.porting.trees import write_files


def test_file_is_read_once_up_to_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projects, "MAX_SCRIPT_BYTES", 10)
    monkeypatch.setattr(projects, "_MAX_CACHED_BYTES", 25)
    write_files(tmp_path, {"a.py": "a" * 10, "b.py": "b" * 10, "c.py": "c" * 6, "d.py": "d" * 5})
    write_files(tmp_path, {"long.py": "e" * 12})
    project = Project(tmp_path)
    project.read(["a.py", "missing.py", "b.py", "c.py", "d.py", "long.py"])
    for name in ("a", "b", "c", "d"):
        (tmp_path / f"{name}.py").write_text("x")
    # The third did not fit any more; the fourth did.
    assert [project.content(f"{name}.py")[:1] for name in ("a", "b", "c", "d")] == [
        *(b"a", b"b", b"x", b"d"),
    ]
    assert project.content("long.py") == b"e" * 11
    (tmp_path / "long.py").write_text("y")
    assert project.content("long.py") == b"y"


def test_file_content_is_cached_until_it_changes(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": "one", "b.py": "two", "c.py": "three"})
    project = Project(tmp_path)
    assert project.as_read("a.py") is None
    project.read(["a.py", "b.py", "c.py"])
    assert project.as_read("a.py") == b"one"
    os.utime(tmp_path / "a.py", (1, 1))
    (tmp_path / "b.py").unlink()
    (tmp_path / "c.py").rename(tmp_path / "d.py")
    (tmp_path / "c.py").symlink_to("d.py")
    assert [project.as_read(f"{name}.py") for name in "abc"] == [None, None, None]


def test_named_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(OSError, match="it is not a regular file") as caught:
        Project(tmp_path).content("pipe.py")
    assert caught.value.errno == 22


def test_project_is_pickled_without_its_files(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": "one"})
    project = Project(tmp_path)
    project.read(["a.py"])
    back = pickle.loads(pickle.dumps(project))
    assert (back.root, back.as_read("a.py")) == (tmp_path, None)


TREE = {
    **{"top.py": "", "models/__init__.py": "", "models/ops.py": "", "models/deep/net.py": ""},
    **{"models/top.py": "", "models/deep/both.py": "", "models/deep/both/__init__.py": ""},
    "plain/inner.py": "",
}


@pytest.mark.parametrize(
    ("dotted", "importer", "found"),
    [
        ("top", "main.py", "top.py"),
        ("models", "main.py", "models/__init__.py"),
        ("models.ops", "main.py", "models/ops.py"),
        ("plain", "main.py", "plain/"),
        ("plain.inner", "main.py", "plain/inner.py"),
        ("missing", "main.py", None),
        # A script sees its own folder first, then those above.
        ("top", "models/deep/net.py", "models/top.py"),
        ("ops", "models/deep/net.py", "models/ops.py"),
        ("models.ops", "models/deep/net.py", "models/ops.py"),
        ("both", "models/deep/net.py", "models/deep/both.py"),
        (".net", "models/deep/both.py", "models/deep/net.py"),
        ("..ops", "models/deep/net.py", "models/ops.py"),
        ("...top", "models/deep/net.py", "top.py"),
        ("....top", "models/deep/net.py", None),
        ("..", "models/deep/net.py", "models/__init__.py"),
        (".", "models/deep/net.py", "models/deep/"),
        ("...", "models/deep/net.py", None),
        (".top", "main.py", "top.py"),
        # The tree is itself a package.
        ("package", "main.py", None),
        ("package.top", "models/ops.py", "top.py"),
        ("package.models", "main.py", "models/__init__.py"),
        ("other.top", "main.py", None),
        ("no-name", "main.py", None),
        ("models..ops", "main.py", None),
    ],
)
def test_import_resolves_to_the_nearest_file(
    tmp_path: Path, dotted: str, importer: str, found: str | None
) -> None:
    project = Project(write_files(tmp_path / "package", TREE))
    assert project.find(dotted, importer) == found
    write_files(tmp_path / "package", {"missing.py": "", "__init__.py": ""})
    # It is looked for once.
    assert project.find(dotted, importer) == found


def test_package_tree_is_found_by_its_own_name(tmp_path: Path) -> None:
    project = Project(write_files(tmp_path / "package", {**TREE, "__init__.py": ""}))
    assert project.find("package", "main.py") == "__init__.py"
    assert project.find("...", "models/deep/net.py") == "__init__.py"


def test_module_is_parsed_once_and_converted_from_python_2(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"new.py": "x = 1\n", "old.py": "print 1\n", "bad.py": "def (:"}
    project = Project(write_files(tmp_path, {**files, "nul.py": b"\0", "folder/x.py": ""}))
    new, old = project.module("new.py"), project.module("old.py")
    assert new is not None
    assert old is not None
    assert (new.text, new.path, old.text) == ("x = 1\n", "new.py", "print(1)\n")
    assert project.module("new.py") is new
    for path in ("bad.py", "nul.py", "missing.py", "folder/"):
        assert project.module(path) is None
    assert project.parsed("x = 1\n", "new.py") is new
    other = project.parsed("y = 2\n", "new.py")
    assert other is not new
    assert project.module("new.py") is other


def test_overlong_modules_are_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projects, "_MAX_MODULE_BYTES", 6)
    project = Project(write_files(tmp_path, {"a.py": "x = 1\n", "b.py": "x = 10\n"}))
    assert project.module("a.py") is not None
    assert project.module("b.py") is None


def test_most_recently_used_modules_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projects, "_MAX_PARSED_CHARS", 12)
    names = ("a.py", "b.py", "c.py")
    project = Project(write_files(tmp_path, {**dict.fromkeys(names, "x = 1\n"), "no.py": "def ("}))
    a, b = project.module("a.py"), project.module("b.py")
    assert project.module("no.py") is None
    # Two of six characters are kept; `a` is used once more, so that `b` goes.
    assert project.module("a.py") is a
    c = project.module("c.py")
    assert project.module("a.py") is a
    assert project.module("c.py") is c
    assert project.module("b.py") is not b
    # Parsing a longer text in the place of one counts that alone.
    project.parsed("x = 12345678\n", "c.py")
    assert project.module("b.py") is not b
    only = project.parsed("y" * 20, "long.py")
    assert project.module("long.py") is only


def test_module_members_are_definitions_imports_and_submodules(tmp_path: Path) -> None:
    files = {
        **{"a.py": "import torch\nfrom torch import nn\ndef f(): pass\n", "p/__init__.py": ""},
        **{"p/q.py": "", "r/s.py": "", "p/t/u.py": "", "__init__.py": "", "v.py": ""},
    }
    project = Project(write_files(tmp_path, files))
    assert [project.member("a.py", name) for name in ("f", "nn", "torch", "g")] == [
        *("tree:a.py:f", "torch.nn", "torch", "tree:a.py:g"),
    ]
    assert project.member("p/__init__.py", "q") == "tree:p/q.py"
    assert project.member("p/__init__.py", "t") == "tree:p/t/"
    assert project.member("p/__init__.py", "x") == "tree:p/__init__.py:x"
    assert project.member("r/", "s") == "tree:r/s.py"
    assert project.member("__init__.py", "v") == "tree:v.py"
    assert project.member("a.py", "v") == "tree:a.py:v"
    assert project.member("a.py", "nn", frozenset({("a.py", "nn")})) == "tree:a.py:nn"


def test_file_content_is_immutable() -> None:
    with pytest.raises(AttributeError):
        setattr(Content(b"", (1, 2, 3)), "data", b"x")  # noqa: B010
