"""modelarts_run.py, run for real on plain folders, and on object storage made of folders."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from jumar.launching.ported import OUTPUT_FOLDERS, modelarts_script
from tests.tensorflow115 import tensorflow_python

_TRAIN = """\
import argparse, json, os, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--data_url")
parser.add_argument("--train_url")
parser.add_argument("--init_method")
parser.add_argument("--epochs", type=int, default=1)
given = parser.parse_args()
names = sorted(os.listdir(given.data_url)) if given.data_url else []
with open(os.path.join(given.train_url, "seen.json"), "w") as file:
    json.dump({"data": names, "init": given.init_method, "epochs": given.epochs}, file)
os.makedirs("npu_profiling", exist_ok=True)
with open("npu_profiling/summary.csv", "w") as file:
    file.write("op,us\\n")
if given.epochs == 13:
    sys.exit(7)
if given.epochs == 99:
    time.sleep(60)
"""
# What ModelArts' module does, on folders: obs://bucket/x is the folder named in BUCKET.
_MOXING = """\
import os, shutil
class file:
    @staticmethod
    def _place(path):
        return path.replace("obs://bucket", os.environ["BUCKET"])
    @staticmethod
    def exists(path):
        return os.path.exists(file._place(path))
    @staticmethod
    def is_directory(path):
        return os.path.isdir(file._place(path))
    @staticmethod
    def copy(source, target):
        file._fail_once()
        os.makedirs(os.path.dirname(file._place(target)), exist_ok=True)
        shutil.copyfile(file._place(source), file._place(target))
    @staticmethod
    def copy_parallel(source, target):
        file._fail_once()
        for folder, _, names in os.walk(file._place(source)):
            within = os.path.relpath(folder, file._place(source))
            os.makedirs(os.path.join(file._place(target), within), exist_ok=True)
            for name in names:
                shutil.copyfile(
                    os.path.join(folder, name), os.path.join(file._place(target), within, name)
                )
    @staticmethod
    def _fail_once():
        mark = os.environ.get("FAIL_ONCE")
        if mark and not os.path.exists(mark):
            open(mark, "w").close()
            raise IOError("storage is away")
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with code, data, a cache, and a bucket."""
    for name in ("code here", "data", "cache", "bucket/data"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "code here" / "train.py").write_text(_TRAIN)
    (tmp_path / "code here" / "modelarts_run.py").write_text(
        modelarts_script(entry="train.py", output_folders=OUTPUT_FOLDERS)
    )
    for folder in ("data", "bucket/data"):
        (tmp_path / folder / "cat 1.txt").write_text("cat")
    return tmp_path


def command(place: Path, *arguments: str, python: str = sys.executable) -> list[str]:
    return [python, str(place / "code here" / "modelarts_run.py"), *arguments]


def environment(place: Path, **more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in ("RANK_ID", "JOB_ID")}
    return {**kept, "MA_LOCAL_CACHE": str(place / "cache"), "PYTHONPATH": "", **more}


def run(place: Path, *arguments: str, python: str = sys.executable, **more: str):
    return subprocess.run(
        command(place, *arguments, python=python),
        cwd=place,
        env=environment(place, **more),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def with_moxing(place: Path) -> dict[str, str]:
    (place / "site").mkdir()
    (place / "site" / "moxing.py").write_text(_MOXING)
    return {"PYTHONPATH": str(place / "site"), "BUCKET": str(place / "bucket")}


def seen(folder: Path) -> dict[str, object]:
    return json.loads((folder / "seen.json").read_text())


def test_unknown_arguments_are_forwarded_and_results_copied_back(place):
    out = place / "out"
    done = run(
        place, f"--data_url={place / 'data'}", f"--train_url={out}", "--init_method", "tcp://a:1"
    )
    assert done.returncode == 0, done.stderr
    assert seen(out) == {"data": ["cat 1.txt"], "init": "tcp://a:1", "epochs": 1}
    assert (out / "npu_profiling" / "summary.csv").read_text() == "op,us\n"


def test_data_and_results_go_through_object_storage(place):
    more = with_moxing(place)
    done = run(place, "--data_url=obs://bucket/data", "--train_url=obs://bucket/out/v1", **more)
    assert done.returncode == 0, done.stderr
    assert seen(place / "bucket/out/v1")["data"] == ["cat 1.txt"]
    assert (place / "bucket/out/v1/npu_profiling/summary.csv").exists()


def test_failed_training_keeps_its_results_and_its_code(place):
    done = run(place, f"--train_url={place / 'out'}", "--epochs=13")
    assert done.returncode == 7
    assert seen(place / "out")["epochs"] == 13


def test_transient_storage_outage_loses_nothing(place):
    more = with_moxing(place)
    done = run(place, "--train_url=obs://bucket/out", FAIL_ONCE=str(place / "mark"), **more)
    assert done.returncode == 0, done.stderr
    assert "storage is away" in done.stdout
    assert (place / "bucket/out/seen.json").exists()


def test_results_are_copied_back_during_training(place):
    process = subprocess.Popen(
        command(place, f"--train_url={place / 'out'}", "--epochs=99", "--ma_every=0.005"),
        env=environment(place),
        stdout=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + 20
        while not (place / "out" / "seen.json").exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 128 + signal.SIGTERM


def test_signal_during_script_start_is_forwarded(place):
    """The signal comes in the last line of Popen, when the script runs and nobody knows it yet."""
    starter = """
import os, runpy, signal, subprocess, sys

