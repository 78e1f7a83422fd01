"""Why a run stopped, in one sentence."""

import signal
from pathlib import PurePath

from jumar.ground.text import counted
from jumar.porting.check.record import Record, ScriptError
from jumar.porting.python2.names import MODULES

_PACKAGES = {
    "PIL": "pillow",
    "cv2": "opencv-python-headless",
    "yaml": "pyyaml",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "keras": "keras==2.2.5",
    "scipy": "scipy==1.1.0",
}
"""Modules whose package has another name, or whose newest release is too new for Python 3.7."""

_DETAIL_LINES = 12
_STACK_LINES = 30
_NOISE = ("WARNING:tensorflow:", "Instructions for updating:")


def reason_of(record: Record, *, python: str, timeout: str) -> str:
    """Why the script stopped, however it ended."""
    ended = record.ended
    if ended.how == "timeout":
        return f"still running after {timeout}"
    if ended.how == "flood":
        return f"stopped by jumar: it had written {ended.num_bytes / 2**20:.0f} MiB of output"
    if record.error is not None:
        return _error_text(record.error, python)
    if ended.how == "signal":
        return f"the process was killed by {_signal_name(ended.code)}"
    if record.exit_code:
        return f"the script exited with sys.exit({record.exit_code})"
    if record.finished == "script":
        done = len(record.losses)
        return f"the script ended after {counted(done, 'training step')}"
    return f"the process exited with code {ended.code} and no error"


def details_of(record: Record) -> tuple[str, ...]:
    """The last lines of output; more where it hung, because they end in its stack."""
    count = _STACK_LINES if record.ended.how == "timeout" else _DETAIL_LINES
    lines = [line[:300] for line in record.ended.tail if line.strip()]
    return tuple([line for line in lines if not line.startswith(_NOISE)][-count:])


def _error_text(error: ScriptError, python: str) -> str:
    first = error.message.strip().splitlines()[0] if error.message.strip() else ""
    text = f"{error.type}: {first}"[:400]
    in_tree = [frame for frame in error.frames if not PurePath(frame[0]).is_absolute()]
    near = in_tree or list(error.frames)
    if near:
        path, line = near[-1]
        text += f" ({path}:{line})"
    if error.type == "ModuleNotFoundError" and error.module:
        name = error.module.partition(".")[0]
        if name in MODULES:
            text += f"; a module of Python 2, in Python 3 {MODULES[name]}"
        else:
            if name not in _PACKAGES:
                text += "; if it is a folder of the project: -- -m PACKAGE.MODULE, not as a script"
            text += f"; if it is a package: {python} -m pip install {_PACKAGES.get(name, name)}"
    elif error.type == "ImportError" and "relative import" in first:
        text += "; run it as a module: -- -m PACKAGE.MODULE, not as a script"
    return text


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
