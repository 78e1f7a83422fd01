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


def test_all_logit_ops_are_one_finding_including_their_casts() -> None:
    weights = ("ApplyAdam", f"{_V},{_H};{_V},{_H}", f"{_V},{_H}", 9)
    profile = _profile([_PRODUCT, *_SPLIT, ("Relu", f"{_T},{_H}", f"{_T},{_H}", 3), weights])
    (found,) = _found(profile)
    assert found["win_ms"] == 20
    assert "(4096 x 50257) take 20.000 ms per step in 4 op types" in found["what"]
    assert found["evidence"][0] == "1 x LogSoftmaxGrad: 8.000 ms"
    assert "bandwidth is unknown" in found["evidence"][-1]
    assert "cross entropy" in found["change"]
    assert "casts" not in todo_table(profile)["key"].to_list()


def test_saving_excludes_the_memory_traffic_of_a_fused_loss(tmp_path: Path) -> None:
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
    assert found["evidence"][-1].startswith("minus one read and one write")


def test_unfused_loss_is_recognised_by_the_vocabulary_weights() -> None:
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
def test_other_wide_tensors_are_not_logits(ops: list[tuple[str, str, str, int]]) -> None:
    assert _found(_profile(ops)) == []


def _loss(width: int, height: int = 4, name: str = "NLLLoss") -> list[tuple[str, str, str, int]]:
    shape = f"{height},{width}"
    return [(name, f"{shape};{height}", "1", 5), ("Cast", shape, shape, 5)]


@pytest.mark.parametrize(
    ("ops", "found"),
    [
        (_loss(8192), True),
        (_loss(8191), False),
        (_loss(9000, height=1), False),
        (_loss(9000, height=2), True),
        (_loss(9000, name="cross_entropy"), True),
        (_loss(9000, name="Sub"), False),
        # A softmax counts where a weight has its length, and is not that of a square matrix.
        ([*_loss(9000, name="SoftmaxV2"), ("mm", "4,5;5,9000", "4,9000", 9)], True),
        (_loss(9000, name="SoftmaxV2"), False),
        ([*_loss(9000, name="SoftmaxV2"), ("mm", "2,4,5;2,5,9000", "2,4,9000", 9)], False),
        ([*_loss(9000, 9000, name="SoftmaxV2"), ("mm", "4,5;5,9000", "4,9000", 9)], False),
        (_loss(9000, 9000), True),
        # Of four axes it is attention.
        ([("NLLLoss", "2,2,4,9000;4", "1", 5), ("Cast", "2,2,4,9000", "2,2,4,9000", 5)], False),
        ([("NLLLoss", "2,4,9000;4", "1", 5), ("Cast", "8,9000", "8,9000", 5)], True),
        # Another number of rows, or the vocabulary alone, is no logits.
        ([_loss(9000)[0], ("Cast", "5,9000", "5,9000", 5)], False),
        ([_loss(9000)[0], ("Cast", "36000", "36000", 5)], False),
        ([_loss(9000)[0], ("Cast", "9000,4", "9000,4", 5)], True),
        ([_loss(9000)[0], ("mm", "4,9000;9000,3", "4,3", 5)], False),
        # A second type that takes a hundredth of the time counts, and one that takes less does not.
        ([("NLLLoss", "4,9000;4", "1", 99), ("Cast", "4,9000", "4,9000", 1)], True),
        ([("NLLLoss", "4,9000;4", "1", 100), ("Cast", "4,9000", "4,9000", 1)], False),
    ],
)
def test_logits_are_recognised_by_loss_and_shape(
    ops: list[tuple[str, str, str, int]], found: bool
) -> None:
    assert bool(_found(_profile(ops))) == found


def test_logits_finding_is_complete_with_five_op_types() -> None:
    shape = "4,9000"
    kinds = [(name, shape, shape, length) for length, name in enumerate("FEDCBA", 2)]
    loss = [("NLLLoss", f"{shape};4", "1", 20), ("NLLLoss", "7,9000;7", "1", 10)]
    profile = _profile([*loss, *kinds, ("B", shape, shape, 6)])
    (row,) = _found(profile)
    assert (row["win_ms"], row["what"]) == (
        63.0,
        "Tensors as wide as the vocabulary (7 x 9000) take 63.000 ms per step in 7 op types",
    )
    assert row["evidence"] == [
        "2 x NLLLoss: 30.000 ms",
        "2 x B: 12.000 ms",
        "1 x A: 7.000 ms",
        "1 x C: 5.000 ms",
        "1 x D: 4.000 ms",
        "counted in full, since the chip's bandwidth is unknown",
    ]


def test_each_vocabulary_has_a_line() -> None:
    rows = _found(_profile([*_loss(9000), *_loss(10_000, height=3)]))
    assert sorted(row["what"][:46] for row in rows) == [
        "Tensors as wide as the vocabulary (3 x 10000) ",
        "Tensors as wide as the vocabulary (4 x 9000) t",
    ]
    assert [row["win_ms"] for row in rows] == [10.0, 10.0]
