"""Programs for TensorFlow 1.15 with the stand-in."""

import json
from pathlib import Path
from typing import Any

from jumar.porting.standin import standin_folder
from tests.tensorflow115 import run_tensorflow

_BEGIN = """
import contextlib, io, os, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
os.environ["JUMAR_STANDIN_RECORD"] = sys.argv[2]
for name in ("RANK_SIZE", "RANK_ID", "CM_WORKER_SIZE", "DEVICE_ID", "JOB_ID", "TF_CONFIG"):
    os.environ.pop(name, None)
folder = sys.argv[3]
ANSWERS = {}

def error(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except Exception as raised:
        return "{}: {}".format(type(raised).__name__, raised)
    return ""

@contextlib.contextmanager
def said(name):
    stream, sys.stderr = sys.stderr, io.StringIO()
    try:
        yield
    finally:
        ANSWERS[name] = sys.stderr.getvalue()
        sys.stderr = stream
"""


def run_beside_standin(program: str, folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run a program that fills `ANSWERS`.

    Args:
        program: The program; `tf`, `np`, `os`, `folder`, `error(function, ...)` (the error's type
            and text) and `said(name)` (which keeps what is written to stderr) are there.
        folder: An empty folder for it.

    Returns:
        `ANSWERS`, and the events that the stand-in recorded.
    """
    record = folder / "record.jsonl"
    scratch = folder / "scratch"
    scratch.mkdir()
    answers = run_tensorflow(
        _BEGIN + program + "\nanswer(ANSWERS)\n", str(standin_folder()), str(record), str(scratch)
    )
    lines = record.read_text(encoding="utf-8").splitlines()
    return answers, [json.loads(line) for line in lines]
