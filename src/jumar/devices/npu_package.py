"""What can be told about NPUs and torch_npu without importing torch."""

import importlib.metadata
import re
from pathlib import Path

from jumar.ground.errors import UserError

NPU_PACKAGE = "torch_npu"
CANN_VARIABLE = "ASCEND_HOME_PATH"
"""Set by CANN's set_env.sh; if it is unset, CANN's libraries cannot be found either."""

DEVICE_FILES = Path("/dev")


def npu_nodes() -> list[str]:
    """The device files of the NPUs visible to this machine or container, such as /dev/davinci0."""
    return sorted(str(path) for path in DEVICE_FILES.glob("davinci[0-9]*"))


def npu_package_version() -> str | None:
    """The version of the installed torch_npu, found without importing it."""
    try:
        return importlib.metadata.version(NPU_PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return None


def npu_pairing_fault(torch_version: str, npu_version: str) -> UserError | None:
    """The error for an incompatible pair of torch and torch_npu; None if it is compatible.

    torch_npu X.Y.Z is built against the C++ interface of torch X.Y and works with no other.
    """
    torch_release, npu_release = (
        re.match(r"(\d+)\.(\d+)", text) for text in (torch_version, npu_version)
    )
    if torch_release and npu_release and torch_release.groups() == npu_release.groups():
        return None
    return UserError(
        f"torch_npu {npu_version} is not compatible with torch {torch_version}",
        where="--device",
        todo="Install the same X.Y of both: torch_npu X.Y.Z works with torch X.Y only.",
    )
