"""Costs of ops from their shapes, and the chip table."""

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.ground.errors import UserError
from jumar.profiling import read
from jumar.profiling.advice.todo import todo_table
from jumar.profiling.page import page
from jumar.profiling.profile import OPS_SCHEMA, Profile
from jumar.profiling.views import VIEWS, Impossible, Options, chips, roofline
from jumar.profiling.views.chips import chip_of, read_chips
from jumar.profiling.views.kinds import KEY
from jumar.profiling.views.op_costs import cost
from jumar.profiling.views.roofline import limits, require_chip
from jumar.profiling.views.view import LEVEL_1
from tests.profiling.generated import frame, profile_of, training

SIZES = st.integers(1, 300)
TEST_CHIP = {
    "name": "Test",
    "matches": ["test"],
    "cube_tflops": {"FLOAT": 2 * 2048**3 / 0.4e9},
    "vector_tflops": 1000,
    "hbm_gb_s": 1e6,
    "cube_cores": 1,
    "vector_cores": 1,
    "launch_us": 0,
}


@given(SIZES, SIZES, SIZES, st.booleans(), st.booleans())
def test_product_cost_does_not_depend_on_transposition(
    m: int, n: int, k: int, first: bool, second: bool
) -> None:
    a, b = (f"{k},{m}" if first else f"{m},{k}"), (f"{n},{k}" if second else f"{k},{n}")
    told = cost("MatMulV2", f"{a};{b}", "FLOAT;FLOAT", "ND;ND", f"{m},{n}", "FLOAT")
    assert told.flops == pytest.approx(2 * m * n * k)
    assert told.bytes == 4 * (m * k + k * n + m * n)


def test_batched_products_and_bias_are_counted() -> None:
    told = cost("BatchMatMul", "8,4,5;8,5,6", "FLOAT16;FLOAT16", "ND;ND", "8,4,6", "FLOAT16")
    assert told.flops == pytest.approx(2 * 8 * 4 * 5 * 6)
    # aten::addmm has its bias first, and Kineto records no outputs.
    assert cost("aten::addmm", "6;4,5;5,6", "FLOAT", None, None, None).flops == 2 * 4 * 5 * 6


def test_convolutions_cost_the_same_forward_and_backward() -> None:
    x, w, y = "2,3,8,8", "4,3,3,3", "2,4,8,8"
    forward = 2 * (2 * 4 * 8 * 8) * (3 * 3 * 3)
    three = "FLOAT;FLOAT"
    assert cost("Conv2D", f"{x};{w}", three, "NCHW;NCHW", y, "FLOAT").flops == forward
    back = cost("Conv2DBackpropInput", f"4;{w};{y}", "INT32;" + three, "ND", x, "FLOAT")
    assert back.flops == forward
    kernel = cost("Conv2DBackpropFilter", f"{x};4;{y}", "FLOAT;INT32;FLOAT", "ND", w, "FLOAT")
    assert kernel.flops == forward


def test_alexnets_first_layer_in_blocks_of_eight_costs_its_padded_size() -> None:
    told = cost(
        "Conv2D",
        "32,1,224,224,8;121,4,16,8;64",
        "FLOAT;FLOAT;FLOAT",
        "NC1HWC0;FRACTAL_Z;ND",
        "32,8,55,55,8",
        "FLOAT",
    )
    # 3 input channels are padded to 8.
    assert told.flops == 2 * (32 * 64 * 55 * 55) * (8 * 11 * 11)


