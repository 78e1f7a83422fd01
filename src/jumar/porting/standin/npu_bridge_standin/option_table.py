"""The keys of an `NpuOptimizer` block, from `options.json`, which jumar's linter reads as well.

`field` is the field that the adapter reads: a value in another field is read as False, 0 or the
empty string. `default` is the value without the key, None if there is none. `allowed` are the
accepted values. `read_with` are switches; the key is read only if one of them is true.
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

# The adapter compares this number with a list, and all others with limits.
OPTIONS["enable_exception_dump"]["allowed"] = [0, 1, 2]

NOT_READ = {key: option["unread"] for key, option in _STORED.items() if "unread" in option}
"""Keys that scripts set but the adapter does not read, with the reason."""

MIXED_MODES = OPTIONS["precision_mode"]["mixed"]
MIXED_MODES_V2 = OPTIONS["precision_mode_v2"]["mixed"]
