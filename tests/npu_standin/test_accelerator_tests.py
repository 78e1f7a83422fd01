"""The tests that need a device pass on the stand-in, so that they run where there is one."""

import subprocess
import sys

from tests.npu_standin.conftest import CHECKOUT


def test_device_tests_pass_on_the_stand_in(npu_process: dict[str, str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "accelerator"]
    result = subprocess.run(
        [*command, "tests/accelerator"],
        cwd=CHECKOUT,
        env={**npu_process, "JUMAR_ACCELERATOR": "npu"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-8000:] + result.stderr[-4000:]
    assert " skipped" not in result.stdout.splitlines()[-1]
