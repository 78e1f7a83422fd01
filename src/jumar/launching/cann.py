"""The environment that each CANN release needs, and the versions that match.

The facts are in `cann.json`, each line with its reason and its source, and in `versions.json`.
"""

import json
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jumar.ground.errors import UserError, unknown_name
from jumar.launching.templates import comment, script_text


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of shell that a CANN release needs."""

    line: str
    reason: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Release:
    """Matching versions; `adapter` is the version of torch's package for NPUs."""

    cann: str
    tag: str
    torch: str
    adapter: str


def release_names() -> list[str]:
    """Return the names of CANN releases whose environment is known."""
    return [name for group in facts("cann")["releases"] for name in group["names"]]


def release_lines(release: str) -> list[Line]:
    """Return the shell lines that set up the environment of a CANN release.

    Args:
        release: The release, such as `20.2`, `V100R020C10`, `8.3.RC1` or `9.1.0`.

    Raises:
        UserError: The environment of the release is not known.
    """
    numbers = re.match(r"\d+\.\d+", release)
    name = numbers[0] if numbers else release.upper()
    for group in facts("cann")["releases"]:
        if name in group["names"]:
            return [Line(**line) for line in group["lines"]]
    raise unknown_name("CANN release", release, release_names(), where="--cann")


def every_line() -> list[Line]:
    """Return the shell lines that training on several NPUs needs with every release."""
    return [Line(**line) for line in facts("cann")["every"]]


def environment_text(release: str = "") -> str:
    """Return the part of a shell script that sets up CANN's environment.

    Args:
        release: The release; empty to search CANN's install folders for a `set_env.sh`.
    """
    common = _commented(every_line())
    if not release:
        return f"{script_text('cann.sh')}\n{common}\n"
    setup = _commented(release_lines(release))
    return (
        f"# CANN {release}. Its scripts read variables that may be unset.\n"
        f"set +eu\n# shellcheck disable=SC1090,SC1091\n{{\n{setup}\n}}\nset -eu\n{common}\n"
    )


def _commented(lines: list[Line]) -> str:
    return "\n".join(f"{comment(line.reason)}\n{line.line}" for line in lines)


def fitting(release: str = "") -> Release:
    """Return the torch and adapter that match a CANN release, and the tag of its image.

    Args:
        release: The release, such as `9.0.0` or `8.5`; empty for the default.

    Raises:
        UserError: No image of the release is known with a torch that jumar supports.
    """
    data = facts("versions")
    version = (release or data["default"]).upper()
    for row in data["releases"]:
        if row["cann"] == version or row["cann"].startswith(f"{version}."):
            return Release(**row)
    raise UserError(
        f"no known image of CANN {release} has an adapter for torch 2.6 or newer",
        where="--cann",
        todo=f"Known: {', '.join(row['cann'] for row in data['releases'])}. For another release, "
        "edit the Dockerfile.",
    )


def facts(name: str) -> dict[str, Any]:
    """Return the content of a data file of this package: `aoe`, `cann`, `versions` or `hccl`."""
    return json.loads((files("jumar.launching") / f"{name}.json").read_text(encoding="utf-8"))
