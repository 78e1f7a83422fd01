import csv
import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import pytest

from jumar.experiments.run_reading import read_run
from jumar.experiments.table import Combination, Table, build_table
from jumar.experiments.table_forms import (
    memory_text,
    number_text,
    to_csv,
    to_json,
    to_markdown,
    to_text,
)
from tests.experiments.run_files import precision, write_run

WHY = "many CPU kernels compute fp16 slowly"
FAILURE = {"step": 40, "objective": "classifier", "reason": "the loss is not finite"}


def made(root: Path, rows: dict[tuple[str, ...], dict[str, Any]]) -> Table:
    combinations = [
        Combination(
            assignments=assignments,
            runs=(read_run(write_run(root / str(number), lines=[], **changes)),),
        )
        for number, (assignments, changes) in enumerate(rows.items())
    ]
    return build_table("alexnet", combinations)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    low = precision("allow_mix_precision", "bfloat16", WHY)
    fast = {"samples_per_second": 800.0, "step_ms_median": 64.0}
    return made(
        tmp_path,
        {
            ("precision.mode=must_keep_origin_dtype",): {},
            ("precision.mode=allow_mix_precision",): {"precision": low, "throughput": fast},
            ("precision.mode=allow_fp32_to_fp16",): {
                "metrics": {"top1": 60.0, "top5": 99.0, "loss": 2.0}
            },
            ("precision.mode=force_fp16",): {
                "state": "failed",
                "failure": FAILURE,
                "metrics": {},
                "throughput": None,
                "memory_peak_bytes": None,
            },
        },
    )


def test_markdown_has_the_format_of_the_seeds_table(table: Table) -> None:
    lines = to_markdown(table).splitlines()
    assert lines[:6] == [
        "| precision.mode | eval loss | top1 % | batch time | speed-up | memory |",
        "| --- | --- | --- | ---: | ---: | ---: |",
        "| must_keep_origin_dtype | Baseline (0.2500) | Baseline (96.00) | 160 ms | 1.00x "
        "| 2.00 GiB |",
        "| allow_mix_precision [1] | = Baseline (0.2500) | = Baseline (96.00) | 64 ms | 2.50x "
        "| 2.00 GiB |",
        "| allow_fp32_to_fp16 | > Baseline (2.000) | &lt; Baseline (60.00) | 160 ms | 1.00x "
        "| 2.00 GiB |",
        "| force_fp16 [2] | N/A, the loss is not finite (step 40, objective classifier) | N/A "
        "| N/A | N/A | N/A |",
    ]
    assert f"[1] computed in bfloat16: {WHY}" in lines
    assert "[2] not available: the loss is not finite (step 40, objective classifier)" in lines


def test_markdown_has_a_number_without_comparison_before_the_reason(tmp_path: Path) -> None:
    table = made(
        tmp_path,
        {
            ("optimizer.momentum=0.5",): {"eval_samples": None, "metrics": {"top1": 60.0}},
            ("optimizer.momentum=0.9",): {"eval_samples": None, "metrics": {"top1": 61.0}},
        },
    )
    reason = "N/A, no tolerance with a single baseline seed: use --repeats"
    (line,) = [line for line in to_markdown(table).splitlines() if line.startswith("| 0.9 ")]
    assert f"| 0.3100; {reason} | 61.00; N/A |" in line


def test_plain_text_has_relations_footnotes_and_the_tolerance(table: Table) -> None:
    text = to_text(table)
    rows = {line.split()[0]: line for line in text.splitlines() if line}
    assert "= Baseline" in rows["allow_mix_precision"]
    assert "< Baseline" in rows["allow_fp32_to_fp16"]
    assert "> Baseline" in rows["allow_fp32_to_fp16"]
    assert "[2]" in rows["force_fp16"]
    assert "n = 400 evaluation samples" in " ".join(text.split())
    assert "first 5 steps, evaluation, checkpoints" in text


