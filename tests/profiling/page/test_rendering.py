"""What a page says of a profile, besides its timeline: notices, rates, cuts and comparisons."""

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from jumar.profiling.comparison import Edit, compare
from jumar.profiling.page import rendering
from jumar.profiling.page.rendering import page
from jumar.profiling.profile import Missing, Profile
from jumar.profiling.views import Options
from tests.profiling.generated import profile_of, training


def _data(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found
    return json.loads(found[1])


def _texts(text: str) -> str:
    """The page without its data and script, as a person reads it."""
    return unescape(re.sub(r"<script.*?</script>|<style.*?</style>|<[^>]*>", " ", text, flags=re.S))


def test_page_limits_match_the_measured_ones() -> None:
    assert (rendering.MAX_ROWS, rendering.LONG_PROFILE) == (500, 300_000)


@pytest.mark.parametrize("rows", [4, 5])
def test_table_is_truncated_only_if_it_has_more_rows(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "MAX_ROWS", 4)
    text = _texts(page(training(steps=rows), options=Options(top=0)))
    assert (
        "the first 4 of 5 rows; all: jumar profile show PROFILE --view variability" in text
    ) == (rows == 5)


@pytest.mark.parametrize("most", [45, 44])
def test_slow_views_are_omitted_above_a_number_of_ops(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "LONG_PROFILE", most)
    profile = training(steps=5)
    assert profile.ops.height == 45
    assert ("--view fusion" in page(profile)) == (most == 44)


def test_at_most_thirty_missing_items_are_listed() -> None:
    missing = tuple(Missing(file=f"file-{number:02}", what="broken") for number in range(31))
    text = _texts(page(replace(training(steps=2), missing=missing)))
    assert re.findall(r"file-\d\d: broken", text) == [f"file-{n:02}: broken" for n in range(30)]


def test_chip_is_shown_with_the_views_that_use_its_rates(tmp_path: Path) -> None:
    row = {"name": "Test", "matches": ["t"], "cube_tflops": {"FLOAT": 1}, "vector_tflops": 1}
    row |= {"hbm_gb_s": 1, "cube_cores": 24, "vector_cores": 48, "launch_us": 1}
    file = tmp_path / "chip.json"
    file.write_text(json.dumps({"chips": [row]}))
    text = _texts(page(training(steps=2), options=Options(chip=file)))
    # With the list, the cores and the roofline.
    assert text.count("chip: Test: the user's file") == 3
    assert "chip: " not in _texts(page(training(steps=2, kind="cuda")))


def test_ops_without_times_have_neither_steps_nor_timeline() -> None:
    ops = [{"rank": 0, "name": "a", "type": "Add", "core": "AI_CORE", "duration_ns": 5}]
    assert _data(page(profile_of(ops))) == {"labels": {}, "timeline": None}
    lasting = _data(page(profile_of([ops[0] | {"start_ns": 1}, ops[0]])))
    assert lasting["labels"]["count"] == [1]
    assert set(lasting) == {"labels", "timeline", "todo", "texts"}


def test_comparison_is_shown_with_conclusion_notes_and_edits() -> None:
    def told(length: int, steps: int) -> Profile:
        rows = [
            {"rank": 0, "step": step, "name": "a", "type": "Add", "core": "AI_CORE"}
            | {"start_ns": step * length, "duration_ns": length, "input_types": "FLOAT"}
            for step in range(steps)
        ]
        return profile_of(rows)

    compared = compare(told(5_000_000, 3), told(3_000_000, 2))
    edits = [Edit(name="Sigmoid", target_list="black-list", own_ns=2_000_000, casts_ns=0)]
    text = _texts(page(told(3_000_000, 2), comparison=compared, edits=edits))
    assert "5.000" in text
    assert "-2.000" in text
    assert "2 steps of each" in text
    assert "made has 3 steady steps; 2 are compared" in text
    assert "in 16 bits it is 1.000 ms per step slower, and its casts take 0.000 ms" in text
    chinese = _texts(page(told(3_000_000, 2), comparison=compared, options=Options(language="zh")))
    assert "made 有 3 个稳定迭代，对比其中 2 个" in chinese
    assert "steps of each" not in chinese
    alone = _texts(page(told(3_000_000, 2)))
    assert "steady steps; 2 are compared" not in alone


def test_long_names_are_truncated_to_fit() -> None:
    long = replace(training(steps=2), source="s" * 500)
    text = page(long, comparison=compare(long, long))
    assert "Profile of " + "s" * 119 + "…" in text
    assert "s" * 399 + "…" in text
    assert "s" * 199 + "…" in text
    assert "s" * 400 not in text


def test_block_texts_leave_no_blank_lines() -> None:
    text = page(training(steps=2))
    assert text.startswith("<!doctype html>\n<html")
    body = re.sub(r"<script.*?</script>|<style.*?</style>", "", text, flags=re.S)
    assert not re.search(r"\n[ \t]*\n[ \t]*\n[ \t]*\n", body)
