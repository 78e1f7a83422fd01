"""Between log lines the host does not wait for the device; counted where there is one."""

import subprocess
import sys

from tests.npu_standin.conftest import CHECKOUT


def test_nothing_is_read_from_the_device_between_two_log_lines(
    npu_process: dict[str, str],
) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    result = subprocess.run(
        [*command, "tests/npu_standin/inside/test_read_backs.py"],
        cwd=CHECKOUT,
        env=npu_process,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-8000:] + result.stderr[-4000:]
