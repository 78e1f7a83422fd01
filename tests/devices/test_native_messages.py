"""Names read out of what C++ prints, while it is printed."""

import os
import subprocess
import sys

import pytest

from jumar.devices.native_messages import names_in_messages
from jumar.devices.npu import Npu

# As torch_npu printed them: MinerU, issues 1695 and 1941; vllm-omni, pull request 755.
PRINTED = """\
[W compiler_depend.ts:51] Warning: CAUTION: The operator 'torchvision::nms' is not currently \
supported on the NPU backend and will fall back to run on the CPU. This may have performance \
implications. (function npu_cpu_fallback)
[rank0]:[W107 21:14:04.201960667 VariableFallbackKernel.cpp:250] Warning: CAUTION: The operator \
'aten::_scaled_dot_product_efficient_attention' is not currently supported on the NPU backend and \
will fall back to run on the CPU. This may have performance implications. (function \
npu_cpu_fallback)
[W compiler_depend.ts:51] Warning: CAUTION: The operator 'torchvision::nms' is not currently \
supported on the NPU backend and will fall back to run on the CPU. (function npu_cpu_fallback)
something else
"""


def test_ops_without_a_kernel_are_named_once_and_other_output_appears(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with names_in_messages(Npu.fallback_message) as names:
        os.write(2, PRINTED.encode())
        sys.stderr.write("and Python\n")
    assert names == ["torchvision::nms", "aten::_scaled_dot_product_efficient_attention"]
    os.write(2, b"afterwards\n")
    printed = capfd.readouterr().err
    assert "something else\n" in printed
    assert printed.endswith("afterwards\n")
    assert names == ["torchvision::nms", "aten::_scaled_dot_product_efficient_attention"]


def test_large_output_does_not_block(capfd: pytest.CaptureFixture[str]) -> None:
    with names_in_messages("name=([a-z]+)") as names:
        for _ in range(100):
            os.write(2, b"x" * 50_000 + b" name=abc\n")
    assert names == ["abc"]
    assert len(capfd.readouterr().err) == 100 * 50_010


def test_device_without_native_messages_is_left_alone(capfd: pytest.CaptureFixture[str]) -> None:
    with names_in_messages(None) as names:
        os.write(2, PRINTED.encode())
    assert names == []
    assert capfd.readouterr().err == PRINTED


def test_output_before_an_abort_appears() -> None:
    program = """
import os, time
from jumar.devices.native_messages import names_in_messages
with names_in_messages("x"):
    os.write(2, b"the last words")
    time.sleep(0.5)
    os.abort()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=60, check=False
    )
    assert b"the last words" in done.stderr
    assert done.returncode < 0
