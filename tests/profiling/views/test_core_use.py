"""Cores that an op leaves unused, and ops that are not compiled for their shape."""

import json
from pathlib import Path
from typing import Any

import pytest

from jumar.profiling.views.core_use import core_use, dynamic_shapes
from jumar.profiling.views.view import LEVEL_1, VIEWS, Impossible, Options
from tests.profiling.generated import profile_of

_CHIP = {
    "name": "Test",
    "matches": ["test"],
    "cube_tflops": {"FLOAT": 1},
    "vector_tflops": 1,
    "hbm_gb_s": 1,
    "cube_cores": 20,
    "vector_cores": 48,
    "launch_us": 0,
}


def _op(kind: str, core: str | None, blocks: int | None, length: int) -> dict[str, Any]:
    row = {"type": kind, "core": core, "block_num": blocks, "duration_ns": length}
    return row | {"input_shapes": f"{blocks},8"}


@pytest.fixture
def chip(tmp_path: Path) -> Options:
    file = tmp_path / "chip.json"
    file.write_text(json.dumps({"chips": [_CHIP]}))
    return Options(chip=file)


def test_idle_cores_cost_their_share_of_the_time(chip: Options) -> None:
    profile = profile_of(
        [
            _op("B", "MIX_AIV", 24, 60_000),
            _op("A", "AI_CORE", 10, 40_000),
            _op("B", "MIX_AIV", 24, 40_000),
            _op("C", "MIX_AIC", 10, 100_000),
            _op("D", "AI_VECTOR_CORE", 7, 100_000),
            # Neither the chip table nor a kind of core that it knows: the most of any op.
            _op("E", "DSA_SQE", 2, 8_000),
            _op("E", "DSA_SQE", 8, 8_000),
            _op("F", "CUDA", 1, 1_000),
            # All cores, more than there are, none, and what is not a core.
            _op("G", "AI_CORE", 20, 9_000_000),
            _op("G", "AI_CORE", 256, 9_000_000),
            _op("G", "AI_CORE", 0, 9_000_000),
            _op("G", "AI_CORE", None, 9_000_000),
            _op("G", "AI_CPU", 1, 9_000_000),
            _op("G", "AI_CPU", 4, 9_000_000),
            _op("G", None, 1, 9_000_000),
        ]
    )
    table = VIEWS["cores"].make(profile, chip)
    assert table.columns == [
        *("type", "core", "count", "total_ms", "block_num", "cores", "use_%", "idle_ms"),
        "input_shapes",
    ]
    assert table.rows() == [
        ("D", "AI_VECTOR_CORE", 1, 0.1, 7, 48, 14.6, 0.0854, "7,8"),
        ("B", "MIX_AIV", 2, 0.1, 24, 48, 50.0, 0.05, "24,8"),
        ("C", "MIX_AIC", 1, 0.1, 10, 20, 50.0, 0.05, "10,8"),
        ("A", "AI_CORE", 1, 0.04, 10, 20, 50.0, 0.02, "10,8"),
        ("E", "DSA_SQE", 1, 0.008, 2, 8, 25.0, 0.006, "2,8"),
        ("F", "CUDA", 1, 0.001, 1, 20, 5.0, 0.00095, "1,8"),
    ]


def test_without_a_chip_the_core_count_is_the_largest_block_count() -> None:
    profile = profile_of([_op("A", "CUDA", 3, 80), _op("A", "CUDA", 4, 80)], kind="cuda")
    table = core_use(profile, Options())
    assert table.select("block_num", "cores", "use_%").rows() == [(3, 4, 75.0)]


def test_equal_costs_are_sorted_by_type_core_shape_and_blocks(chip: Options) -> None:
    ops = [
        {"type": kind, "core": core, "block_num": 10, "duration_ns": 50, "input_shapes": shape}
        for kind in ("B", "A")
        for core in ("MIX_AIC", "AI_CORE")
        for shape in ("9", "8")
    ]
    found = core_use(profile_of(ops), chip).select("type", "core", "input_shapes").rows()
    assert len(found) == 8
    assert found == sorted(found)


def test_cpu_cores_and_ops_without_blocks_have_no_core_use() -> None:
    with pytest.raises(Impossible) as told:
        core_use(profile_of([_op("A", "CPU", 3, 80)], kind="cpu"), Options())
    assert str(told.value) == "needs ops on an NPU or GPU"
    with pytest.raises(Impossible) as told:
        core_use(profile_of([_op("A", "AI_CORE", None, 80)]), Options())
    assert str(told.value) == f"needs the number of blocks of each op (column block_num); {LEVEL_1}"
    with pytest.raises(Impossible) as told:
        core_use(profile_of([_op("A", None, 4, 80)]), Options())
    assert str(told.value) == f"needs the number of blocks of each op (column core); {LEVEL_1}"


def test_ops_are_grouped_by_state_with_their_shapes() -> None:
    def op(kind: str, state: str | None, length: int, shape: str = "8") -> dict[str, Any]:
        row = {"type": kind, "state": state, "duration_ns": length}
        return row | {"input_shapes": shape}

    profile = profile_of(
        [
            op("B", "dynamic", 2_000_000),
            op("B", "dynamic", 3_000_000, "9"),
            op("B", "dynamic", 4_000_000, "9"),
            op("A", "static", 5_000_000),
            op("A", "dynamic", 5_000_000),
            op("B", "static", 10_000_000),
            op("A", None, 99_000_000),
        ]
    )
    table = VIEWS["dynamic"].make(profile, Options())
    assert table.columns == ["state", "type", "count", "different_shapes", "total_ms"]
    assert table.rows() == [
        ("static", "B", 1, 1, 10.0),
        ("dynamic", "B", 3, 2, 9.0),
        ("dynamic", "A", 1, 1, 5.0),
        ("static", "A", 1, 1, 5.0),
    ]
    with pytest.raises(Impossible) as told:
        dynamic_shapes(profile_of([op("A", None, 9)]), Options())
    assert str(told.value) == f"needs the state of each op (OP State) (column state); {LEVEL_1}"
