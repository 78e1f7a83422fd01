"""The stand-in `npu_bridge`, with which ported scripts run on a plain CPU TensorFlow 1.15.

The folder of this module is put on the `PYTHONPATH` of a Python 3.7 that has TensorFlow 1.15.
Nothing in it imports jumar, and jumar imports nothing of what lies below it.
"""

from pathlib import Path

RECORD_VARIABLE = "JUMAR_STANDIN_RECORD"
"""Environment variable with the file to which the stand-in appends one JSON object a line."""


def standin_folder() -> Path:
    """The folder that makes `import npu_bridge` find the stand-in."""
    return Path(__file__).resolve().parent