_SCORE = "FlashAttentionScore"
_OF_HEADS = 2 * 8 * 512 * 64
"""Numbers in the queries: batch, heads, length, size of a head."""


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs", "flops"),
    [
        ("_scaled_dot_product_flash_attention", "2,8,512,64;2,8,256,64;2,8,256,64", None, 4),
        ("aten::_flash_attention_forward", "2,512,8,64;2,256,8,64;2,256,8,64", None, 4),
        ("_efficient_attention_forward", "2,512,8,64;2,256,8,64;2,256,8,64", None, 4),
        # The gradient of the result is first.
        (
            "_scaled_dot_product_efficient_attention_backward",
            "2,8,512,64;2,8,512,64;2,8,256,64;2,8,256,64",
            None,
            10,
        ),
        # Several samples in one axis: their lengths are unknown.
        ("_flash_attention_forward", "1024,8,64;1024,8,64;1024,8,64", None, None),
        (_SCORE, "512,2,512;256,2,512;256,2,512", "2,8,512,8;2,8,512,8;;512,2,512", 4),
        (_SCORE, "2,512,512;2,256,512;2,256,512", "2,8,512,8;2,8,512,8;;2,512,512", 4),
        (_SCORE, "2,8,512,64;2,8,256,64;2,8,256,64", "2,8,512,8;2,8,512,8;;2,8,512,64", 4),
        (_SCORE, "2,512,8,64;2,256,8,64;2,256,8,64", "2,8,512,8;2,8,512,8;;2,512,8,64", 4),
        # Fewer heads of keys than of queries.
        (_SCORE, "512,2,512;256,2,128;256,2,128", "2,8,512,8;2,8,512,8;;512,2,512", 4),
        # Sums in one axis: the longer of the two axes counts.
        (_SCORE, "512,2,512;256,2,512;256,2,512", "65536;65536;;131072", 4),
        (
            "FlashAttentionScoreGrad",
            "512,2,512;256,2,512;256,2,512;512,2,512;;2,8,512,8;2,8,512,8",
            "512,2,512;256,2,512;256,2,512",
            10,
        ),
        ("FusedInferAttentionScore", "2,8,512,64;2,8,256,64;2,8,256,64", "2,8,512,64", None),
    ],
)
def test_attention_costs_its_two_products_in_every_layout(
    kind: str, inputs: str, outputs: str | None, flops: int | None
) -> None:
    told = cost(kind, inputs, "BF16;BF16;BF16;BF16", None, outputs, "BF16")
    assert told.cube
    assert told.flops == (None if flops is None else flops * _OF_HEADS * 256)


def test_causal_mask_halves_attention_work_on_ascend() -> None:
    shapes, sums = "4096,1,2048;4096,1,1024;4096,1,1024", "1,16,4096,8;1,16,4096,8;;4096,1,2048"
    masked = cost(_SCORE, f"{shapes};;;;2048,2048", "BF16;BF16;BF16", None, sums, "FLOAT")
    plain = cost(_SCORE, shapes, "BF16;BF16;BF16", None, sums, "FLOAT")
    assert plain.flops == 4 * 4096 * 2048 * 4096
    assert masked.flops == plain.flops / 2


@pytest.mark.parametrize(
    ("kind", "shapes", "types", "change"),
    [
        ("MatMulV2", "2048,2048;2048,2048", "BF16;BF16", "more work at once"),
        ("MatMulV2", "2048,2045;2045,2048", "BF16;BF16", "multiples of 16"),
        ("Relu", "2048,2048", "FLOAT", "or use 16-bit dtypes"),
        ("Relu", "2048,2048", "BF16", "to read and write less; check"),
        (_SCORE, "2,512,512;2,512,512;2,512,512", "BF16;BF16;BF16", "causal mask as a flag"),
    ],
)
def test_advice_fits_the_ops_dtypes_and_sizes(
    kind: str, shapes: str, types: str, change: str, tmp_path: Path
) -> None:
    fast = {**TEST_CHIP, "vector_tflops": 1e6, "hbm_gb_s": 100 if kind == "Relu" else 1e6}
    file = tmp_path / "chips.json"
    file.write_text(json.dumps({"chips": [{**fast, "cube_tflops": {"FLOAT": 1, "BF16": 1}}]}))
    row = {"rank": 0, "type": kind, "name": "a", "core": "AI_CORE", "start_ns": 0}
    row |= {"duration_ns": 10**9, "input_shapes": shapes, "input_types": types}
    ops = frame([row], OPS_SCHEMA)
    profile = Profile(source="x", producer="x", kind="npu", ops=ops)
    table = todo_table(profile, Options(chip=file)).filter(pl.col("key") == "head-room")
    assert change in table["change"][0]
    assert ("counted without a mask" in table["evidence"][0][-1]) == (kind == _SCORE)
    text = page(profile, options=Options(chip=file))
    assert text.count("chip: Test: the user&#39;s file") >= 2


