"""`jumar precision compare`: exit codes, and what it writes."""

import csv
import json
import re
from pathlib import Path

import pytest

from tests.cli.in_process import SMALL_RECIPE, here, settings


@pytest.fixture
def own(shared: Path) -> Path:
    return shared / "data/dumps/own/tf_fp32"


def test_fault_exits_with_1_and_is_in_every_output(own: Path, tmp_path: Path) -> None:
    pair = (own / "golden/statistics_mix", own / "softmax_half/statistics_mix")
    done = here("precision", "compare", *pair, "--csv", "all.csv", cwd=tmp_path, code=1)
    assert "1. blocks.1.attn: Functional.softmax forward: its operands agree" in done.out
    assert "paired: 131 calls with 313 values" in done.out
    rows = list(csv.DictReader((tmp_path / "all.csv").read_text().splitlines()))
    assert len(rows) == 313
    wrong = [row["op"] for row in rows if row["verdict"] == "offender"]
    assert wrong[0] == "Functional.softmax"
    content = json.loads(here("precision", "compare", *pair, "--json", cwd=tmp_path, code=1).out)
    assert [each["layer"] for each in content["offenders"]] == ["blocks.1.attn"]
    assert content["paired"] == 131


def test_page_lists_every_call_and_loads_no_external_files(own: Path, tmp_path: Path) -> None:
    pair = (own / "golden/statistics_mix", own / "softmax_half/statistics_mix")
    here("precision", "compare", *pair, "--page", "page.html", cwd=tmp_path, code=1)
    text = (tmp_path / "page.html").read_text()
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    calls = json.loads(data)
    assert len(calls) == 131
    assert next(call[:2] for call in calls if call[4] == 2) == [
        "blocks.1.attn",
        "Functional.softmax",
    ]
    assert "default-src 'none'" in text
    assert not re.search(r"(src|href)=|https?://(?!www\.w3\.org/2000/svg)", text)


def test_healthy_pair_exits_with_0(own: Path, tmp_path: Path) -> None:
    pair = (own / "golden/statistics_mix", own / "clean/statistics_mix")
    done = here("precision", "compare", *pair, cwd=tmp_path)
    assert "No op is to blame: rounding explains all errors." in done.out


def test_bad_input_exits_with_2(own: Path, tmp_path: Path) -> None:
    good = own / "golden/statistics_mix"
    other = own.parent / "conv_L0"
    for wrong, message in (
        (tmp_path, "contains no dump"),
        (other, "dumps of different models"),
        (own / "golden", "contains 2 dumps"),
    ):
        done = here("precision", "compare", good, wrong, cwd=tmp_path, code=2)
        assert message in done.message
    done = here("precision", "compare", good, good, "--rank", "7", cwd=tmp_path, code=2)
    assert "no such step or rank" in done.message


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_bias_whose_gradient_is_zero_in_theory_is_not_blamed(tmp_path: Path, seed: int) -> None:
    """Before a norm its gradient and update are rounding, and the update of float32 may be none."""
    for place, mode in (("a", "must_keep_origin_dtype"), ("b", "allow_mix_precision_bf16")):
        same = settings(training__duration="6it", seed=seed, precision__mode=mode)
        here("precision", "dump", *SMALL_RECIPE, "--steps", "2", "--to", place, *same, cwd=tmp_path)
    done = here("precision", "compare", "a", "b", cwd=tmp_path)
    assert "No op is to blame" in done.out
