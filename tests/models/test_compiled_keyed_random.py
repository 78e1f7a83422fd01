"""What torch.compile makes of numbers by key, on processors of every kind."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
COMPILER = os.environ.get("CXX", "g++")
PROGRAM = """
import torch
from jumar.models.keyed_random import keyed_uniform, random_position

def numbers(position):
    return keyed_uniform(8, 16, position, torch.device("cpu"))

compiled = torch.compile(numbers, fullgraph=True)
for key in (3, 12345, 2**63 + 5):
    position = random_position(key)
    assert torch.equal(compiled(position), numbers(position)), key
"""


@pytest.mark.slow
@pytest.mark.skipif(" " in sys.prefix, reason="torch.compile needs a path without a space")
@pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"needs a C++ compiler ({COMPILER})")
@pytest.mark.parametrize("capability", ["", "default"])
def test_compiled_and_eager_code_draw_equal_numbers_with_and_without_simd(
    capability: str, tmp_path: Path
) -> None:
    chosen = {"ATEN_CPU_CAPABILITY": capability} if capability else {}
    cache = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **chosen, **cache, "PYTHONPATH": str(CHECKOUT / "src")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
