"""The stand-in NPU in a process of its own: what is in `inside/` passes there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.npu_standin.build import CannotBuildError, built_library

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def inside() -> dict[str, str]:
    """The environment of a process that may have the stand-in."""
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


@pytest.mark.parametrize("name", ["test_device", "test_refusals", "test_training"])
def test_the_stand_in_carries(inside: dict[str, str], name: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    result = subprocess.run(
        [*command, f"tests/npu_standin/inside/{name}.py"],
        cwd=CHECKOUT,
        env=inside,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-8000:] + result.stderr[-4000:]


def test_two_ranks_average_their_gradients_over_hccl(
    inside: dict[str, str], tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--master-port", "0", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    result = subprocess.run(
        [*command, "-m", "tests.npu_standin.inside.two_ranks", str(tmp_path)],
        cwd=CHECKOUT,
        env=inside,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    said = sorted(path.read_text() for path in tmp_path.iterdir())
    assert said == ["npu:0 of 2, equal gradients", "npu:1 of 2, equal gradients"]
