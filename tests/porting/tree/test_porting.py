import os
import random
import signal
import socket
import sysconfig
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.ground.errors import UserError
from jumar.porting.edits import FileReport, TreeReport
from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import Unreadable, decode
from jumar.porting.tree.porting import LONGEST_LINE, MAX_SCRIPT_BYTES, port_tree
from jumar.porting.tree.workers import in_processes
from tests.other_user import open_folder, run_without_rights
from tests.porting.trees import SESSION, by_path, write_files

OPTIONS = PortOptions()


def ported(root: Path, **options: object) -> TreeReport:
    return port_tree(root, OPTIONS, **options)  # type: ignore[arg-type]


def note(file: FileReport) -> str:
    assert file.note is not None
    assert file.note.zh
    return file.note.en


def test_every_file_is_reported_once_in_the_order_of_paths(tmp_path: Path) -> None:
    names = ["b/train.py", "a.py", "b.py", "b/data.bin", "c/d/e.txt", "a-b/x.py", "run"]
    write_files(tmp_path, dict.fromkeys(names, SESSION))
    write_files(tmp_path, {"tool": f"#!/usr/bin/env python3\n{SESSION}", "shell": "#!/bin/sh\n"})
    report = ported(tmp_path)
    assert [file.path for file in report.files] == sorted(
        [*names, "tool", "shell"], key=lambda name: name.split("/")
    )
    scripts = {file.path for file in report.files if file.status == "ported"}
    assert scripts == {"b/train.py", "a.py", "b.py", "a-b/x.py", "tool"}
    assert {file.status for file in report.files if file.path not in scripts} == {"copied"}
    assert report.root == str(tmp_path)


