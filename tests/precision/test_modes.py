"""Modes: every name of the sources is known, and the documents say what the code says."""

from pathlib import Path

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.precision.modes import MODES, find_mode, mode_names, mode_table

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "precision.md"


def test_every_value_of_precision_mode_and_precision_mode_v2_is_accepted() -> None:
    values = """force_fp32 allow_fp32_to_fp16 force_fp16 must_keep_origin_dtype
        allow_mix_precision cube_fp16in_fp32out allow_mix_precision_fp16 allow_mix_precision_bf16
        allow_fp32_to_bf16 fp16 origin mixed_float16 mixed_bfloat16"""
    assert set(values.split()) == set(mode_names())


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("allow_mix_precision_fp16", "allow_mix_precision"),
        ("mixed_float16", "allow_mix_precision"),
        ("mixed_bfloat16", "allow_mix_precision_bf16"),
        ("origin", "must_keep_origin_dtype"),
        ("fp16", "force_fp16"),
        ("cube_fp16in_fp32out", "force_fp32"),
    ],
)
def test_newer_spellings_are_the_same_mode(alias: str, name: str) -> None:
    assert find_mode(alias) is find_mode(name)


@pytest.mark.parametrize("name", ["mixed_hif8", "cube_hif8"])
def test_hifloat8_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(UserError, match="HiFloat8 exists only on the Ascend 950"):
        find_mode(name)


def test_misspelt_mode_names_the_nearest() -> None:
    with pytest.raises(UserError, match="Did you mean 'allow_mix_precision'"):
        find_mode("allow_mixed_precision")


def test_only_the_mixed_modes_use_lists_and_only_fp16_modes_need_a_scale() -> None:
    assert [mode.name for mode in MODES if mode.uses_lists] == [
        "allow_mix_precision",
        "allow_mix_precision_bf16",
    ]
    assert {mode.name for mode in MODES if mode.fp16} == {
        "allow_mix_precision",
        "allow_fp32_to_fp16",
        "force_fp16",
        "force_fp32",
    }
    assert all(mode.low in (None, torch.float16, torch.bfloat16) for mode in MODES)


def test_document_shows_the_codes_table() -> None:
    text = DOCUMENT.read_text("utf-8")
    table = text.split("<!-- modes: start -->")[1].split("<!-- modes: end -->")[0]
    lines = ["| Mode | On Ascend | NPU | CUDA | CPU |", "|---|---|---|---|---|"]
    for row in mode_table():
        names = ", ".join(f"`{name}`" for name in [row["mode"], *row["also"].split(", ")] if name)
        lines.append(
            f"| {names} | {row['on Ascend']} | {row['NPU']} | {row['CUDA']} | {row['CPU']} |"
        )
    assert table.strip() == "\n".join(lines)
