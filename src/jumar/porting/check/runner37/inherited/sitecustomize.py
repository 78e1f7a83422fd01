"""Python imports this on start-up: a process started by the checked script is watched as well.

Its folder is on the `PYTHONPATH` of such processes only. It has to run in any Python, since a
script may start a different one than its own.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _watch():
    path = os.environ.get("JUMAR_CHECK_CONFIG")
    if not path:
        return
    if sys.version_info[:2] != (3, 7):
        _note_other_python(path)
        return
    check = os.path.dirname(os.path.dirname(_HERE))
    sys.path.insert(0, check)
    try:
        from runner37 import children
    finally:
        sys.path.remove(check)
    children.begin(path)


def _note_other_python(path):
    import json

    with open(path) as file:
        events = json.load(file)["events"]
    version = "Python %d.%d" % sys.version_info[:2]
    line = {"event": "unwatched", "process": os.environ.get("JUMAR_CHECK_PROCESS", "")}
    with open(events, "a") as file:
        file.write(json.dumps(dict(line, what=version)) + "\n")


def _run_the_next_one():
    """The module of this name hidden by this one."""
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != _HERE]
    this_module = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError:
        if this_module is not None:
            sys.modules["sitecustomize"] = this_module


_watch()
_run_the_next_one()
