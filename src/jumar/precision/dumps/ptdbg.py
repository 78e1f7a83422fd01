"""Read ptdbg's dumps of 2023: `.pkl` files with a JSON list per line, which are not unpickled."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from jumar.ground.errors import UserError
from jumar.ground.json_text import parse_json
from jumar.ground.paths import read_text
from jumar.ground.text import counted
from jumar.precision.dumps.dump import Call, Dump, Phase, Role, Statistics, Value

_NAME: Final = re.compile(r"([A-Za-z]+)_(.+)_(\d+)_(forward|backward)_(input|output)(?:\.(.+))?")


def read_ptdbg(path: Path) -> Dump:
    """Read ptdbg's statistics.

    Args:
        path: The `.pkl` file.

    Raises:
        UserError: The file cannot be read, or its lines are not ptdbg's.
    """
    groups: dict[tuple[str, int, Phase], list[Value]] = {}
    num_ignored = 0
    for number, line in enumerate(read_text(path).splitlines(), 1):
        try:
            content = parse_json(line)
            match = _NAME.fullmatch(content[0])
            if match is None or len(content) < 6:
                num_ignored += 1
                continue
            phase: Phase = "forward" if match[4] == "forward" else "backward"
            key = f"{match[1]}.{match[2]}", int(match[3]), phase
            role: Role = "input" if match[5] == "input" else "output"
            groups.setdefault(key, []).append(_value(role, match[6] or "0", content))
        except (ValueError, TypeError, IndexError, KeyError) as error:
            raise UserError(
                f"is truncated, or not ptdbg's: {error}",
                where=f"{path}:{number}",
                todo="Expected: one JSON list per line, with name, dtype, shape and statistics.",
            ) from error
    calls = [
        Call(kind="op", op=op, layer="", number=index, phase=phase, values=tuple(values))
        for (op, index, phase), values in groups.items()
    ]
    notices = [f"{counted(num_ignored, 'line')} without statistics ignored."] if num_ignored else []
    return Dump(where=path, tool="ptdbg", framework="pytorch", calls=calls, notices=notices)


def _value(role: Role, name: str, content: Sequence[Any]) -> Value:
    shape = tuple(int(size) for size in content[4])
    largest, smallest, mean = (
        None if number is None else float(number) for number in content[5][:3]
    )
    statistics = Statistics(count=math.prod(shape), min=smallest, max=largest, mean=mean)
    dtype = str(content[3]).removeprefix("torch.")
    return Value(role=role, name=name, dtype=dtype, shape=shape, statistics=statistics)