def test_single_script_is_a_tree(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": SESSION, "b.py": SESSION})
    report = ported(tmp_path / "a.py")
    assert [(file.path, file.status) for file in report.files] == [("a.py", "ported")]


def test_report_does_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    write_files(tmp_path, {f"{number}.py": SESSION * (number + 1) for number in range(12)})
    write_files(tmp_path, {"old.py": "print 1\n", "bad.py": "x = = 1\n", "note.txt": "a"})
    alone = ported(tmp_path, jobs=1)
    assert ported(tmp_path, jobs=2) == alone
    threading.Thread(target=(waiting := threading.Event()).wait, daemon=True).start()
    try:
        # With another thread about, processes are not forked.
        assert ported(tmp_path, jobs=2) == alone
    finally:
        waiting.set()


def test_unreadable_script_is_reported_and_stops_nothing(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "good.py": SESSION,
            "nul.py": f"{SESSION}\0",
            "latin.py": SESSION.encode() + b"# \xe9\n",
            "codec.py": b"# coding: no-such\n" + SESSION.encode(),
            "huge.py": b"#" * (MAX_SCRIPT_BYTES + 1),
            "line.py": b"a = '" + b"tf" * (LONGEST_LINE // 2) + b"'\n",
            "broken.py": f"{SESSION}\nx = = 1\n",
            "deep.py": f"{SESSION}\nx = {'+'.join(['1'] * 100_000)}\n",
            "nested.py": f"{SESSION}\nx = {'(' * 5000}1{')' * 5000}\n",
            "tuple.py": "print 'tf'\nf = lambda (a, b): a\n",
        },
    )
    files = by_path(ported(tmp_path, jobs=2))
    assert files.pop("good.py").status == "ported"
    # How deep is too deep depends on the version of Python.
    assert "defect" not in str([files.pop(name).note for name in ("deep.py", "nested.py")])
    assert {file.status for file in files.values()} == {"unreadable"}
    assert "NUL" in note(files["nul.py"])
    assert "utf-8" in note(files["latin.py"])
    assert "no-such" in note(files["codec.py"])
    assert "larger than 5 MB" in note(files["huge.py"])
    assert "1 MB" in note(files["line.py"])
    assert "line 6" in note(files["broken.py"])
    assert "defect" not in "".join(note(file) for file in files.values())


def test_non_regular_file_is_named_and_never_opened(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": SESSION, ".git/config": "", "sub/.git": "gitdir: elsewhere"})
    os.mkfifo(tmp_path / "pipe.py")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(tmp_path)
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)
        files = by_path(ported(tmp_path))
    assert set(files) == {"a.py", "pipe.py", "socket"}
    assert "pipe" in note(files["pipe.py"])
    assert "pipe" in note(files["socket"])


def test_links_are_reported_and_not_followed(tmp_path: Path) -> None:
    outside = write_files(tmp_path / "outside", {"b.py": SESSION})
    tree = write_files(tmp_path / "tree", {"a.py": SESSION, "sub/c.py": SESSION})
    for name, target in {
        "sub/to_a.py": "../a.py",
        "sub/up": "..",
        "to_sub": "sub",
        "absolute.py": str(tree / "a.py"),
        "out": str(outside),
        "out.py": "../outside/b.py",
        "gone.py": "nothing.py",
        "self.py": "self.py",
        "ring1": "ring2",
        "ring2": "ring1",
    }.items():
        (tree / name).symlink_to(target)
    files = by_path(ported(tree))
    assert {path for path, file in files.items() if file.status == "ported"} == {"a.py", "sub/c.py"}
    assert note(files["sub/to_a.py"]).startswith("a link to ../a.py: kept")
    assert "folder that contains it" in note(files["sub/up"])
    assert "a link to sub" in note(files["to_sub"])
    assert "a link to" in note(files["absolute.py"])
    assert "outside the tree" in note(files["out"])
    assert "outside the tree" in note(files["out.py"])
    assert "which does not exist" in note(files["gone.py"])
    for name in ("self.py", "ring1", "ring2"):
        assert "back to itself" in note(files[name])


AS_NOBODY = """
import sys
from pathlib import Path
from jumar.cli.main import run
from jumar.porting.options import PortOptions
from jumar.porting.rewriting.registry import rule_index
from jumar.porting.tree import additions, in_place, porting, source_tree, writing
from jumar.porting.report import json_report, saving, showing, terminal
rule_index("tensorflow", False)
"""


def test_unreadable_paths_are_reported_and_left_out_of_the_copy() -> None:
    with open_folder() as folder:
        write_files(folder / "tree", {"a.py": SESSION, "b.py": SESSION, "c/d.py": SESSION})
        (folder / "tree" / "b.py").chmod(0)
        (folder / "tree" / "c").chmod(0)
        command = "run(['port', 'tree', '--to', 'out'])"
        said = run_without_rights(AS_NOBODY, command, cwd=folder)
        assert "b.py: cannot be read (Permission denied): left out of the copy" in said
        assert "left out: b.py, c\n" in said
        assert {path.name for path in (folder / "out").iterdir()} == {"a.py", "run_npu.sh"}


def test_path_that_may_not_be_read_is_an_error_with_its_name() -> None:
    with open_folder() as folder:
        write_files(folder, {"locked/a.py": SESSION, "b.py": SESSION, "part/sub/c.py": SESSION})
        for path in ("locked", "b.py", "part/sub"):
            (folder / path).chmod(0)
        for path, error in {
            "locked": "jumar: locked: cannot be read: Permission denied",
            "b.py": "jumar: b.py: cannot be read (Permission denied)\n",
            "part": "jumar: part: contains no Python script that can be read\n"
            "  sub: cannot be read (Permission denied)\n",
        }.items():
            command = f"run(['port', '{path}', '--to', 'out'])"
            assert run_without_rights(AS_NOBODY, command, cwd=folder).startswith(error)
        assert not (folder / "out").exists()


@pytest.mark.parametrize("content", ["import tensorflow as tf\nf(\n", f"{SESSION}\0", "x = = 1"])
def test_nothing_is_ported_if_no_script_can_be_read(content: str, tmp_path: Path) -> None:
    write_files(tmp_path, {"tree/a.py": content, "tree/b.txt": ""})
    for root in (tmp_path / "tree", tmp_path / "tree" / "a.py"):
        for jobs in (1, 2):
            with pytest.raises(UserError, match=r"can(not)? be ported"):
                ported(root, jobs=jobs)
    write_files(tmp_path, {"tree/c.py": SESSION})
    assert by_path(ported(tmp_path / "tree"))["a.py"].status == "unreadable"


def test_undecodable_name_is_escaped(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": SESSION})
    name = os.fsencode(tmp_path) + b"/\xff\n.py"
    Path(os.fsdecode(name)).write_text(SESSION)
    files = by_path(ported(tmp_path))
    assert files["\\xff\n.py"].status == "copied"
    assert "not UTF-8" in note(files["\\xff\n.py"])


def test_notebook_of_the_library_is_a_finding(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": SESSION, "a.ipynb": "import tensorflow", "b.ipynb": "{}"})
    files = by_path(ported(tmp_path))
    (finding,) = files["a.ipynb"].findings
    assert finding.rule == "notebook"
    assert "nbconvert" in finding.todo.en
    assert not files["b.ipynb"].findings


def test_python_2_is_rewritten_together_with_its_tree(tmp_path: Path) -> None:
    write_files(tmp_path, {"old.py": "print 'a'\n"})
    (file,) = ported(tmp_path).files
    assert file.status == "unreadable"
    assert "Python 2" in note(file)
    write_files(tmp_path, {"train.py": SESSION})
    file = by_path(ported(tmp_path))["old.py"]
    assert file.status == "ported"
    assert file.after == "print('a')\n"
    assert file.before == "print 'a'\n"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("trian.py", "Did you mean"),
        ("empty", "contains no Python script"),
        ("model.pb", "is not a Python script"),
        ("book.ipynb", "nbconvert"),
        ("notebooks", "nbconvert"),
        ("pipe", "neither a folder nor a file"),
        ("loop", "Too many levels"),
        ("model.pb/x", "no such file"),
    ],
)
def test_path_without_scripts_gives_a_helpful_error(name: str, said: str, tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "train.py": "",
            "model.pb": b"\0",
            "book.ipynb": "",
            "notebooks/b.ipynb": "",
            "empty/a": "",
        },
    )
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UserError, match=said):
        ported(tmp_path / name)


