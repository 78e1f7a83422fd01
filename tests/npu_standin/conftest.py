"""The environment in which a started process has the stand-in NPU."""

import os
from pathlib import Path

import pytest

from tests.npu_standin.build import CannotBuildError, built_library

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def npu_process() -> dict[str, str]:
    """Environment variables for a process that may install the stand-in."""
    try:
        built_library()
    except CannotBuildError as error:
        pytest.skip(str(error))
    paths = [str(CHECKOUT), str(CHECKOUT / "src"), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "NPU_STANDIN_INSIDE": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
