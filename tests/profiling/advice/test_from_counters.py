"""Kernels that the scalar unit holds up are named with what next pipe would leave of them."""

from pathlib import Path
from typing import Any

import pytest

from jumar.profiling import read
from jumar.profiling.advice.todo import Advice, todo
from jumar.profiling.profile import Profile
from jumar.profiling.views import Options
from tests.profiling.generated import profile_of


def _op(start: int, length: int, **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "type": "ScatterNd", "core": "AI_VECTOR_CORE", "input_shapes": "64,7"}
    pipes = {"aiv_scalar_ratio": 0.9, "aiv_vec_ratio": 0.1, "aiv_mte2_ratio": 0.3}
    return row | pipes | {"start_ns": start, "duration_ns": length} | more


def _lines(profile: Profile, language: Any = "en") -> list[Advice]:
    return [
        line
        for line in todo(profile, Options(language=language))
        if line.finding.name == "scalar-bound"
    ]


def test_saving_is_the_scalar_units_excess_over_the_next_pipe() -> None:
    ops = [
        _op(0, 100_000),
        _op(100_000, 100_000, aiv_scalar_ratio=0.8, aiv_mte2_ratio=0.6),
        _op(200_000, 50_000, type="Index", aic_scalar_ratio=0.95, aic_mac_ratio=0.7),
        _op(250_000, 50_000, type="Mul", aiv_scalar_ratio=0.2),
    ]
    (line,) = _lines(profile_of(ops))
    assert line.saving_ns == pytest.approx(60_000 + 20_000 + 12_500, abs=3)
    assert line.claim.values == {"lasts": "0.250 ms", "types": "ScatterNd, Index"}
    assert [text.en for text in line.claim.evidence] == [
        "2 x ScatterNd 64,7: 0.200 ms per step, scalar unit busy 85 %, next pipe 45 %",
        "1 x Index 64,7: 0.050 ms per step, scalar unit busy 95 %, next pipe 70 %",
    ]
    assert line.claim.evidence[0].zh == (
        "2 x ScatterNd 64,7：每迭代 0.200 ms，标量单元忙碌 85 %，其次的流水 45 %"
    )


@pytest.mark.parametrize(
    "more",
    [
        {"aiv_scalar_ratio": 0.79},
        {"aiv_vec_ratio": 0.9},
        {"aiv_mte2_ratio": 0.95},
        {"aic_mac_ratio": 0.9},
        {"aiv_scalar_ratio": 1.2},
        {"aiv_scalar_ratio": float("nan")},
        {"aiv_scalar_ratio": None},
        {"aiv_vec_ratio": None, "aiv_mte2_ratio": None},
        {"core": "AI_CPU"},
        {"core": "COMMUNICATION"},
        {"duration_ns": 9_999},
    ],
    ids=str,
)
def test_other_ops_are_ignored(more: dict[str, Any]) -> None:
    assert not _lines(profile_of([_op(0, 20_000, **more), _op(30_000, 20_000, aiv_vec_ratio=0.9)]))


def test_counters_of_the_910_have_no_core_in_their_names() -> None:
    ops = [_op(0, 100_000) | {"scalar_ratio": 0.85, "mac_ratio": 0.25, "core": "AI_CORE"}]
    for op in ops:
        for name in ("aiv_scalar_ratio", "aiv_vec_ratio", "aiv_mte2_ratio"):
            del op[name]
    (line,) = _lines(profile_of(ops))
    assert line.saving_ns == pytest.approx(60_000, abs=1)


def test_at_most_three_types_are_listed() -> None:
    ops = [_op(100_000 * at, 90_000 - at, type=f"T{at}") for at in range(4)]
    (line,) = _lines(profile_of(ops))
    assert line.claim.values["types"] == "T0, T1, T2, ..."
    assert [text.en for text in line.claim.evidence][-1] == "..."


def test_attention_of_a_real_transformer_is_scalar_bound(shared: Path) -> None:
    (line,) = _lines(read(shared / "data/msprof/torch_npu_level2_4rank"))
    assert line.claim.values == {"lasts": "24.719 ms", "types": "FlashAttentionScore"}
    assert line.saving_ns == pytest.approx(2.833e6, abs=1e3)
    assert line.claim.evidence[0].en.endswith("scalar unit busy 91 %, next pipe 80 %")
