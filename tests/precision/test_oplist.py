"""The op lists: nothing of torch is left out, and they mean the same on every device."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from jumar.precision.autocast_lists import install
from jumar.precision.modes import MODES, find_mode
from jumar.precision.oplist import (
    NO_LOW_KERNEL,
    Treatment,
    default_list,
    default_lists,
    listed_ops,
    native_treatment,
    op_table,
    treatments,
)
from tests.precision.fake_devices import result_dtypes
from tests.precision.op_calls import CALLS

ROOT = Path(__file__).resolve().parents[2]
FORMS = ("mixed", "cube", "cube_fp32_out", "all")


@pytest.mark.parametrize("key", ["AutocastCPU", "AutocastCUDA"])
def test_every_op_that_torch_casts_by_itself_is_known(key: str) -> None:
    registered = torch._C._dispatch_get_registrations_for_dispatch_key(key)
    names = {name.removeprefix("aten::") for name in registered if name.startswith("aten::")}
    # A complex view of a cast copy would be no view; torch's own kernel stays there.
    assert names - {"view_as_complex", "_cudnn_rnn"} <= set(listed_ops())


@pytest.mark.parametrize("device_type", ["cpu", "cuda"])
def test_every_op_that_torch_casts_has_a_treatment(device_type: str) -> None:
    unknown = [op for op in listed_ops() if native_treatment(device_type, op) is None]
    assert unknown == ([] if device_type == "cpu" else ["binary_cross_entropy"])


@pytest.mark.parametrize("device_type", ["cpu", "cuda"])
def test_torch_treats_ops_as_recorded_in_the_table_of_its_lists(
    device_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for op in (
        "binary_cross_entropy",  # forbidden on CUDA
        "fft_fft",  # no low kernel on CUDA, which does not cast it
        "einsum",  # made of others on the CPU, which are low by themselves
        "conv2d.padding",  # the same on CUDA
        "cross_entropy_loss",  # made of others on CUDA, which are fp32 by themselves
    ):
        monkeypatch.delitem(CALLS, op)
    for given in (torch.bfloat16, torch.float32):
        for op, result in result_dtypes(device_type, given).items():
            treatment = native_treatment(device_type, op)
            expected = {Treatment.LOW: torch.bfloat16, Treatment.FP32: torch.float32}
            assert result == str(expected.get(treatment, given)), (op, given)


def test_default_list_is_cudas_if_cuda_has_one() -> None:
    for op in listed_ops():
        native = native_treatment("cuda", op)
        if native in (Treatment.LOW, Treatment.FP32):
            assert default_list(op) == ("white" if native is Treatment.LOW else "black"), op


def test_losses_and_sensitive_ops_are_black() -> None:
    for op in (
        *("softmax.int", "layer_norm", "group_norm", "exp", "log", "pow.Tensor_Scalar", "sum"),
        *("sum.dim_IntList", "cumsum", "nll_loss", "mse_loss", "cross_entropy_loss"),
        *("binary_cross_entropy", "linalg_vector_norm"),
    ):
        assert default_list(op) == "black", op


@pytest.mark.parametrize("device_type", ["cpu", "cuda"])
@pytest.mark.parametrize("given", [torch.bfloat16, torch.float32])
def test_lists_determine_the_dtype_of_every_result(device_type: str, given: torch.dtype) -> None:
    lists = install(device_type, treatments("mixed", default_lists()))
    try:
        result = result_dtypes(device_type, given)
    finally:
        lists.close()
    expected = {"white": torch.bfloat16, "black": torch.float32, "gray": given}
    assert result == {op: str(expected[default_list(op)]) for op in CALLS}


@pytest.mark.parametrize("form", FORMS)
def test_cpu_cuda_and_npu_give_the_same_dtypes_in_every_mode(form: str) -> None:
    mode = next(mode for mode in MODES if mode.form == form)
    completed = subprocess.run(
        [sys.executable, "-m", "tests.precision.fake_devices", mode.name],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr[-2000:]
    on_npu = json.loads(completed.stdout)
    for given in (torch.bfloat16, torch.float32):
        for device_type in ("cpu", "cuda"):
            lists = install(device_type, treatments(mode.form, default_lists()))
            try:
                assert result_dtypes(device_type, given) == on_npu[str(given)], device_type
            finally:
                lists.close()


def test_in_cube_modes_only_matrix_products_and_convolutions_are_lowered() -> None:
    cube = treatments("cube", default_lists())
    assert cube["linear"] is Treatment.LOW_THEN_FP32
    assert cube["conv2d"] is Treatment.LOW_THEN_FP32
    assert cube["prelu"] is Treatment.FOLLOW
    assert cube["softmax.int"] is Treatment.FP32
    assert Treatment.LOW not in cube.values()
    assert treatments("cube_fp32_out", default_lists())["linear"] is Treatment.ROUND_IN


def test_force_fp16_lowers_every_op_that_computes_and_has_a_kernel() -> None:
    everything = treatments("all", default_lists())
    for op in ("softmax.int", "cross_entropy_loss", "add.Tensor", "sum", "batch_norm", "relu"):
        assert everything[op] is Treatment.LOW, op
    assert all(everything[op] is Treatment.FP32 for op in NO_LOW_KERNEL if op in everything)
    assert everything["embedding"] is Treatment.FOLLOW


def test_emulation_rounds_ops_that_would_be_lowered_without_lowering_them() -> None:
    for form in ("mixed", "cube", "all"):
        real = treatments(form, default_lists())
        emulated = treatments(form, default_lists(), emulated=True)
        lowered = {Treatment.LOW, Treatment.LOW_THEN_FP32}
        for op, treatment in real.items():
            assert emulated[op] is (Treatment.ROUND if treatment in lowered else treatment), op


def test_op_table_shows_every_op_with_its_list_and_cann_types() -> None:
    lists = {**default_lists(), "add.Tensor": "black"}
    rows = {row["op"]: row for row in op_table(find_mode("mixed_float16").form, lists)}
    assert rows.keys() == set(listed_ops())
    assert rows["softmax.int"]["CANN op types"].startswith("SoftmaxV2")
    assert (rows["add.Tensor"]["list"], rows["add.Tensor"]["default"]) == ("black", "gray")
    assert rows["add.Tensor"]["treatment"] == "inputs to fp32"
    assert op_table("origin", default_lists()) == []
