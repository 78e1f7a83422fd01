"""The page is one file that runs nothing from a profile, and stays small."""

import base64
import hashlib
import json
import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unicodedata import category

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.profiling.comparison import compare
from jumar.profiling.page import page, rendering
from jumar.profiling.page.timeline import MAX_BOXES, MAX_IN_DETAIL
from jumar.profiling.profile import OPS_SCHEMA, Missing, Profile
from jumar.profiling.showing import json_for_script, short_types, shown
from jumar.profiling.views import VIEWS
from tests.profiling.generated import training

_HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>'\"&\u202e\x00"
)


class _Reader(HTMLParser):
    """Elements and attributes of a page, and the texts of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script":
            self.scripts[-1] += data


def _data(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found
    return json.loads(found[1])


def _hostile() -> Profile:
    profile = training(steps=2, casts=1)
    texts = ("name", "type", "module", "input_shapes", "input_types", "output_types", "core")
    ops = profile.ops.with_columns(pl.lit(_HOSTILE).alias(name) for name in (*texts, "stream"))
    missing = (Missing(file=_HOSTILE, what=_HOSTILE, needed_for=(_HOSTILE,)),)
    return replace(
        profile, ops=ops, source=_HOSTILE, producer=_HOSTILE, chip=_HOSTILE, missing=missing
    )


def test_hostile_names_are_escaped() -> None:
    profile = _hostile()
    text = page(profile, comparison=compare(training(steps=2), profile))
    read = _Reader(text)
    assert "img" not in read.tags
    assert len(read.scripts) == 2
    assert not [name for name, _ in read.attributes if name.startswith("on")]
    assert not {"\u202e", "\x00"} & set(text)


def test_content_policy_allows_only_the_pages_script() -> None:
    text = page(training(steps=2))
    read = _Reader(text)
    policy = next(value for _, value in read.attributes if value and "default-src" in value)
    digest = base64.b64encode(hashlib.sha256(read.scripts[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert not [name for name, _ in read.attributes if name in ("src", "href", "style", "action")]


@given(st.text())
@settings(max_examples=50)
def test_any_text_survives_in_the_data_without_ending_the_script(text: str) -> None:
    written = json_for_script([text])
    assert json.loads(written) == [text]
    assert not {"<", ">", "&"} & set(written)
    assert all(letter.isprintable() or category(letter) == "Zs" for letter in shown(text))


def test_op_table_accounts_for_all_time() -> None:
    profile = training(steps=3, casts=2, ranks=2)
    groups = _data(page(profile))["labels"]
    assert sum(groups["total"]) == int(profile.ops["duration_ns"].sum())
    assert sum(groups["count"]) == profile.ops.height


def test_every_timeline_level_covers_every_op() -> None:
    profile = training(steps=200, casts=20)
    times = _data(page(profile))["timeline"]
    assert len(times["levels"]) > 1
    assert times["levels"][-1]["width"] == 0
    for level in times["levels"]:
        counts = [sum(lane[3]) or len(lane[0]) for lane in level["lanes"]]
        assert sum(counts) == profile.ops.height


def test_profile_without_ops_has_a_page() -> None:
    profile = replace(training(steps=2), ops=pl.DataFrame(schema=dict(OPS_SCHEMA)))
    assert "Timeline" not in page(profile)


def _many(count: int) -> Profile:
    """So many ops of random types and lengths, with more shapes than fit on a page."""
    row = pl.int_range(count, eager=True)
    drawn = row.hash(seed=1)
    length = (drawn % 9_000 + 100).cast(pl.Int64)
    columns = {
        "rank": pl.Series([0] * count),
        "step": row * 10 // count,
        "stream": (drawn % 2).cast(pl.String),
        "name": row.cast(pl.String),
        "type": "Op" + (drawn % 50).cast(pl.String),
        "core": pl.Series(["AI_CORE"] * count),
        "start_ns": (length + 50).cum_sum() - length,
        "duration_ns": length,
        "input_shapes": (drawn % 9_000).cast(pl.String) + ",64",
        "input_types": pl.Series(["FLOAT"] * count),
    }
    ops = pl.DataFrame(
        {
            name: columns.get(name, pl.Series([None] * count)).cast(kind)
            for name, kind in OPS_SCHEMA.items()
        }
    )
    return Profile(source="many", producer="jumar", kind="npu", ops=ops)


def test_many_ops_in_many_groups_stay_below_the_limit() -> None:
    text = page(_many(60_000))
    assert len(text) < 6_000_000
    times = _data(text)["timeline"]
    boxes = sum(len(lane[0]) for level in times["levels"] for lane in level["lanes"])
    assert boxes <= MAX_BOXES
    groups = _data(text)["labels"]
    assert sum(groups["count"]) == 60_000
    assert len(groups["type"]) <= 4_100


def test_step_of_two_hundred_thousand_ops_is_drawn_in_seconds() -> None:
    count = 200_000
    many = _many(count)
    cast = pl.int_range(count) % 4 == 1
    types = {"input_types": ("FLOAT", "FLOAT16"), "output_types": ("FLOAT16", "FLOAT")}
    there = pl.int_range(count) % 8 == 1
    ops = many.ops.with_columns(
        pl.lit(0, pl.Int64).alias("step"),
        pl.when(cast).then(pl.lit("Cast")).otherwise("type").alias("type"),
        pl.lit("64,64").alias("input_shapes"),
        *(
            pl.when(cast & there).then(pl.lit(one)).otherwise(pl.lit(other)).alias(name)
            for name, (one, other) in types.items()
        ),
    )
    begin = time.process_time()
    text = page(replace(many, ops=ops))
    assert time.process_time() - begin < 8
    assert len(text) < 4_000_000
    assert "cancel out" in text


@given(st.lists(st.sampled_from(("FLOAT", "INT64", "BF16", "")), min_size=1, max_size=30))
def test_abbreviated_dtypes_keep_their_count(types: list[str]) -> None:
    said = short_types(";".join(types) + "|FLOAT")
    taken, given_types = said.split(" → ")
    assert given_types == "FLOAT"
    counted = [part.partition(" x ") for part in re.split("; ?", taken)]
    assert sum(int(count or 1) for _, _, count in counted) == len(types)


def test_truncated_step_has_every_op_of_every_lane_up_to_the_cut() -> None:
    many = _many(60_000)
    profile = replace(many, ops=many.ops.with_columns(pl.lit(0, pl.Int64).alias("step")))
    level = _data(page(profile))["timeline"]["levels"][-1]
    origin = profile.ops["start_ns"].min()
    starts = profile.ops["start_ns"] - origin
    inside = profile.ops.filter((starts >= level["from"]) & (starts < level["to"]))
    assert inside.height == MAX_IN_DETAIL
    by_stream = inside.group_by("stream").len().sort("stream")["len"].to_list()
    assert [len(lane[0]) for lane in level["lanes"]] == by_stream


def test_real_sample_names_its_bottleneck(shared: Path) -> None:
    from jumar.profiling import read

    text = page(read(shared / "data/msprof/torch_npu_level1_2rank"))
    assert "73.204 ms idle" in text
    assert "TransData + Transpose take 17.4 % of compute time" in text


def test_long_profile_omits_slow_views_and_says_how_to_see_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = [view.name for view in VIEWS.values() if view.slow]
    assert slow == ["fusion"]
    whole = page(_many(300))
    monkeypatch.setattr(rendering, "LONG_PROFILE", 299)
    short = page(_many(300))
    for name in slow:
        assert f"jumar profile show PROFILE --view {name}" not in whole
        assert f"more than 299 ops: jumar profile show PROFILE --view {name}" in short


def test_long_table_is_truncated_and_gives_its_total_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = training(steps=9)
    whole = page(profile)
    monkeypatch.setattr(rendering, "MAX_ROWS", 4)
    cut = page(profile)
    line = "the first 4 of 9 rows; all: jumar profile show PROFILE --view variability --top 0"
    assert line not in whole
    assert line in cut
