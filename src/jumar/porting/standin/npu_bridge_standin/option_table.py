"""The keys of a `NpuOptimizer` block, as `options.json` has them; jumar's linter reads the same.

`field` is the field of the value from which the adapter reads: a value that was set in another one
reads as False, 0 or the empty string. `default` is what holds without the key; None where there is
none. `allowed` are the values that are not refused. `read_with` are the switches of which one has
to be true for a key to be read.
"""

import json
from pathlib import Path

_STORED = json.loads(Path(__file__).with_name("options.json").read_text(encoding="utf-8"))[
    "options"
]

OPTIONS = {
    key: dict({"default": None}, **option)
    for key, option in _STORED.items()
    if option.get("status") != "not read"
}

# The adapter compares this number with a list, and every other one with its limits.
OPTIONS["enable_exception_dump"]["allowed"] = [0, 1, 2]

NOT_READ = {key: option["unread"] for key, option in _STORED.items() if "unread" in option}
"""What scripts set although no part of the adapter reads it, with the reason."""

MIXED_MODES = OPTIONS["precision_mode"]["mixed"]
MIXED_MODES_V2 = OPTIONS["precision_mode_v2"]["mixed"]
