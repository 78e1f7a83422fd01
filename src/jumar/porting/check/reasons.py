"""Describes in one sentence why a run stopped."""

import signal
from pathlib import PurePath

from jumar.ground.text import Text
from jumar.porting.check.record import Record, ScriptError
from jumar.porting.check.wording import as_is, joined, number_of
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
"""Packages of modules whose name differs, or whose newest release needs a newer Python."""

_TIMEOUT = Text(en="still running after {timeout}", zh="{timeout} 后仍在运行")
_FLOOD = Text(
    en="stopped by jumar: it had written {size} MiB of output",
    zh="被 jumar 停止：已输出 {size} MiB",
)
_IN_CHILD = Text(
    en="in a process that the script started: {error}", zh="脚本启动的进程报错：{error}"
)
_SIGNAL = Text(en="the process was killed by {signal}", zh="进程被 {signal} 杀死")
_SIGNAL_NUMBER = Text(en="signal {number}", zh="信号 {number}")
_EXIT = Text(en="the script exited with sys.exit({code})", zh="脚本以 sys.exit({code}) 退出")
_SCRIPT_ENDED = Text(en="the script ended after {steps}", zh="脚本在 {steps}后结束")
_CODE = Text(
    en="the process exited with code {code} without an error",
    zh="进程以退出码 {code} 结束，没有报错",
)
_PYTHON2 = Text(
    en="a Python 2 module, named {name} in Python 3",
    zh="这是 Python 2 的模块，Python 3 中为 {name}",
)
_PROJECT_FOLDER = Text(
    en="if it is a folder of the project, run the script as a module: -- -m PACKAGE.MODULE",
    zh="若它是工程中的文件夹：请以 -- -m PACKAGE.MODULE 运行，而不是作为脚本",
)
_PACKAGE = Text(
    en="if it is a package, install it: {python} -m pip install {name}",
    zh="若它是软件包：{python} -m pip install {name}",
)
_AS_MODULE = Text(
    en="run the script as a module: -- -m PACKAGE.MODULE",
    zh="请作为模块运行：-- -m PACKAGE.MODULE，而不是作为脚本",
)

_DETAIL_LINES = 12
_STACK_LINES = 30
_NOISE = ("WARNING:tensorflow:", "Instructions for updating:")


def reason_of(record: Record, *, python: str, timeout: str) -> Text:
    """Return the reason why the script stopped."""
    ended = record.ended
    if ended.how == "timeout":
        return _TIMEOUT.filled(timeout=timeout)
    if ended.how == "flood":
        return _FLOOD.filled(size=f"{ended.num_bytes / 2**20:.0f}")
    if record.error is not None:
        text = _error_text(record.error, python)
        return _IN_CHILD.filled(error=text) if record.error.in_child else text
    if ended.how == "signal":
        return _SIGNAL.filled(signal=_signal_name(ended.code))
    if record.exit_code:
        return _EXIT.filled(code=record.exit_code)
    if record.finished == "script":
        num_steps = len(record.losses)
        return _SCRIPT_ENDED.filled(steps=number_of(num_steps, "training step", "个训练步"))
    return _CODE.filled(code=ended.code)


def details_of(record: Record) -> tuple[str, ...]:
    """Return the last lines of output; more after a timeout, since they end with the stack."""
    count = _STACK_LINES if record.ended.how == "timeout" else _DETAIL_LINES
    lines = [line[:300] for line in record.ended.tail if line.strip()]
    return tuple([line for line in lines if not line.startswith(_NOISE)][-count:])


def _error_text(error: ScriptError, python: str) -> Text:
    first_line = error.message.strip().splitlines()[0] if error.message.strip() else ""
    text = f"{error.type}: {first_line}"[:400]
    tree_frames = [frame for frame in error.frames if not PurePath(frame[0]).is_absolute()]
    frames = tree_frames or list(error.frames)
    if frames:
        path, line = frames[-1]
        text += f" ({path}:{line})"
    if error.type == "ModuleNotFoundError" and error.module:
        name = error.module.partition(".")[0]
        if name in MODULES:
            return joined(as_is(text), _PYTHON2.filled(name=MODULES[name]))
        package = _PACKAGE.filled(python=python, name=_PACKAGES.get(name, name))
        if name in _PACKAGES:
            return joined(as_is(text), package)
        return joined(as_is(text), _PROJECT_FOLDER, package)
    if error.type == "ImportError" and "relative import" in first_line:
        return joined(as_is(text), _AS_MODULE)
    return as_is(text)


def _signal_name(number: int) -> Text:
    try:
        return as_is(signal.Signals(number).name)
    except ValueError:
        return _SIGNAL_NUMBER.filled(number=number)
