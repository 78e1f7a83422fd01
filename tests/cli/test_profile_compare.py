"""`jumar profile compare`: what it prints, writes and leaves with."""

import csv
import json
from pathlib import Path

import pytest

from tests.cli.in_process import SMALL_RECIPE, here

_HEADER = (
    "Step Id,Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),"
    "Block Num,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,"
    "Output Formats"
)


def _kernels(path: Path, *ops: tuple[str, float, str, str]) -> Path:
    """A kernel_details.csv of three equal steps: ops by type, microseconds, dtypes in and out."""
    path.parent.mkdir(parents=True)
    now = 1_700_000_000_000_000
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(_HEADER.split(","))
        for step in range(3):
            for place, (kind, length, taken, given) in enumerate(ops):
                report = ("8,8", taken, "ND", "8,8", given, "ND")
                core = "AI_CORE" if kind == "MatMulV2" else "AI_VECTOR_CORE"
                name = f"{kind}_{place}"
                rows.writerow([step, 0, name, kind, core, f"{now}.000", length, 0, 20, *report])
                now += round(length)
    return path


def _pair(folder: Path) -> tuple[Path, Path]:
    wide = ("FLOAT", "FLOAT")
    low = ("FLOAT16", "FLOAT16")
    before = (("MatMulV2", 1000, *wide), ("SoftmaxV2", 300, *wide), ("MatMulV2", 1000, *wide))
    after = (
        ("Cast", 20, "FLOAT", "FLOAT16"),
        ("MatMulV2", 250, *low),
        ("Cast", 40, "FLOAT16", "FLOAT"),
        ("SoftmaxV2", 300, *wide),
        ("Cast", 50, "FLOAT", "FLOAT16"),
        ("MatMulV2", 250, *low),
    )
    return (
        _kernels(folder / "fp32" / "kernel_details.csv", *before),
        _kernels(folder / "mixed" / "kernel_details.csv", *after),
    )


def test_parts_in_json_add_up_to_the_difference(tmp_path: Path) -> None:
    before, after = _pair(tmp_path)
    report = json.loads(here("profile", "compare", before, after, "--json", cwd=tmp_path).out)
    assert report["steps"] == 3
    assert report["delta_ns"] == 3 * (910_000 - 2_300_000)
    assert sum(part["delta_ns"] for part in report["parts"]) == report["delta_ns"]
    assert {part["part"]: part["delta_ns"] for part in report["parts"]} == {
        "kernel": 0,
        "dtype": -4_500_000,
        "casts": 330_000,
    }


def test_written_mixlist_is_accepted_by_train(tmp_path: Path) -> None:
    before, after = _pair(tmp_path)
    done = here("profile", "compare", before, after, "--mixlist", "edits.json", cwd=tmp_path)
    assert "0.090  white-list: SoftmaxV2" in done.out
    edits = json.loads((tmp_path / "edits.json").read_text("utf-8"))
    assert edits == {"white-list": {"to-add": ["SoftmaxV2"]}}
    here(
        "train",
        *SMALL_RECIPE,
        "--dry-run",
        "--set",
        "precision.mode=allow_mix_precision_bf16",
        "--set",
        "precision.modify_mixlist=edits.json",
        cwd=tmp_path,
    )


def test_no_mixlist_is_written_if_no_dtype_changed(tmp_path: Path) -> None:
    before, _ = _pair(tmp_path)
    done = here("profile", "compare", before, before, "--mixlist", "no.json", cwd=tmp_path, code=2)
    assert "no op changed its dtype" in done.message
    assert not (tmp_path / "no.json").exists()


def test_further_profiles_are_compared_with_the_first(tmp_path: Path) -> None:
    before, after = _pair(tmp_path)
    done = here("profile", "compare", before, after, before, cwd=tmp_path)
    lines = {
        line.rsplit(maxsplit=2)[0].strip(): line.split()[-2:]
        for line in done.out.splitlines()
        if line
    }
    assert lines["change"] == ["-1.39", "0"]
    assert lines["casts"] == ["0.11", "0"]


def test_page_and_table_are_written(tmp_path: Path) -> None:
    before, after = _pair(tmp_path)
    here("profile", "compare", before, after, "--page", "p.html", "--csv", "ops.csv", cwd=tmp_path)
    assert "Edits of modify_mixlist" in (tmp_path / "p.html").read_text("utf-8")
    with (tmp_path / "ops.csv").open(encoding="utf-8") as file:
        assert sum(int(row["delta_ns"]) for row in csv.DictReader(file)) == -4_170_000


def test_files_that_are_not_profiles_are_refused_by_name(tmp_path: Path) -> None:
    before, _ = _pair(tmp_path)
    done = here("profile", "compare", before, tmp_path / "none", cwd=tmp_path, code=2)
    assert "none" in done.message


@pytest.mark.parametrize(
    ("option", "name", "reason"),
    [
        ("--csv", "fp32/changes.csv", "into the folder of the profile"),
        ("--page", "fp32/kernel_details.csv", "would overwrite a file of the profile"),
        ("--mixlist", "fp32/kernel_details.csv", "would overwrite a file of the profile"),
    ],
)
def test_compared_profiles_are_not_overwritten(
    tmp_path: Path, option: str, name: str, reason: str
) -> None:
    before, after = _pair(tmp_path)
    content = before.read_bytes()
    done = here("profile", "compare", before.parent, after, option, name, cwd=tmp_path, code=2)
    assert reason in done.message
    assert [(file.name, file.read_bytes()) for file in before.parent.iterdir()] == [
        ("kernel_details.csv", content)
    ]


@pytest.mark.parametrize(
    ("shown", "option", "name"),
    [
        ("fp32", "--csv", "fp32"),
        ("fp32", "--csv", "fp32/views"),
        ("fp32", "--page", "fp32/kernel_details.csv"),
        ("fp32/kernel_details.csv", "--page", "fp32/kernel_details.csv"),
    ],
)
def test_shown_profile_is_not_overwritten(
    tmp_path: Path, shown: str, option: str, name: str
) -> None:
    before = _pair(tmp_path)[0]
    content = before.read_bytes()
    here("profile", "show", shown, option, name, cwd=tmp_path, code=2)
    assert [file.read_bytes() for file in before.parent.iterdir()] == [content]
