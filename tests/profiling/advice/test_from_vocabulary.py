"""Whole logits are one finding with one remedy, and nothing else is taken for them."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from jumar.profiling.advice.todo import todo_table
from jumar.profiling.profile import OPS_SCHEMA, Profile
from jumar.profiling.views.view import Options
from tests.profiling.generated import frame

_T, _H, _V = 4096, 1024, 50257
_LOGITS = f"{_T},{_V}"
_PRODUCT = ("MatMulV2", f"{_T},{_H};{_V},{_H}", _LOGITS, 20)
_SPLIT = [
    ("Cast", _LOGITS, _LOGITS, 5),
    ("LogSoftmaxV2", _LOGITS, _LOGITS, 6),
    ("NLLLoss", f"{_LOGITS};{_T}", "1", 1),
    ("LogSoftmaxGrad", f"{_LOGITS};{_LOGITS}", _LOGITS, 8),
]


def _profile(ops: list[tuple[str, str, str, int]]) -> Profile:
    """Ops one after the other, in milliseconds, over two steps."""
    rows: list[dict[str, Any]] = []
    now = 0
    for step in (1, 2):
        for kind, inputs, outputs, length in ops:
            row = {"rank": 0, "step": step, "name": kind, "type": kind, "core": "AI_CORE"}
            row |= {"start_ns": now, "duration_ns": length * 1_000_000}
            rows.append(row | {"input_shapes": inputs, "output_shapes": outputs})
            now += length * 1_000_000
    return Profile(source="x", producer="x", kind="cuda", ops=frame(rows, OPS_SCHEMA))


def _found(profile: Profile, options: Options | None = None) -> list[dict[str, Any]]:
    table = todo_table(profile, options)
    return table.filter(pl.col("key") == "whole-logits").to_dicts()


def test_all_that_is_done_to_the_logits_is_one_finding_that_owns_its_casts() -> None:
    weights = ("ApplyAdam", f"{_V},{_H};{_V},{_H}", f"{_V},{_H}", 9)
    profile = _profile([_PRODUCT, *_SPLIT, ("Relu", f"{_T},{_H}", f"{_T},{_H}", 3), weights])
    (found,) = _found(profile)
    assert found["win_ms"] == 20
    assert "(4096 x 50257) take 20.000 ms a step in 4 types of ops" in found["what"]
    assert found["evidence"][0] == "1 x LogSoftmaxGrad: 8.000 ms"
    assert "bandwidth is unknown" in found["evidence"][-1]
    assert "cross entropy" in found["change"]
    assert "casts" not in todo_table(profile)["key"].to_list()


def test_what_a_fused_loss_must_read_and_write_is_not_won(tmp_path: Path) -> None:
    numbers = _T * _V
    chip = {
        "name": "Test",
        "matches": ["test"],
        "cube_tflops": {"FLOAT": 1000},
        "vector_tflops": 1000,
        # One reading and one writing in 16 bits take 2 ms at 70 % of it.
        "hbm_gb_s": 4 * numbers / 0.7 / 2e6,
        "cube_cores": 1,
        "vector_cores": 1,
        "launch_us": 0,
    }
    file = tmp_path / "chip.json"
    file.write_text(json.dumps({"chips": [chip]}))
    (found,) = _found(_profile([_PRODUCT, *_SPLIT]), Options(chip=file))
    assert found["win_ms"] == pytest.approx(18, abs=1e-3)
    assert found["evidence"][-1].startswith("less one reading and one writing")


def test_a_loss_by_single_ops_is_told_by_the_weights_of_the_vocabulary() -> None:
    by_hand = [("Sub", _LOGITS, _LOGITS, 3), ("Exp", _LOGITS, _LOGITS, 4)]
    (found,) = _found(_profile([_PRODUCT, *by_hand]))
    assert found["win_ms"] == 7
    assert _found(_profile(by_hand)) == []


@pytest.mark.parametrize(
    "ops",
    [
        # Attention: a softmax as wide as the keys, which a weight may be, too.
        [
            ("MatMulV2", "8192,1024;1024,1024", "8192,1024", 1),
            ("BatchMatMulV2", "16,8192,64;16,64,8192", "16,8192,8192", 9),
            ("SoftmaxV2", "16,8192,8192", "16,8192,8192", 9),
            ("Mul", "16,8192,8192", "16,8192,8192", 9),
        ],
        # Attention to another sequence: its products have three axes.
        [
            ("BatchMatMulV2", "16,512,64;16,64,8192", "16,512,8192", 9),
            ("SoftmaxV2", "16,512,8192", "16,512,8192", 9),
            ("Mul", "16,512,8192", "16,512,8192", 9),
        ],
        # A classifier.
        [
            ("MatMulV2", "256,2048;1000,2048", "256,1000", 1),
            ("LogSoftmaxV2", "256,1000", "256,1000", 9),
            ("NLLLoss", "256,1000;256", "1", 9),
        ],
        # A fused loss already.
        [
            _PRODUCT,
            ("SparseSoftmaxCrossEntropyWithLogits", f"{_LOGITS};{_T}", f"{_T};{_LOGITS}", 9),
        ],
    ],
    ids=["attention", "cross attention", "classifier", "fused"],
)
def test_other_wide_tensors_are_not_taken_for_logits(ops: list[tuple[str, str, str, int]]) -> None:
    assert _found(_profile(ops)) == []
