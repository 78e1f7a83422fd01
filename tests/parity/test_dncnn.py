"""The published DnCNN on Set12, through our noise, clipping and PSNR.

Neither its weights nor its scores were made here, so a slip in any of the three would show.
`benchmarks/dncnn_set12.py DATA` scores all twelve images, which takes a minute.
"""

import runpy
from pathlib import Path
from typing import Any

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "dncnn_set12.py"


@pytest.fixture(scope="module")
def benchmark() -> dict[str, Any]:
    return runpy.run_path(str(BENCHMARK))


@pytest.fixture(scope="module")
def task(benchmark: dict[str, Any], shared: Path) -> Any:
    return benchmark["set12_task"](shared / "data")


@pytest.mark.parametrize("index", [0, 6])
def test_psnr_matches_the_published_weights(
    benchmark: dict[str, Any], task: Any, index: int
) -> None:
    # The seventh needs the noise to have gone through the six before it.
    assert round(benchmark["score"](task, index), 2) == benchmark["MEASURED"][index]
