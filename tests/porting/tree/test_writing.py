import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.ground.errors import UserError
from jumar.porting.edits import TreeReport
from jumar.porting.options import PortOptions
from jumar.porting.tree.in_place import write_in_place
from jumar.porting.tree.porting import port_tree
from jumar.porting.tree.writing import write_tree
from tests.porting.trees import SESSION, content, write_files

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")


def port(root: Path) -> TreeReport:
    return port_tree(root, PortOptions())


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with two scripts to port, and other files."""
    return write_files(
        tmp_path / "tree",
        {
            "train.py": SESSION,
            "sub/eval.py": SESSION.replace("\n", "\r\n"),
            "sub/data.bin": b"\0\xff\r\n",
            "run.sh": "#!/bin/sh\n",
        },
    )


@pytest.fixture
def repository(tree: Path) -> Path:
    """The same under git, committed."""
    if not shutil.which("git"):
        pytest.skip("needs git")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*GIT, *words], cwd=tree, check=True)
    return tree


def test_copy_has_every_file_and_the_ported_scripts(tree: Path, tmp_path: Path) -> None:
    (tree / "train.py").chmod(0o755)
    (tree / "sub" / "data.bin").chmod(0o640)
    (tree / "empty").mkdir()
    (tree / "sub").chmod(0o550)
    report = port(tree)
    before = content(tree)
    written = write_tree(report, tree, tmp_path / "new" / "out", {"launch/go.sh": "#!/bin/sh\n"})
    out = tmp_path / "new" / "out"
    assert content(tree) == before
    texts = {file.path: file.after for file in report.files if file.status == "ported"}
    assert set(texts) == {"train.py", "sub/eval.py"}
    expected = before | {path: text.encode() for path, text in texts.items()}
    expected |= {"launch": "folder", "launch/go.sh": b"#!/bin/sh\n"}
    assert content(out) == expected
    for name in ("train.py", "sub/data.bin", "sub", "empty", "."):
        assert stat.S_IMODE((out / name).stat().st_mode) == stat.S_IMODE(
            (tree / name).stat().st_mode
        )
    assert os.access(out / "launch" / "go.sh", os.X_OK)
    assert written.place == out
    assert (written.ported, written.copied, written.added) == (2, 2, ("launch/go.sh",))
    assert list((tmp_path / "new").iterdir()) == [out]


def test_porting_the_copy_again_changes_nothing(tree: Path, tmp_path: Path) -> None:
    write_tree(port(tree), tree, tmp_path / "out", {"go.sh": "a"})
    again = port(tmp_path / "out")
    assert not again.count("ported")
    write_tree(again, tmp_path / "out", tmp_path / "out2", {"go.sh": "a"})
    assert content(tmp_path / "out2") == content(tmp_path / "out")


def test_version_control_and_non_regular_files_are_not_copied(
    repository: Path, tmp_path: Path
) -> None:
    os.mkfifo(repository / "pipe")
    written = write_tree(port(repository), repository, tmp_path / "out")
    assert written.left_out == (".git", "pipe")
    assert set(content(tmp_path / "out")) == {
        "train.py", "sub", "sub/eval.py", "sub/data.bin", "run.sh"
    }  # fmt: skip


def test_links_are_kept_with_their_targets(tree: Path, tmp_path: Path) -> None:
    outside = write_files(tmp_path / "outside", {"b.py": SESSION})
    links = {
        "to_train.py": ("train.py", "train.py"),
        "sub/up": ("..", ".."),
        "sub/there": (str(tree / "run.sh"), "../run.sh"),
        "sub/around": (f"../../{tree.name}/run.sh", "../run.sh"),
        "out": (str(outside), str(outside)),
        "sub/out": ("../../outside", str(outside)),
        "gone": ("nothing", "nothing"),
        "far": ("../nothing", str(tmp_path / "nothing")),
        "self": ("self", "self"),
        "slash": ("sub/", "sub/"),
    }
    for name, (target, _) in links.items():
        os.symlink(target, tree / name)  # noqa: PTH211 - a path loses its last slash
    out = tmp_path / "deeper" / "out"
    write_tree(port(tree), tree, out)
    assert {name: os.readlink(out / name) for name in links} == {  # noqa: PTH115
        name: target for name, (_, target) in links.items()
    }
    assert content(outside) == {"b.py": SESSION.encode()}


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("tree", "is the original"),
        ("tree/out", "within the original"),
        ("tree/sub/../new", "within the original"),
        ("link/out", "within the original"),
        (".", "contains the original"),
        ("filled", "not empty"),
        ("filled/file", "already exists"),
        ("filled/file/out", "cannot be written"),
    ],
)
def test_existing_destination_is_refused(out: str, said: str, tree: Path, tmp_path: Path) -> None:
    write_files(tmp_path, {"filled/file": "a"})
    (tmp_path / "link").symlink_to(tree)
    before = content(tmp_path)
    with pytest.raises(UserError, match=said):
        write_tree(port(tree), tree, tmp_path / out)
    assert content(tmp_path) == before


def test_empty_folder_is_accepted_as_destination(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "alias").symlink_to("out")
    assert write_tree(port(tree), tree, tmp_path / "alias").place == tmp_path / "out"
    assert (tmp_path / "out" / "train.py").exists()


@pytest.mark.parametrize("path", ["../out.sh", "/tmp/out.sh", "a/../../out.sh", "", ".", "a\0"])
def test_added_file_outside_of_the_tree_is_refused(path: str, tree: Path, tmp_path: Path) -> None:
    report = port(tree)
    with pytest.raises(UserError, match="outside the tree"):
        write_tree(report, tree, tmp_path / "out", {path: "a"})
    with pytest.raises(UserError, match="outside the tree"):
        write_in_place(report, tree, {path: "a"}, force=True)
    assert [place.name for place in tmp_path.iterdir()] == ["tree"]


def test_nothing_is_written_through_a_link_of_the_tree(tree: Path, tmp_path: Path) -> None:
    outside = write_files(tmp_path / "outside", {"a": "a"})
    (tree / "launch").symlink_to(outside)
    (tree / "go.sh").symlink_to(outside / "a")
    report = port(tree)
    for path in ("launch/b", "go.sh"):
        with pytest.raises(UserError, match="exists in the tree"):
            write_tree(report, tree, tmp_path / "out", {path: "hostile"})
        with pytest.raises(UserError, match="is a link"):
            write_in_place(report, tree, {path: "hostile"}, force=True)
    assert content(outside) == {"a": b"a"}
    assert not (tmp_path / "out").exists()
    assert (tree / "train.py").read_text() == SESSION


def test_added_file_does_not_replace_another(tree: Path, tmp_path: Path) -> None:
    report = port(tree)
    for path in ("run.sh", "sub", "run.sh/a", "train.py"):
        with pytest.raises(UserError, match="exists in the tree"):
            write_tree(report, tree, tmp_path / "out", {path: "other"})
    assert [place.name for place in tmp_path.iterdir()] == ["tree"]


def test_original_changed_meanwhile_is_not_overwritten(tree: Path, tmp_path: Path) -> None:
    report = port(tree)
    write_files(tree, {"sub/eval.py": f"{SESSION}# new\n"})
    before = content(tmp_path)
    with pytest.raises(UserError, match="has changed"):
        write_tree(report, tree, tmp_path / "out")
    with pytest.raises(UserError, match="has changed"):
        write_in_place(report, tree, force=True)
    (tree / "sub" / "eval.py").unlink()
    with pytest.raises(UserError, match="has changed"):
        write_tree(report, tree, tmp_path / "out")
    assert set(content(tmp_path)) == set(before) - {"tree/sub/eval.py"}


def test_single_script_is_written_to_a_file_or_into_a_folder(tree: Path, tmp_path: Path) -> None:
    script = tree / "train.py"
    script.chmod(0o755)
    report = port(script)
    (file,) = report.files
    write_tree(report, script, tmp_path / "out.py")
    assert (tmp_path / "out.py").read_text() == file.after
    assert os.access(tmp_path / "out.py", os.X_OK)
    write_tree(report, script, tree / "out", {"go.sh": "a"})
    assert content(tree / "out") == {"train.py": file.after.encode(), "go.sh": b"a"}
    for out, added in (("train.py", {}), ("sub/eval.py", {}), ("new.py", {"go.sh": "a"})):
        before = content(tree)
        with pytest.raises(UserError):
            write_tree(report, script, tree / out, added)
        assert content(tree) == before


LIMITED = """
import resource, sys
from pathlib import Path
from jumar.ground.errors import UserError
from jumar.porting.tree.in_place import write_in_place
from jumar.porting.options import PortOptions
from jumar.porting.tree.porting import port_tree
from jumar.porting.tree.writing import write_tree
root, out = Path(sys.argv[1]), Path(sys.argv[2])
report = port_tree(root, PortOptions())
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
try:
    write_tree(report, root, out) if out != root else write_in_place(report, root, force=True)