def test_kernels_on_both_core_kinds_imply_a_chip_with_both() -> None:
    row = {"rank": 0, "type": "main", "core": "MIX_AIC", "start_ns": 0, "duration_ns": 9}
    ops = frame([{**row, "block_num": 256}], OPS_SCHEMA)
    found = chip_of(Profile(source="x", producer="msprof", kind="npu", ops=ops))
    assert found is not None
    assert (found.name, found.assumed) == ("Ascend 910B3", True)


@pytest.mark.parametrize("shapes", ["", "a,b;c", "-1,3;3,4", ";;", "1e9", "9" * 400])
def test_odd_shapes_do_not_crash(shapes: str) -> None:
    for kind in ("MatMul", "Conv2D", "Conv2DBackpropInput", "FlashAttentionScore", "Add", None):
        cost(kind, shapes, "FLOAT", None, shapes, "FLOAT")


def test_work_of_a_custom_library_op_is_unknown() -> None:
    assert cost("fbgemm::lookup", "8192,8720", "FLOAT", None, None, None).bytes is None


def test_headroom_is_the_distance_to_the_chips_peak(tmp_path: Path) -> None:
    file = tmp_path / "chips.json"
    file.write_text(json.dumps({"chips": [TEST_CHIP]}))
    table = VIEWS["roofline"].make(training(steps=1), Options(chip=file))
    (own,) = read_chips(file)
    assert own.summary == "Test: the user's file"
    row = table.row(0, named=True)
    assert row["type"] == "MatMulV2"
    assert row["bound"] == "cube"
    # Each product of 1.6 ms could take 0.4 ms.
    assert row["head_room_ms"] == pytest.approx(5 * 1.2, abs=1e-3)


def test_every_built_in_chip_names_its_source_and_unsourced_rates() -> None:
    file = Path(chips.__file__).with_name("chips.json")
    fields = {row["name"]: row for row in json.loads(file.read_text())["chips"]}
    for chip in read_chips():
        assert chip.matches
        assert all(part == part.lower() for part in chip.matches)
        assert re.search(r"\(.*?\b20[12]\d\b.*?\)", chip.source)
        for name in chip.unverified:
            field, _, dtype = name.partition(".")
            assert field in fields[chip.name]
            assert not dtype or dtype in chip.cube_tflops
            assert name in chip.label


def test_unsourced_rates_are_shown_with_the_chip() -> None:
    (old,) = (chip for chip in read_chips() if chip.name == "Ascend 910A")
    assert old.summary.startswith("Ascend 910A, unverified cube_tflops.FLOAT, hbm_gb_s: Huawei")


def test_da_vinci_chip_variants_are_distinguished_by_name() -> None:
    names = {
        "Ascend910A": "Ascend 910A",
        "Ascend910ProA": "Ascend 910 Pro A",
        "Ascend910B1": "Ascend 910B1",
        "Ascend910B2C": "Ascend 910B2",
        "Ascend910B3": "Ascend 910B3",
        "Ascend910B4-1": "Ascend 910B4",
        "Ascend910_9392": "Ascend 910C, one die",
    }
    for told, name in names.items():
        found = chip_of(
            Profile(source="x", producer="x", kind="npu", ops=training(steps=1).ops, chip=told)
        )
        assert found is not None
        assert (found.name, found.assumed) == (name, False)


def test_chip_family_is_resolved_by_the_cores_used(shared: Path) -> None:
    samples = shared / "data" / "msprof"
    database = read(samples / "torch_npu_level1_db")
    assert database.chip == "Ascend910B"
    # The same training as CSV files, which name no chip: its ops use up to 24 and 48 cores.
    found = [chip_of(one) for one in (database, read(samples / "torch_npu_level1_2rank"))]
    assert [(chip.name, chip.assumed) for chip in found if chip] == [("Ascend 910B2", True)] * 2


@pytest.mark.parametrize(
    ("said", "understood"),
    [(True, ("all",)), (False, ()), (["hbm_gb_s"], ("hbm_gb_s",))],
)
def test_chip_file_marks_unverified_rates(
    tmp_path: Path, said: object, understood: tuple[str, ...]
) -> None:
    row = json.loads(Path(chips.__file__).with_name("chips.json").read_text())["chips"][0]
    file = tmp_path / "chips.json"
    file.write_text(json.dumps({"chips": [{**row, "unverified": said}]}))
    assert read_chips(file)[0].unverified == understood
    file.write_text(json.dumps({"chips": [{**row, "unverified": "hbm"}]}))
    with pytest.raises(UserError, match="not a chip table"):
        read_chips(file)


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"chips": 3}', '{"chips": [{}]}', "[" * 100_000, '{"chips": [{"name": "a"}]}'],
)
def test_broken_chip_table_is_a_user_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "chips.json"
    file.write_text(text)
    with pytest.raises(UserError, match="not a chip table"):
        read_chips(file)