def trace(frame, event, argument):
    if frame.f_code is not subprocess.Popen.__init__.__code__:
        return None
    if event == "return":
        sys.settrace(None)
        os.kill(os.getpid(), signal.SIGTERM)
    return trace

sys.argv = sys.argv[1:]
sys.settrace(trace)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
    arguments = command(place, f"--train_url={place / 'out'}", "--epochs=99")
    done = subprocess.run(
        [arguments[0], "-c", starter, *arguments[1:]],
        env=environment(place),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 128 + signal.SIGTERM, done.stderr


def test_one_zip_is_unpacked_and_results_are_packed(place):
    with zipfile.ZipFile(place / "cats.zip", "w") as archive:
        archive.writestr("cats/1.txt", "cat")
        archive.writestr("labels.txt", "1")
    done = run(
        place, f"--data_url={place / 'cats.zip'}", f"--train_url={place / 'out'}", "--ma_zip"
    )
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(place / "out" / "results.zip") as results:
        names = results.namelist()
        (result,) = [name for name in names if name.endswith("seen.json")]
        assert json.loads(results.read(result))["data"] == ["cats", "labels.txt"]
        assert "npu_profiling/summary.csv" in names


@pytest.mark.parametrize("name", ["../out.txt", "/tmp/out.txt", "a/../../out.txt", "..\\out.txt"])
def test_zip_with_paths_outside_is_refused(place, name):
    with zipfile.ZipFile(place / "bad.zip", "w") as archive:
        archive.writestr("good.txt", "1")
        archive.writestr(name, "bad")
    done = run(place, f"--data_url={place / 'bad.zip'}", f"--train_url={place / 'out'}")
    assert done.returncode == 2
    assert "leads outside it" in done.stderr
    assert not list(place.rglob("good.txt"))
    assert not list(place.rglob("out.txt"))
    assert not (place / "out").exists()


def test_broken_zip_leaves_no_files(place):
    with zipfile.ZipFile(place / "bad.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("good.txt", "1" * 1000)
        archive.writestr("broken.txt", bytes(range(256)) * 50)
    content = bytearray((place / "bad.zip").read_bytes())
    begin = content.index(b"broken.txt") + len("broken.txt")
    content[begin : begin + 40] = b"x" * 40
    (place / "bad.zip").write_bytes(content)
    done = run(place, f"--data_url={place / 'bad.zip'}", f"--train_url={place / 'out'}")
    assert done.returncode == 2
    assert "cannot be unpacked" in done.stderr
    assert not list(place.rglob("good.txt"))


def test_link_in_a_zip_is_refused(place):
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(place / "bad.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    done = run(place, f"--data_url={place / 'bad.zip'}")
    assert done.returncode == 2
    assert "is a link" in done.stderr


def test_data_is_placed_where_the_script_looks_and_named_folders_are_copied_back(place):
    code = place / "code here"
    (code / "plain.py").write_text(
        "import os, sys\n"
        "os.makedirs('checkpoint/sub', exist_ok=True)\n"
        "with open('checkpoint/sub/model', 'w') as file:\n"
        "    file.write(','.join(os.listdir('dataset/cat') + sys.argv[1:]))\n"
    )
    done = run(
        place,
        "--ma_script=plain.py",
        f"--data_url={place / 'data'}",
        f"--train_url={place / 'out'}",
        "--ma_data_to=dataset/cat",
        "--ma_results=checkpoint,logs",
        "--phase",
        "train",
    )
    assert done.returncode == 0, done.stderr
    assert (place / "out/checkpoint/sub/model").read_text() == "cat 1.txt,--phase,train"


def test_paths_replace_differently_named_options(place):
    (place / "code here" / "plain.py").write_text(
        "import os, sys\n"
        "with open(os.path.join(sys.argv[2], 'x'), 'w') as file:\n"
        "    file.write(repr(os.listdir(sys.argv[1])))\n"
    )
    done = run(
        place,
        "--ma_script=plain.py",
        f"--data_url={place / 'data'}",
        f"--train_url={place / 'out'}",
        "{data}",
        "{train}",
    )
    assert done.returncode == 0, done.stderr
    assert (place / "out" / "x").read_text() == "['cat 1.txt']"


def test_one_rank_fetches_the_data_and_one_uploads_the_results(place):
    more = {**with_moxing(place), "JOB_ID": "job 7"}
    arguments = ["--data_url=obs://bucket/data", "--train_url=obs://bucket/out"]
    processes = [
        subprocess.Popen(
            command(place, *arguments, f"--epochs={rank}"),
            env=environment(place, RANK_ID=str(rank), **more),
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(3)
    ]
    outputs = [process.communicate(timeout=30)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sum("already exists" in output for output in outputs) == 2
    assert seen(place / "bucket/out")["epochs"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data_url=/nothing/here"], "'/nothing/here' does not exist"),
        (["--data_url=/nothing/here.zip"], "'/nothing/here.zip' does not exist"),
        (["--data_url=obs://bucket/data"], "needs moxing"),
        (["--ma_script=nothing.py"], "nothing.py' does not exist"),
    ],
)
def test_errors_are_reported_before_training(place, arguments, message):
    done = run(place, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_script_runs_on_python_37(place):
    with zipfile.ZipFile(place / "cats.zip", "w") as archive:
        archive.writestr("cats/1.txt", "cat")
    done = run(
        place,
        f"--data_url={place / 'cats.zip'}",
        f"--train_url={place / 'out'}",
        python=tensorflow_python(),
    )
    assert done.returncode == 0, done.stderr
    assert seen(place / "out")["data"] == ["cats"]