except UserError as error:
    sys.exit(str(error))
"""


@pytest.mark.parametrize("in_place", [False, True])
def test_full_disk_leaves_no_files(in_place: bool, tree: Path, tmp_path: Path) -> None:
    write_files(tree, {"z/large.py": f"{SESSION}#{'x' * 200_000}\n"})
    before = content(tmp_path)
    out = tree if in_place else tmp_path / "new" / "out"
    # A limit on the size of files fails in the same call as a full disk.
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, tree, out],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 1
    assert "cannot be written: File too large" in done.stderr
    assert content(tmp_path) == before


STOPPED = """
import sys
from pathlib import Path
from jumar.porting.tree import writing
from jumar.porting.options import PortOptions
from jumar.porting.tree.porting import port_tree
root, out = Path(sys.argv[1]), Path(sys.argv[2])
report = port_tree(root, PortOptions())
print("ready", flush=True)
try:
    writing.write_tree(report, root, out)
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_ctrl_c_leaves_no_partial_tree(tree: Path, tmp_path: Path) -> None:
    # Large enough for the signal to come while it is copied.
    with (tree / "sub" / "large.bin").open("wb") as stream:
        stream.truncate(5_000_000_000)
    running = subprocess.Popen(
        [sys.executable, "-c", STOPPED, tree, tmp_path / "out"],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert running.stdout is not None
    running.stdout.readline()
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob(".out.*/sub/large.bin")) and time.monotonic() < deadline:
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 130
    running.stdout.close()
    assert sorted(place.name for place in tmp_path.iterdir()) == ["tree"]


