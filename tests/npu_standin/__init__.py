"""A stand-in for an Ascend NPU: tensors of device type `npu` in host memory, and a `torch_npu`.

`install()` makes `import torch_npu` work in this process and in the ones it starts, as it does
on a machine with CANN. What it cannot carry is listed in docs/devices.md.
"""

import os
import sys
from pathlib import Path

import torch

from tests.npu_standin.build import CannotBuildError, built_library

__all__ = ["CannotBuildError", "install"]

SITE = Path(__file__).parent / "site"


def install() -> None:
    """Put the stand-in `torch_npu` on the import path; whoever wants the device imports it.

    Raises:
        CannotBuildError: There is no C++ compiler, or it cannot compile against this torch.
    """
    library = built_library()
    os.environ["NPU_STANDIN_LIBRARY"] = str(library)
    added = [str(SITE), str(_metadata(library.parent))]
    sys.path[:0] = [path for path in added if path not in sys.path]
    inherited = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*added, *inherited]))


def _metadata(folder: Path) -> Path:
    """What an installer leaves: the version, which has to fit the torch of this machine."""
    version = torch.__version__.partition("+")[0]
    site = folder / f"metadata-{version}"
    info = site / f"torch_npu-{version}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch_npu\nVersion: {version}\n")
    return site