def test_chip_is_found_by_the_captures_name() -> None:
    told = training(steps=1)
    named = Profile(
        source="x", producer="x", kind="cuda", ops=told.ops, chip="NVIDIA A100-SXM4-80GB"
    )
    found = chip_of(named)
    assert found is not None
    assert (found.name, found.assumed) == ("NVIDIA A100", False)
    guessed = chip_of(told)
    assert guessed is not None
    assert guessed.assumed


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"chips": [{"cube_tflops": 3}]}', None),
        ('{"chips": []}', None),
        ("[" * 1000, None),
        (json.dumps({"chips": [{**TEST_CHIP, "name": "mine"}] * 2}), "mine"),
    ],
)
def test_recording_with_modified_rates_is_still_shown(text: str, found: str | None) -> None:
    profile = Profile(
        source="x",
        producer="jumar",
        kind="cpu",
        ops=training(steps=1).ops,
        statistics={"chips": pl.DataFrame({"json": [text]})},
    )
    chip = chip_of(profile)
    assert (None if chip is None else chip.name) == found


_RATES = {
    **TEST_CHIP,
    "cube_tflops": {"FLOAT": 100, "FLOAT16": 400},
    "vector_tflops": 10,
    "hbm_gb_s": 1000,
    "launch_us": 2,
}


def _row(kind: str, length: int, shapes: str, dtype: str = "FLOAT", **more: Any) -> dict[str, Any]:
    row = {"type": kind, "core": "AI_CORE", "duration_ns": length, "input_types": dtype}
    row |= {"input_shapes": shapes, "output_shapes": shapes.partition(";")[0]}
    return row | {"output_types": dtype, "input_formats": "ND"} | more


_SQUARE = "1000,1000;1000,1000"
_LIMITED = [
    # 2e9 operations at 100e12 a second take 20 us, 12 MB at 1000 GB/s only 12.
    _row("MatMulV2", 50_000, _SQUARE, aic_mac_ratio=0.5, aiv_vec_ratio=None),
    _row("MatMulV2", 70_000, _SQUARE, aic_mac_ratio=0.7, aiv_vec_ratio=0.2),
    # 6 MB.
    _row("Add", 6_500, _SQUARE, "FLOAT16", core=None, aiv_vec_ratio=0.876, aic_mac_ratio=0.0),
    # What the capture itself knows of the work counts.
    _row("Exp", 15_000, "1000", flops=100_000_000, bytes=1_000_000, aiv_vec_ratio=0.0),
    _row("Relu", 5_000, "10"),
    # Quicker than what starting it takes.
    _row("Relu", 1_000, "20"),
    # The work of the matrix unit that is not known may be at its peak.
    _row("Conv2D", 90_000, "2,3,8,8;4,3,3,3", output_shapes=None),
    _row("own::op", 80_000, "2,3"),
    *(_row("Add", 10**6, "8", core=core) for core in ("COMMUNICATION", "AI_CPU", "CUDA_MEMCPY")),
    _row("Add", 10**6, "8", core="CUDA_MEMSET"),
    _row("Sub", 0, "8"),
]


@pytest.fixture
def rates(tmp_path: Path) -> Options:
    file = tmp_path / "chips.json"
    file.write_text(json.dumps({"chips": [_RATES]}))
    return Options(chip=file)


