import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jumar.porting.check import checking
from jumar.porting.check.reasons import details_of, reason_of
from jumar.porting.check.record import read_record
from jumar.porting.check.supervision import Ended

COMPILES = Path(checking.__file__).parent / "runner37" / "compiles.py"


def reason(tmp_path: Path, *events: dict[str, Any], how: Any = "exited", code: int = 0) -> str:
    lines = "".join(json.dumps({"seconds": 1.0, **event}) + "\n" for event in events)
    (tmp_path / "events").write_text(lines)
    ended = Ended(how=how, code=code, seconds=2.0, num_bytes=70 * 2**20, tail=())
    record = read_record(ended, tmp_path / "events", tmp_path / "none")
    return reason_of(record, python="python3.7", timeout="10min").en


@pytest.mark.parametrize(
    ("how", "code", "text"),
    [
        ("timeout", -9, "still running after 10min"),
        ("flood", -9, "stopped by jumar: it had written 70 MiB of output"),
        ("signal", signal.SIGSEGV, "the process was killed by SIGSEGV"),
        ("signal", 200, "the process was killed by signal 200"),
        ("exited", 4, "the process exited with code 4 without an error"),
    ],
)
def test_silent_exit_of_a_script_is_reported(tmp_path: Path, how: str, code: int, text: str):
    assert reason(tmp_path, how=how, code=code) == text


def test_error_is_reported_with_its_innermost_location_in_the_tree(tmp_path: Path):
    error = {
        "event": "error",
        "type": "ValueError",
        "message": "no shape\nsecond line",
        "frames": [["train.py", 9], ["lib/net.py", 4], ["/py/tensorflow/ops.py", 800]],
    }
    assert reason(tmp_path, error) == "ValueError: no shape (lib/net.py:4)"


@pytest.mark.parametrize(
    ("module", "package"), [("cv2", "opencv-python-headless"), ("PIL.Image", "pillow"), ("a", "a")]
)
def test_missing_package_is_named_as_on_pip(tmp_path: Path, module: str, package: str):
    error = {
        "event": "error",
        "type": "ModuleNotFoundError",
        "message": f"No module named '{module}'",
        "module": module,
        "frames": [],
    }
    assert reason(tmp_path, error).endswith(f"python3.7 -m pip install {package}")


def test_truncated_and_malformed_event_lines_are_ignored(tmp_path: Path):
    (tmp_path / "events").write_text(
        '{"event": "imports", "seconds": 1}\n[1]\nnonsense\n'
        '{"event": "step", "seconds": 3, "step": 1, "losses": [["loss:0", "nan"]]}\n{"event": "st'
    )
    ended = Ended(how="timeout", code=-9, seconds=2.0, num_bytes=0, tail=())
    record = read_record(ended, tmp_path / "events", tmp_path / "none")
    assert dict(record.reached) == {"imports": 1.0, "graph": 3.0, "step": 3.0}
    assert len(record.losses) == 1


def test_stack_of_a_hang_is_shown_longer_and_noise_is_not(tmp_path: Path):
    tail = ("WARNING:tensorflow:From x: deprecated", "", *(f"line {n}" for n in range(50)))
    for how, count in (("timeout", 30), ("exited", 12)):
        ended = Ended(how=how, code=1, seconds=2.0, num_bytes=0, tail=tail)  # type: ignore[arg-type]
        lines = details_of(read_record(ended, tmp_path / "none", tmp_path / "none"))
        assert lines == tuple(f"line {n}" for n in range(50 - count, 50))


def test_files_that_do_not_compile_are_recorded_and_none_is_run(tmp_path: Path):
    texts = {
        "good.py": b"open('ran', 'w')\n",
        "python2.py": b"x = 1\nprint 'hello'\n",
        "latin.py": b"# -*- coding: latin-1 -*-\nx = '\xe9'\n",
        "bom.py": b"\xef\xbb\xbfx = 1\n",
        "broken.py": b"x = '\xe9'\n",
        "null.py": b"x = 1\0\n",
    }
    for name, data in texts.items():
        (tmp_path / name).write_bytes(data)
    paths = [str(tmp_path / name) for name in texts]
    (tmp_path / "list").write_text(json.dumps([*paths, str(tmp_path / "missing.py")]))
    subprocess.run(
        [sys.executable, str(COMPILES), str(tmp_path / "list"), str(tmp_path / "answer")],
        check=True,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
    )
    answer = json.loads((tmp_path / "answer").read_text())
    assert sorted(Path(path).name for path in answer) == [
        "broken.py",
        "missing.py",
        "null.py",
        "python2.py",
    ]
    assert answer[str(tmp_path / "python2.py")]["line"] == 2
    assert not (tmp_path / "ran").exists()


def error(name: str, message: str, module: str = "") -> dict[str, Any]:
    return {"event": "error", "type": name, "message": message, "module": module, "frames": []}


def test_python_2_module_is_not_a_package_to_install(tmp_path: Path):
    text = reason(tmp_path, error("ModuleNotFoundError", "No module named 'cPickle'", "cPickle"))
    assert "pip install" not in text
    assert "named pickle in Python 3" in text


def test_imports_of_a_package_hint_at_running_it_as_one(tmp_path: Path):
    relative = "attempted relative import with no known parent package"
    assert "-m PACKAGE.MODULE" in reason(tmp_path, error("ImportError", relative))
    missing = error("ModuleNotFoundError", "No module named 'models'", "models.net")
    assert "-m PACKAGE.MODULE" in reason(tmp_path, missing)
