import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumar.ground.errors import UserError
from jumar.porting.check.workspace import (
    COPIED_FILE_BYTES,
    Workspace,
    in_workspace,
    make_workspace,
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    tree = tmp_path / "home" / "me" / "work" / "project"
    (tree / "src").mkdir(parents=True)
    (tree / "src" / "train.py").write_text("print('hello')\n")
    (tree / "src" / "main").mkdir()
    (tree / "src" / "main" / "__main__.py").write_text("")
    return tree


def workspace_of(tree: Path, folder: Path, script: str = "src/train.py") -> Workspace:
    folder.mkdir()
    return make_workspace(tree=tree, script=script, folder=folder)


names = st.text("abcdef._-", min_size=1, max_size=8).filter(lambda name: name.strip("."))
files = st.dictionaries(
    st.lists(names, min_size=1, max_size=3).map(tuple), st.binary(max_size=64), max_size=8
)


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(files=files)
def test_copy_is_byte_for_byte_and_writes_do_not_affect_the_tree(
    tmp_path_factory: pytest.TempPathFactory, files: dict[tuple[str, ...], bytes]
):
    root = tmp_path_factory.mktemp("project")
    tree = root / "tree"
    tree.mkdir()
    (tree / "train.py").write_bytes(b"pass\n")
    for parts, data in files.items():
        path = tree.joinpath("files", *parts)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
    before = {
        path.relative_to(tree): path.read_bytes() for path in tree.rglob("*") if path.is_file()
    }
    space = workspace_of(tree, root / "run", "train.py")
    copied = {
        path.relative_to(space.tree): path.read_bytes()
        for path in space.tree.rglob("*")
        if path.is_file()
    }
    assert copied == before
    for path in copied:
        (space.tree / path).write_bytes(b"scribble")
    assert before == {
        path.relative_to(tree): path.read_bytes() for path in tree.rglob("*") if path.is_file()
    }
    assert not space.changed()


def test_script_is_found_relative_to_the_tree_or_the_working_directory(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    space = workspace_of(project, tmp_path / "a")
    assert space.script_folder == space.tree / "src"
    assert space.script_name == "train.py"
    monkeypatch.chdir(project.parent)
    again = workspace_of(Path("project"), tmp_path / "b", "project/src/train.py")
    assert again.script_name == "train.py"


def test_module_runs_in_the_tree_folder(project: Path, tmp_path: Path):
    (tmp_path / "a").mkdir()
    space = make_workspace(tree=project, script="src.main", folder=tmp_path / "a", module=True)
    assert space.script_folder == space.tree
    assert space.script_name == "src/main/__main__.py"


@pytest.mark.parametrize("script", ["nothing.py", "../outside.py", "src"])
def test_script_outside_the_tree_is_refused(project: Path, tmp_path: Path, script: str):
    (project.parent / "outside.py").write_text("")
    with pytest.raises(UserError, match="no script"):
        workspace_of(project, tmp_path / "a", script)


def test_siblings_of_the_tree_are_found_by_relative_paths(project: Path, tmp_path: Path):
    (project.parent / "data").mkdir()
    (project.parent / "data" / "one.txt").write_text("near")
    (project.parents[2] / "shared.txt").write_text("far")
    space = workspace_of(project, tmp_path / "a")
    assert (space.script_folder / "../../data/one.txt").read_text() == "near"
    assert Path(os.path.normpath(space.tree / "../../../shared.txt")).read_text() == "far"


def test_new_files_next_to_the_tree_stay_in_the_copy(project: Path, tmp_path: Path):
    space = workspace_of(project, tmp_path / "a")
    (space.tree.parent / "output").mkdir()
    assert not (project.parent / "output").exists()


def test_large_files_are_linked_and_writes_to_them_detected(project: Path, tmp_path: Path):
    large = project / "weights.bin"
    with large.open("wb") as file:
        file.truncate(COPIED_FILE_BYTES + 1)
    space = workspace_of(project, tmp_path / "a")
    assert (space.tree / "weights.bin").is_symlink()
    assert not space.changed()
    (space.tree / "weights.bin").write_bytes(b"new")
    assert space.changed() == (large,)


def test_links_inside_the_tree_point_into_the_copy(project: Path, tmp_path: Path):
    (project / "alias.py").symlink_to("src/train.py")
    (project / "loop").symlink_to(".")
    (project / "dangling").symlink_to("nothing")
    (tmp_path / "elsewhere").mkdir()
    (project / "data").symlink_to(tmp_path / "elsewhere")
    space = workspace_of(project, tmp_path / "a")
    assert (space.tree / "alias.py").resolve() == space.tree / "src" / "train.py"
    assert (space.tree / "loop").resolve() == space.tree
    assert (space.tree / "data").resolve() == tmp_path / "elsewhere"


def test_named_pipes_do_not_block_the_copy(project: Path, tmp_path: Path):
    os.mkfifo(project / "pipe")
    assert not (workspace_of(project, tmp_path / "a").tree / "pipe").exists()


def test_absolute_output_paths_are_redirected_into_the_copy(project: Path, tmp_path: Path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one").write_text("")
    (tmp_path / "empty").mkdir()
    space = workspace_of(project, tmp_path / "a")
    data = str(tmp_path / "data")
    arguments = (
        f"--data={data}",
        data,
        f"--out={tmp_path}/new/run",
        str(tmp_path / "empty") + "/",
        str(project / "src"),
        "relative/new",
        "--flag=/",
        "-5",
        "",
    )
    outside = f"{space.outside}{tmp_path}"
    assert in_workspace(arguments, space) == (
        f"--data={data}",
        data,
        f"--out={outside}/new/run",
        f"{outside}/empty/",
        str(space.tree / "src"),
        "relative/new",
        "--flag=/",
        "-5",
        "",
    )
    assert Path(outside, "new").is_dir()
