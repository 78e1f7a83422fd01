"""Imported by Python on start-up, to watch a process that the checked script starts.

Only such processes have its folder on their `PYTHONPATH`. It has to run in any Python, since a
script may start a different version.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _watch():
    path = os.environ.get("JUMAR_CHECK_CONFIG")
    if not path:
        return
    if sys.version_info[:2] != (3, 7):
        _record_other_python(path)
        return
    check = os.path.dirname(os.path.dirname(_HERE))
    sys.path.insert(0, check)
    try:
        from runner37 import children
    finally:
        sys.path.remove(check)
    children.begin(path)


def _record_other_python(path):
    import json

    with open(path) as file:
        events = json.load(file)["events"]
    version = "Python %d.%d" % sys.version_info[:2]
    line = {"event": "unwatched", "process": os.environ.get("JUMAR_CHECK_PROCESS", "")}
    with open(events, "a") as file:
        file.write(json.dumps(dict(line, what=version)) + "\n")


def _import_hidden_module():
    """Import the module of the same name that this one hides."""
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != _HERE]
    this_module = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError:
        if this_module is not None:
            sys.modules["sitecustomize"] = this_module


_watch()
_import_hidden_module()
