"""Changes that people, or the converter that they used, made without need."""

import re
from pathlib import Path

from hand_ports.changes import HandChange

_KERAS_RUNS = re.compile(
    r"\.(?:fit|fit_generator|train_on_batch|compile|predict|predict_generator|evaluate|load_weights)"
    r"\(|Sequential\(|Model\(|load_model\("
)
_SESSION_RUNS = re.compile(
    # `app.run(main)` starts a script, and opens no session.
    r"Session\(|(?<!\bapp)\.run\(|stimator\(|\.managed_session|learning\.train|RunConfig\("
)
_ALIAS = re.compile(r"\bnp\.(?:int|float|bool|object|str)\b")
_CONSTANT = re.compile(r"([A-Za-z_]\w*) = (?:'[^']*'|\"[^\"]*\"|\d+)")


def why_needless(change: HandChange, topic: str, original: Path) -> str:
    """Why a change has no effect on the NPU, in a few words; empty if it may have one."""
    text = (original / change.path).read_text(errors="replace")
    if topic == "Keras session" and not _KERAS_RUNS.search(text):
        return "a Keras session in a script that runs no Keras model"
    if topic in ("session", "precision mode") and not (
        _SESSION_RUNS.search(text) or _KERAS_RUNS.search(text)
    ):
        return "a session configuration in a script that opens no session"
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
