"""Which of several faults is named first."""

from pathlib import Path

import pytest

from tests.failures.explaining import explain_text, named

RAISED = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"


@pytest.mark.parametrize(
    "warning",
    [
        "train.py:3: UserWarning: No module named 'apex', falling back\n",
        "2021-08-17 16:49:31 - mmcls - WARNING - No module named 'apex', falling back\n",
        "[rank0]:[W810 03:04:11.061727749 a.cpp:683] No module named 'apex', falling back\n",
        "W0810 03:04:11.061 12 torch/x.py:1] No module named 'apex', falling back\n",
        "[W socket.cpp:601] No module named 'apex', falling back\n",
        "2020-01-01 01:01:01.000001: W tensorflow/x.cc:1] No module named 'apex'\n",
    ],
)
def test_warnings_rank_after_raised_errors(tmp_path: Path, warning: str) -> None:
    explanation = explain_text(tmp_path, log=warning + RAISED)
    assert named(explanation) == ["cuda-out-of-memory", "module-missing"]


def test_earlier_of_two_raised_errors_is_first(tmp_path: Path) -> None:
    explanation = explain_text(tmp_path, log="ImportError: No module named 'apex'\n" + RAISED)
    assert named(explanation) == ["module-missing", "cuda-out-of-memory"]


def test_nccl_warnings_count_as_errors(tmp_path: Path) -> None:
    line = (
        "n1:12:12 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left\n"
    )
    assert named(explain_text(tmp_path, log=line + RAISED))[0] == "nccl-shared-memory"


def test_single_warning_is_still_named(tmp_path: Path) -> None:
    line = "train.py:3: UserWarning: No module named 'apex', falling back\n"
    assert named(explain_text(tmp_path, log=line)) == ["module-missing"]