def test_in_place_changes_only_the_scripts(repository: Path) -> None:
    (repository / "train.py").chmod(0o755)
    subprocess.run([*GIT, "commit", "-qam", "mode"], cwd=repository, check=True)
    before = content(repository)
    report = port(repository)
    written = write_in_place(report, repository, {"launch/go.sh": "#!/bin/sh\n"})
    after = content(repository)
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"train.py", "sub/eval.py", "launch", "launch/go.sh"}
    assert os.access(repository / "train.py", os.X_OK)
    assert os.access(repository / "launch" / "go.sh", os.X_OK)
    assert written.ported == 2
    shown = subprocess.run(
        [*GIT, "status", "--porcelain"], cwd=repository, check=True, capture_output=True, text=True
    ).stdout
    assert sorted(shown.split()) == ["??", "M", "M", "launch/", "sub/eval.py", "train.py"]
    assert not port(repository).count("ported")


def test_in_place_works_in_a_folder_of_the_repository_and_on_a_script(repository: Path) -> None:
    write_files(repository, {"train.py": f"{SESSION}# not committed\n"})
    write_in_place(port(repository / "sub"), repository / "sub")
    subprocess.run([*GIT, "commit", "-qam", "all"], cwd=repository, check=True)
    report = port(repository / "train.py")
    write_in_place(report, repository / "train.py")
    assert (repository / "train.py").read_text() == report.files[0].after


def test_in_place_refuses_changes_git_could_not_restore(tree: Path, repository: Path) -> None:
    for name, said in (("sub/eval.py", "not committed"), ("new.py", "not tracked by git")):
        write_files(repository, {name: f"{SESSION}# mine\n"})
        before = content(repository)
        report = port(repository)
        with pytest.raises(UserError, match=said) as caught:
            write_in_place(report, repository)
        assert name in str(caught.value)
        assert content(repository) == before
        write_in_place(report, repository, force=True)
        subprocess.run([*GIT, "add", "-A"], cwd=repository, check=True)
        subprocess.run([*GIT, "commit", "-qm", "all"], cwd=repository, check=True)
    shutil.rmtree(repository / ".git")
    write_files(repository, {"train.py": SESSION})
    with pytest.raises(UserError, match="not tracked by git"):
        write_in_place(port(repository), repository)


def test_in_place_shows_why_git_refuses_and_its_remedy(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As for a repository that belongs to another user.
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    before = content(repository)
    with pytest.raises(UserError, match="dubious ownership") as caught:
        write_in_place(port(repository), repository)
    assert "not tracked" not in str(caught.value)
    assert "git config --global --add safe.directory" in str(caught.value)
    assert content(repository) == before


def test_in_place_runs_no_commands_configured_by_the_repository(repository: Path) -> None:
    hook = write_files(repository.parent, {"hook": "#!/bin/sh\ntouch ran\n"}) / "hook"
    hook.chmod(0o755)
    subprocess.run([*GIT, "config", "core.fsmonitor", str(hook)], cwd=repository, check=True)
    write_in_place(port(repository), repository)
    assert not (repository / "ran").exists()


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("chattr"),
    reason="needs root and chattr, for a file that cannot be replaced",
)
def test_earlier_changes_are_reverted_if_a_later_file_fails(tree: Path) -> None:
    write_files(tree, {"z.py": SESSION})
    report = port(tree)
    before = content(tree)
    # An immutable file can be read and be next to new ones, but not be replaced.
    fixed = subprocess.run(["chattr", "+i", tree / "z.py"], check=False, capture_output=True)
    if fixed.returncode:
        pytest.skip("this file system knows no immutable files")
    try:
        with pytest.raises(UserError, match="cannot be written"):
            write_in_place(report, tree, {"new/a": "a"}, force=True)
        assert content(tree) == before
    finally:
        subprocess.run(["chattr", "-i", tree / "z.py"], check=True)


NAMES = st.text(
    st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1, max_size=12
).filter(lambda name: name not in (".", "..", ".git", ".hg", ".svn"))


@given(names=st.lists(NAMES, min_size=1, max_size=4, unique=True), data=st.binary(max_size=50))
def test_every_name_and_content_is_copied(
    names: list[str], data: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("names")
    tree = write_files(folder / "tree", {"train.py": SESSION})
    for number, name in enumerate(names):
        if len(name.encode()) < 200 and name != "train.py":
            write_files(tree, {name if number % 2 else f"{name}.d/{name}": data})
    report = port(tree)
    write_tree(report, tree, folder / "out")
    assert {path: file for path, file in content(tree).items() if path != "train.py"} == {
        path: file for path, file in content(folder / "out").items() if path != "train.py"
    }
    assert len(list(folder.iterdir())) == 2