def die(path: str) -> FileReport:
    """Port nothing; for one path, end the process as the system does when memory runs out."""
    if path == "deadly.py":
        os.kill(os.getpid(), signal.SIGKILL)
    if path == "hungry.py":
        bytearray(1 << 40)
    return FileReport(path=path, status="unchanged")


def test_dying_process_affects_only_its_own_script() -> None:
    paths = [f"{number}.py" for number in range(20)]
    done = in_processes(die, dict.fromkeys([*paths, "deadly.py", "hungry.py"], 1), processes=2)
    assert "died" in note(done.pop("deadly.py"))
    assert "died" in note(done.pop("hungry.py"))
    assert {path: file.status for path, file in done.items()} == dict.fromkeys(paths, "unchanged")


def python_files(folder: str) -> list[Path]:
    root = Path(sysconfig.get_paths()[folder])
    return sorted(
        path for path in root.rglob("*.py") if "site-packages" not in path.relative_to(root).parts
    )


def stays(content: bytes, folder: Path, options: PortOptions = OPTIONS) -> None:
    """Hold a port to leaving a script as it is, with the bytes that it would write."""
    try:
        source = decode(content)
    except Unreadable:
        return
    assert source.encoded(source.text) == content
    report = port_file(source, "a.py", Project(folder), options)
    assert report.status != "ported"
    assert not report.after


@pytest.mark.parametrize("folder", ["stdlib", "purelib"])
def test_real_scripts_without_the_library_are_unchanged(folder: str, tmp_path: Path) -> None:
    files = [path for path in python_files(folder) if path.stat().st_size < 100_000]
    for path in random.Random(0).sample(files, 150):
        content = path.read_bytes()
        if b"tensorflow" not in content:
            stays(content, tmp_path)


LINES = st.sampled_from(
    [
        "x = tf.Session()",
        "tf = object()",
        "from graph import Session as tf",
        "def batch(n): return dataset.batch(n).shard(2, 1)",
        "class Session: pass",
        "s = '''import tensorflow as tf",
        "'''",
        "# import tensorflow as tf",
        "with Session() as sess: sess.run(gelu(x))",
        "keras = hvd = slim = 1",
        "\x0c",
        "",
        "print('Ж\u2028', keep_prob=0.5)",
        "if True:",
        "\tpass",
    ]
)


@given(
    lines=st.lists(LINES, max_size=12),
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    last=st.booleans(),
    head=st.sampled_from([b"", b"\xef\xbb\xbf"]),
)
def test_generated_scripts_without_the_library_are_unchanged(
    lines: list[str],
    newline: str,
    last: bool,
    head: bytes,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    text = newline.join(lines) + (newline if last else "")
    stays(head + text.encode(), tmp_path_factory.getbasetemp())


@given(st.binary(max_size=200))
def test_porting_never_raises_on_any_bytes(content: bytes) -> None:
    stays(content, Path("/nowhere"))
    stays(b"import tensorflow as tf # coding: latin-1\n# tf" + content, Path("/nowhere"))


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8-sig", "cp1251", "gbk", "shift_jis"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_unrewritten_text_keeps_its_bytes_in_every_encoding(
    encoding: str, newline: str, tmp_path: Path
) -> None:
    comment = {"latin-1": "é", "utf-8-sig": "é名", "cp1251": "Ж"}.get(encoding, "名")
    cookie = "" if encoding == "utf-8-sig" else f"# coding: {encoding}\n"
    text = f"{cookie}'''{comment}'''\n\x0c\n{SESSION}s = '{comment}'  # {comment}"
    content = text.replace("\n", newline).encode(encoding)
    write_files(tmp_path, {"a.py": content})
    (file,) = ported(tmp_path).files
    assert file.status == "ported"
    new = decode(content).encoded(file.after.removeprefix("\ufeff"))
    kept = [line for line in content.split(newline.encode()) if b"Session" not in line]
    assert [line for line in new.split(newline.encode()) if line in kept] == kept
    assert not (b"\n" in new and newline == "\r")
