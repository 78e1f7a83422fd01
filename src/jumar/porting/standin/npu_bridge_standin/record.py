"""Records the actions of a script: lines on stderr, and a file of JSON lines."""

import json
import os
import sys
from pathlib import Path

_WARNED = set()


def record(kind, **facts):
    """Append one event to the file that JUMAR_STANDIN_RECORD names.

    A script must not fail because it is watched, so errors in recording are ignored.
    """
    path = os.environ.get("JUMAR_STANDIN_RECORD")
    if not path:
        return
    try:
        line = json.dumps({"kind": kind, **facts}, default=str, sort_keys=True)
        # One write per short line, so that ranks sharing the file do not split each other's lines.
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(line + "\n")
    except (OSError, TypeError, ValueError):
        pass


def warn_once(text):
    """Write a line to stderr, once per process."""
    if text in _WARNED:
        return
    _WARNED.add(text)
    try:
        sys.stderr.write("npu_bridge stand-in: {}\n".format(text))
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        pass


def ignored_option(key, value, text):
    """Record and print an option that the real adapter silently ignores."""
    warn_once(text)
    record("ignored option", key=key, value=value, text=text)


def refused_option(key, value, text):
    """Record an option that stops the real adapter.

    Raises:
        ValueError: Always.
    """
    record("refused option", key=key, value=value, text=text)
    raise ValueError("npu_bridge stand-in: " + text)