def test_plain_text_explains_each_missing_comparison_once(tmp_path: Path) -> None:
    failed = {"state": "failed", "failure": FAILURE, "metrics": {}, "throughput": None}
    table = made(
        tmp_path,
        {
            ("optimizer.momentum=0.5",): {"eval_samples": None, "metrics": {"top1": 60.0}},
            ("optimizer.momentum=0.9",): {"eval_samples": None, "metrics": {"top1": 61.0}},
            ("optimizer.momentum=0.99",): {**failed, "train_loss": None},
        },
    )
    text = to_text(table)
    rows = {line.split()[0]: line for line in text.splitlines() if line}
    reason = "no tolerance with a single baseline seed: use --repeats"
    assert rows["0.9"].count("N/A [1]") == 2
    assert f"[1] {reason}" in text
    assert rows["0.99"].startswith("0.99 [2]")
    assert "N/A [" not in rows["0.99"]
    assert text.count(reason) == 1


@pytest.mark.parametrize("num_fields", [1, 2, 3, 4])
def test_plain_text_fits_100_columns_however_many_fields_are_varied(
    tmp_path: Path, num_fields: int
) -> None:
    fields = ["precision.mode", "threads.intra_op", "optimizer.learning_rate", "data.path"]
    values = ["must_keep_origin_dtype", "2", "0.00012345", "/a/long path/to/some/pictures/of/mine"]
    assignments = tuple(
        f"{field}={value}" for field, value in list(zip(fields, values, strict=True))[:num_fields]
    )
    text = to_text(made(tmp_path, {assignments: {}}))
    assert max(len(line) for line in text.splitlines()) <= 100
    letters = "".join(text.split())
    # Of four fields even a number is broken, which is still better than a line too long.
    for value in values[: num_fields if num_fields < 4 else 0]:
        assert all(part in letters for part in value.replace("/", "_").split("_"))


def test_csv_preserves_numbers_exactly_and_contains_no_formula(table: Table) -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert [row["precision.mode"] for row in rows] == [row.values[0] for row in table.rows]
    for read, row in zip(rows, table.rows, strict=True):
        for name, value in {
            "evaluation loss": row.loss.value,
            "evaluation loss tolerance": row.loss.tolerance,
            "top1 (%)": row.headline.value,
            "batch time (ms)": row.batch_time_ms,
            "speed-up": row.speed_up,
            "peak memory (bytes)": row.memory_peak_bytes,
        }.items():
            assert (float(read[name]) if read[name] else None) == value
        assert read["evaluation loss relation"] == row.loss.relation
        assert read["notes"] == "; ".join(row.notes)
        assert not any(cell.startswith("=") for cell in read.values())


def test_csv_disarms_a_value_that_a_spreadsheet_would_run(tmp_path: Path) -> None:
    table = made(tmp_path, {("a.b==HYPERLINK(1)", "c=-3", "d=1e-4"): {}})
    (row,) = csv.DictReader(io.StringIO(to_csv(table)))
    assert [row["a.b"], row["c"], row["d"]] == ["'=HYPERLINK(1)", "-3", "1e-4"]


def test_json_round_trips_the_whole_table(table: Table) -> None:
    read = json.loads(to_json(table))
    assert read == json.loads(json.dumps(dataclasses.asdict(table)))
    assert [row["headline"]["value"] for row in read["rows"]] == [
        row.headline.value for row in table.rows
    ]
    assert read["rows"][3]["loss"]["value"] is None
    assert read["explanations"] == list(table.explanations)


def test_substitution_is_shown_in_every_format(table: Table) -> None:
    for form in (to_text, to_markdown, to_csv, to_json):
        assert f"computed in bfloat16: {WHY}" in form(table)


def test_markdown_escapes_characters_that_would_break_the_table(tmp_path: Path) -> None:
    text = to_markdown(made(tmp_path, {("data.path=a|b<script>*x*",): {}}))
    row = text.splitlines()[2]
    assert r"a\|b&lt;script>\*x\*" in row
    assert row.count("|") - row.count(r"\|") == 7


@pytest.mark.parametrize(
    ("value", "text"),
    [(97.2, "97.20"), (100.0, "100.0"), (0.25, "0.2500"), (0.0, "0.000"), (1234567.0, "1.235e+06")],
)
def test_numbers_keep_significant_trailing_zeros(value: float, text: str) -> None:
    assert number_text(value, 4) == text


def test_memory_is_shown_in_a_suitable_unit() -> None:
    assert memory_text(None) == "N/A"
    assert memory_text(300 * 2**20) == "300 MiB"
    assert memory_text(3 * 2**29) == "1.50 GiB"