def test_every_op_is_compared_with_the_tightest_of_three_limits(rates: Options) -> None:
    table = VIEWS["roofline"].make(profile_of(_LIMITED), rates)
    assert table.columns == [
        *("type", "count", "total_ms", "least_ms", "head_room_ms", "bound", "tflops", "gb_s"),
        *("busiest_pipe", "input_types", "input_shapes"),
    ]
    assert table.rows() == [
        ("MatMulV2", 2, 0.12, 0.04, 0.08, "cube", 33.333, 200.0, "aic_mac 60%", "FLOAT", _SQUARE),
        ("Exp", 1, 0.015, 0.01, 0.005, "vector", 6.667, 66.7, None, "FLOAT", "1000"),
        ("Relu", 1, 0.005, 0.002, 0.003, "launch", 0.0, 0.0, None, "FLOAT", "10"),
        (
            "Add",
            1,
            0.0065,
            0.006,
            0.0005,
            "memory",
            0.154,
            923.1,
            "aiv_vec 88%",
            "FLOAT16",
            _SQUARE,
        ),
        ("Relu", 1, 0.001, 0.002, 0.0, "launch", 0.0, 0.2, None, "FLOAT", "20"),
    ]


def test_ops_without_a_limit_are_kept(rates: Options) -> None:
    profile = profile_of(_LIMITED)
    table = limits(profile, require_chip(profile, rates))
    assert table.select(
        "type", "count", "total_ns", "least_ns", "bound", "flops", "bytes"
    ).rows() == [
        ("MatMulV2", 2, 120_000, 20_000, "cube", 2e9, 12e6),
        ("Conv2D", 1, 90_000, None, None, None, 3504.0),
        ("own::op", 1, 80_000, None, None, None, None),
        ("Exp", 1, 15_000, 10_000, "vector", 1e8, 1e6),
        ("Add", 1, 6_500, 6_000, "memory", 1e6, 6e6),
        ("Relu", 1, 5_000, 2_000, "launch", 10.0, 80.0),
        ("Relu", 1, 1_000, 2_000, "launch", 20.0, 160.0),
    ]
    assert limits(profile, require_chip(profile, rates)) is table


def test_longest_of_too_many_different_ops_are_kept(
    rates: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roofline, "MAX_COMBINATIONS", 4)
    profile = profile_of(_LIMITED)
    table = limits(profile, require_chip(profile, rates))
    assert table.select("type", "least_ns", "bound", "flops", "bytes").rows() == [
        ("MatMulV2", 20_000, "cube", 2e9, 12e6),
        ("Conv2D", None, None, None, 3504.0),
        ("own::op", None, None, None, None),
        ("Exp", 10_000, "vector", 1e8, 1e6),
    ]


def test_ties_among_the_last_ops_are_broken_by_text(
    rates: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roofline, "MAX_COMBINATIONS", 3)
    sizes = ("7", "9", "5", "8", "6")
    profile = profile_of([_row("Add", 4_000, size) for size in sizes] + [_row("Add", 9_000, "1")])
    table = limits(profile, require_chip(profile, rates))
    assert table["input_shapes"].to_list() == ["1", "5", "6"]


def test_equal_headroom_is_sorted_by_op(rates: Options) -> None:
    rows = [
        _row(kind, 9_000, shapes, dtype, core=core, input_formats=layout)
        for kind in ("Relu", "Exp")
        for core in ("AI_CORE", "AI_VECTOR_CORE")
        for shapes in ("8", "4")
        for dtype in ("FLOAT", "BF16")
        for layout in ("NZ", "ND")
    ]
    profile = profile_of(rows)
    for table in (roofline.roofline(profile, rates), limits(profile, require_chip(profile, rates))):
        found = table.select(KEY).rows()
        assert len(found) == 32
        assert found == sorted(found)


def test_unknown_chip_is_requested() -> None:
    for chip, said in (("", "the accelerator"), ("Odd 9000", "Odd 9000")):
        profile = profile_of([_row("Add", 1, "8")], kind="cuda", chip=chip)
        with pytest.raises(Impossible) as told:
            require_chip(profile, Options())
        assert str(told.value) == f"needs peak rates of {said}; pass them with --chip FILE"


def test_ops_without_shapes_have_no_limits(rates: Options) -> None:
    profile = profile_of([_row("Add", 1, "8", input_shapes=None)])
    with pytest.raises(Impossible) as told:
        VIEWS["roofline"].make(profile, rates)
    assert str(told.value) == f"needs shapes of the inputs (column input_shapes); {LEVEL_1}"


def test_without_counters_no_pipe_is_the_busiest(rates: Options) -> None:
    table = VIEWS["roofline"].make(profile_of([_row("Add", 9_000, "8")]), rates)
    assert table["busiest_pipe"].to_list() == [None]
    assert roofline.MAX_COMBINATIONS == 20_000
