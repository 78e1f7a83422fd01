"""Costs of ops from their shapes, and the chip table."""

import json
import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.ground.errors import UserError
from jumar.profiling import read
from jumar.profiling.profile import Profile
from jumar.profiling.views import VIEWS, Options, chips
from jumar.profiling.views.chips import chip_of, read_chips
from jumar.profiling.views.op_costs import cost
from tests.profiling.generated import training

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
def test_a_product_costs_the_same_however_it_is_transposed(
    m: int, n: int, k: int, first: bool, second: bool
) -> None:
    a, b = (f"{k},{m}" if first else f"{m},{k}"), (f"{n},{k}" if second else f"{k},{n}")
    told = cost("MatMulV2", f"{a};{b}", "FLOAT;FLOAT", "ND;ND", f"{m},{n}", "FLOAT")
    assert told.flops == pytest.approx(2 * m * n * k)
    assert told.bytes == 4 * (m * k + k * n + m * n)


def test_batches_of_products_and_a_bias_count() -> None:
    told = cost("BatchMatMul", "8,4,5;8,5,6", "FLOAT16;FLOAT16", "ND;ND", "8,4,6", "FLOAT16")
    assert told.flops == pytest.approx(2 * 8 * 4 * 5 * 6)
    # aten::addmm has its bias first, and Kineto tells no outputs.
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


@pytest.mark.parametrize("shapes", ["", "a,b;c", "-1,3;3,4", ";;", "1e9", "9" * 400])
def test_odd_shapes_give_no_crash(shapes: str) -> None:
    for kind in ("MatMul", "Conv2D", "Conv2DBackpropInput", "FlashAttentionScore", "Add", None):
        cost(kind, shapes, "FLOAT", None, shapes, "FLOAT")


def test_the_work_of_an_op_of_somebodys_own_library_is_unknown() -> None:
    assert cost("fbgemm::lookup", "8192,8720", "FLOAT", None, None, None).bytes is None


def test_head_room_is_what_the_peak_of_the_chip_leaves(tmp_path: Path) -> None:
    file = tmp_path / "chips.json"
    file.write_text(json.dumps({"chips": [TEST_CHIP]}))
    table = VIEWS["roofline"].make(training(steps=1), Options(chip=file))
    (own,) = read_chips(file)
    assert own.says == "Test: the user's file"
    row = table.row(0, named=True)
    assert row["type"] == "MatMulV2"
    assert row["bound"] == "cube"
    # Each product of 1.6 ms could take 0.4 ms.
    assert row["head_room_ms"] == pytest.approx(5 * 1.2, abs=1e-3)


def test_every_chip_of_ours_names_its_source_and_the_rates_that_were_not_found_in_it() -> None:
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


def test_what_was_found_in_no_source_is_told_with_the_chip() -> None:
    (old,) = (chip for chip in read_chips() if chip.name == "Ascend 910A")
    assert old.says.startswith("Ascend 910A, unverified cube_tflops.FLOAT, hbm_gb_s: Huawei")


def test_the_parts_of_a_da_vinci_chip_are_told_apart_by_name() -> None:
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


def test_a_family_alone_is_told_apart_by_the_cores_that_ops_used(shared: Path) -> None:
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
def test_a_file_says_which_rates_are_unverified(
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
def test_a_broken_chip_table_is_a_users_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "chips.json"
    file.write_text(text)
    with pytest.raises(UserError, match="not a chip table"):
        read_chips(file)


def test_a_chip_is_found_by_the_name_that_the_capture_gives() -> None:
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
def test_a_recording_whose_rates_were_changed_is_shown_all_the_same(
    text: str, found: str | None
) -> None:
    profile = Profile(
        source="x",
        producer="jumar",
        kind="cpu",
        ops=training(steps=1).ops,
        statistics={"chips": pl.DataFrame({"json": [text]})},
    )
    chip = chip_of(profile)
    assert (None if chip is None else chip.name) == found
