"""The stand-in NPU in a process of its own: what is in `inside/` passes there."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.npu_standin.conftest import CHECKOUT


@pytest.mark.parametrize("name", ["test_devices", "test_refusals", "test_training"])
def test_tests_inside_the_stand_in_pass(npu_process: dict[str, str], name: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    result = subprocess.run(
        [*command, f"tests/npu_standin/inside/{name}.py"],
        cwd=CHECKOUT,
        env=npu_process,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-8000:] + result.stderr[-4000:]


def test_two_ranks_average_their_gradients_over_hccl(
    npu_process: dict[str, str], tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    result = subprocess.run(
        [*command, "-m", "tests.npu_standin.inside.two_ranks", str(tmp_path)],
        cwd=CHECKOUT,
        env=npu_process,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    message = sorted(path.read_text() for path in tmp_path.iterdir())
    assert message == ["npu:0 of 2, equal gradients", "npu:1 of 2, equal gradients"]
