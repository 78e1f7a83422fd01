"""A Python with TensorFlow 1.15, for what only TensorFlow itself can say.

TensorFlow 1.15 needs Python 3.7, so it lives in an environment of its own:

    python3.7 -m venv ~/tf115
    ~/tf115/bin/pip install tensorflow==1.15.0 protobuf==3.20.3 numpy==1.18.5 h5py==2.10.0
    export JUMAR_TF115_PYTHON=~/tf115/bin/python
"""

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "JUMAR_TF115_PYTHON"
_REASON = f"needs a Python with TensorFlow 1.15, whose path is in {VARIABLE}"


@cache
def tensorflow_python() -> str:
    """The path of that Python; skips the test where there is none."""
    named = os.environ.get(VARIABLE, "")
    if not named:
        pytest.skip(_REASON)
    if not Path(named).is_file():
        pytest.fail(f"{VARIABLE} names '{named}', which does not exist")
    return named


def run_tensorflow(program: str, *arguments: str, timeout_s: float = 120) -> Any:
    """Run a program in TensorFlow 1.15.

    Args:
        program: The program's text; `tf`, `np`, `json`, `sys` are imported. It calls
            `answer(value)` once.
        arguments: What it finds in `sys.argv[1:]`.
        timeout_s: When it is ended.

    Returns:
        What it gave to `answer`, through JSON.
    """
    python = tensorflow_python()
    text = _BEGIN + program
    environment = {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONWARNINGS": "ignore",
    }
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [python, "-c", text, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.rsplit(_MARK, 1)[1])


_MARK = "ANSWER:"
_BEGIN = f"""
import json, sys
import numpy as np
import tensorflow.compat.v1 as tf
tf.logging.set_verbosity(tf.logging.ERROR)
def answer(value):
    print({_MARK!r} + json.dumps(value))
"""
