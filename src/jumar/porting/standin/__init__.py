"""A stand-in for `npu_bridge`, with which ported scripts run on a plain CPU TensorFlow 1.15.

The folder of this module is put on the `PYTHONPATH` of a Python 3.7 that has TensorFlow 1.15.
Nothing in the folder imports jumar, and jumar imports none of its packages. They share only data:
`options.json` and `signatures.json` of `npu_bridge_standin`.
"""

import json
from pathlib import Path
from typing import Any, Literal

RECORD_VARIABLE = "JUMAR_STANDIN_RECORD"
"""Environment variable with the file to which the stand-in appends JSON lines."""


def standin_folder() -> Path:
    """Return the folder from which `import npu_bridge` loads the stand-in."""
    return Path(__file__).resolve().parent


def standin_data(name: Literal["options", "signatures"]) -> dict[str, Any]:
    """Return data on the real package: the adapter's options, or the signatures of its names."""
    path = standin_folder() / "npu_bridge_standin" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))
