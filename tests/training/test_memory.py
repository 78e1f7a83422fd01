import os
import subprocess
import sys

import pytest

PAGE_FAULTS = """
import resource, sys
import torch
from jumar.training.memory import keep_freed_memory
if sys.argv[1] == "keep":
    print(keep_freed_memory())
torch.set_num_threads(1)
def step():
    return sum(float(torch.full((1 << 20,), 1.0).add(1).mul(2)[-1]) for _ in range(20))
step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def run(mode: str, **environment: str) -> list[str]:
    of_the_user = ("MALLOC_", "GLIBC_TUNABLES")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(of_the_user)}
    # Small pages, so that the faults of 4 MB are counted one by one.
    done = subprocess.run(
        [sys.executable, "-c", PAGE_FAULTS, mode],
        env=clean | {"THP_MEM_ALLOC_ENABLE": "0"} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_step_reuses_the_memory_of_the_previous_one() -> None:
    kept, faults = run("keep")
    if kept != "True":
        pytest.skip("needs glibc")
    assert int(faults) < 100


def test_users_malloc_settings_are_respected() -> None:
    kept, _ = run("keep", MALLOC_TRIM_THRESHOLD_="131072")
    assert kept == "False"
