"""The timed process: its replies, and the hash that proves the effect of a setting."""

import io
import json
from pathlib import Path
from typing import Any

from jumar.runs.speed import SpeedRequest, answer_requests

SMALL = ("training.duration=2it", "threads.intra_op=1")


def replies(folder: Path, requests: str, *assignments: str) -> list[dict[str, Any]]:
    out = io.StringIO()
    request = SpeedRequest(
        what="small",
        assignments=(*SMALL, *assignments),
        imports=("tests.cli.small_recipe",),
        device="cpu",
        scratch=folder,
    )
    assert answer_requests(request, io.StringIO(requests), out) == 0
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_blocks_are_timed_on_request_beyond_the_length_of_the_recipe(tmp_path: Path) -> None:
    ready, first, second = replies(tmp_path, "measure 3\nmeasure 1\n")
    assert ready["kind"] == "ready"
    assert (first["steps"], second["steps"]) == (3, 1)
    for block in (first, second):
        assert block["seconds"] > 0
        assert 0 <= block["data_s"] <= block["seconds"]
        assert block["memory_bytes"] >= ready["memory_bytes"] > 0
    assert ready["device"] == "cpu"
    assert ready["on_host"]
    assert ready["workers"] == 0
    assert "not_evaluated" not in ready
    # The checkpoint whose memory belongs to the peak.
    assert list((tmp_path / "checkpoints").glob("*/model.safetensors"))


def test_weights_depend_on_the_seed_but_not_on_loader_processes(
    tmp_path: Path,
) -> None:
    alone = replies(tmp_path / "a", "")[0]
    helped, block = replies(tmp_path / "b", "measure 4\n", "data.workers=2")
    seeded = replies(tmp_path / "c", "", "seed=2")[0]
    assert alone["hashes"] == helped["hashes"]
    assert alone["hashes"]["weights"] != seeded["hashes"]["weights"]
    assert helped["workers"] == 2
    assert helped["memory_bytes"] > alone["memory_bytes"]
    assert block["loader_cpu_s"] >= 0


def test_run_is_timed_from_its_newest_checkpoint_and_not_modified(tmp_path: Path) -> None:
    from tests.cli.in_process import train

    train("--run-dir", "run", cwd=tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    out = io.StringIO()
    request = SpeedRequest(
        what=str(tmp_path / "run"),
        imports=("tests.cli.small_recipe",),
        device="cpu",
        scratch=tmp_path / "scratch",
    )
    answer_requests(request, io.StringIO("measure 1\n"), out)
    assert len(out.getvalue().splitlines()) == 2
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")} == before
    assert list((tmp_path / "scratch").iterdir())
