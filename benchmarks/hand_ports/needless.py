"""Changes that people, or the converter that they used, made without need."""

import re
from pathlib import Path

from hand_ports.changes import HandChange
from hand_ports.topics import TOPICS

_KERAS_RUNS = re.compile(
    r"\.(?:fit|fit_generator|train_on_batch|compile|predict|predict_generator|evaluate|load_weights)"
    r"\(|Sequential\(|Model\(|load_model\("
)
_SESSION_RUNS = re.compile(
    # `app.run(main)` starts a script, and opens no session.
    r"Session\(|(?<!\bapp)\.run\(|stimator\(|\.managed_session|learning\.train|RunConfig\("
)
_ALIAS = re.compile(r"\bnp\.(?:int|float|bool|object|str)\b")
_SIX = re.compile(r"^\s*from six\.moves import .*\bxrange\b", re.MULTILINE)
_CONSTANT = re.compile(r"([A-Za-z_]\w*) = (?:'[^']*'|\"[^\"]*\"|\d+)")
_OF_PYTHON_2 = next(topic for topic in TOPICS if topic.name == "Python 2")


def why_needless(change: HandChange, topic: str, original: Path) -> str:
    """Why a change has no effect on the NPU, in a few words; empty if it may have one."""
    text = (original / change.path).read_text(errors="replace")
    if topic == "Keras session" and not _KERAS_RUNS.search(text):
        return "a Keras session in a script that runs no Keras model"
    if topic in ("session", "precision mode") and not (
        _SESSION_RUNS.search(text) or _KERAS_RUNS.search(text)
    ):
        return "a session configuration in a script that opens no session"
    opened = [line for line in change.after if "npu_config_proto" in line]
    if topic == "session" and opened and all("requests.Session(" in line for line in opened):
        return "a session of requests, which loads files and takes no configuration"
    if topic == "Python 2" and _names_of_python_2(change) == {"xrange"} and _SIX.search(text):
        return "the xrange of six, which Python 3 has as well"
    divided = [text for text in change.before if " / " in text]
    if topic == "Python 2" and divided and all("float(" in text for text in divided):
        return "a division of floats, which Python 2 does not round either"
    if topic == "newer libraries" and all(_ALIAS.search(text) for text in change.before):
        return "np.int and its like are gone since NumPy 1.24, which no Python 3.7 can have"
    constants = [_CONSTANT.fullmatch(line) for line in change.before]
    if constants and all(
        constant and len(re.findall(rf"\b{constant[1]}\b", text)) == 1 for constant in constants
    ):
        return "a constant that nothing reads"
    return ""


def _names_of_python_2(change: HandChange) -> set[str]:
    """The names of Python 2 that a person removed, and `/` where divisions round down now."""
    words = set(re.findall(_OF_PYTHON_2.removed, change.removed, re.MULTILINE))
    return words | {"/"} if any(" // " in line for line in change.after) else words
