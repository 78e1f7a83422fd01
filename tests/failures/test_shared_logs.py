"""The logs with resolved causes in shared data: first cause, and the rank to blame."""

from pathlib import Path

import pytest

from tests.failures.explaining import explain, named, to_blame

CASES: dict[str, tuple[str, tuple[int, ...]]] = {
    "cann-python-mismatch-tbe-common-missing": ("tbe-module-missing", ()),
    "cuda-assert-label-out-of-range": ("cuda-index-assert", ()),
    "cuda-oom-rank3-model-to-gpu": ("cuda-out-of-memory", ()),
    "dataloader-bus-error-shm": ("dataloader-bus-error", ()),
    "hccl-ei0002-507048-card-exited": ("hccl-notify-timeout", ()),
    "hccl-ej0001-llamafactory-rank3": ("hccl-device-occupied", ()),
    "hccl-notify-timeout-allreduce-index-behind": ("hccl-notify-timeout", (1,)),
    "hccl-sdma-error-on-peer-aicpu-notify": ("hccl-sdma-error", ()),
    "hccl-socket-timeout-p2p-chain": ("hccl-socket-timeout", (9,)),
    "ms-207001-device-memory-taken-by-other-process": ("npu-memory-taken", ()),
    "ms-ei0004-ranktable-duplicate-device": ("hccl-rank-table-invalid", ()),
    "ms-ei0006-socket-timeout-one-rank": ("hccl-socket-timeout", ()),
    "ms-ez9999-aicore-add-failed": ("npu-kernel-failed", ()),
    "ms-getnext-dataset-ended-e39999": ("npu-getnext-ended", ()),
    "ms-root-rank-gone-unique-id-timeout": ("ms-root-rank-missing", (0,)),
    "nccl-error-after-training-had-finished": ("nccl-system-error", ()),
    "nccl-system-error-ibv-reg-mr": ("nccl-infiniband", ()),
    "nccl-system-error-node-refuses-connection": ("nccl-connection-refused", ()),
    "nccl-timeout-ranks-0-and-4-never-enqueued": ("nccl-watchdog-timeout", (0, 4)),
    "npu-107002-after-el0005-device-busy": ("npu-device-busy", ()),
    "npu-161002-aclnncat-uint64": ("aclnn-dtype", ()),
    "npu-507015-vec-illegal-config-rank9": ("npu-illegal-vector-configuration", ()),
    "npu-ez3002-transdata-310p": ("ge-operator-unsupported", ()),
    "npu-non-contiguous-tensor-allreduce": ("hccl-tensor-not-contiguous", ()),
    "torchrun-config-file-missing-all-ranks": ("file-missing", ()),
    "torchrun-port-29500-in-use": ("port-in-use", ()),
}
"""All but `loss-spike-then-loss-gone-104b`, whose lines hold numbers and no error."""


@pytest.mark.parametrize("name", CASES)
def test_first_cause_and_the_rank_to_blame_are_named(name: str, shared: Path) -> None:
    explanation = explain(shared / "data" / "logs" / name)
    fault, ranks = CASES[name]
    assert named(explanation)[0] == fault
    assert to_blame(explanation) == ranks
    assert len(explanation.candidates) <= 3


def test_card_known_only_by_its_heartbeat_is_named_by_node(shared: Path) -> None:
    explanation = explain(shared / "data" / "logs" / "hccl-ei0002-507048-card-exited")
    culprit = explanation.candidates[0].culprit
    assert culprit is not None
    assert culprit.where == "10.0.0.1, device 1"


def test_rank_that_failed_is_named_in_the_interleaved_log(shared: Path) -> None:
    explanation = explain(shared / "data" / "logs" / "cuda-oom-rank3-model-to-gpu")
    first = explanation.candidates[0].first
    assert first.rank == 3
    assert first.frame == "/workspace/code/samples/deepspeed/llama-3-8b.py:129"
    assert {each.fault.id for each in explanation.collateral} == {"child-failed", "process-ended"}
