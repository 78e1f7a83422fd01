"""Logs as files, folders, archives and streams, whole and damaged."""

import gzip
import io
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from jumar.failures import fault_table, read_job
from jumar.failures.reading import sources
from jumar.ground.errors import UserError
from tests.failures.explaining import explain, named

LINE = "RuntimeError: NPU out of memory. Tried to allocate 5.03 GiB\n"


def test_folder_is_read_without_non_log_files(tmp_path: Path) -> None:
    (tmp_path / "worker.log").write_text(LINE)
    (tmp_path / "train.py").write_text("raise ValueError: out of memory\n")
    (tmp_path / "core").write_bytes(b"\x7fELF" + bytes(4000))
    explanation = explain(tmp_path)
    assert named(explanation) == ["npu-out-of-memory"]
    assert explanation.job.files == [str(tmp_path / "worker.log")]
    assert explanation.job.unread == {str(tmp_path / "core"): "not text"}


@pytest.mark.parametrize("ending", ["zip", "gz", "tar", "tar.gz", "tgz"])
def test_archives_are_read(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"logs.{ending}"
    data = LINE.encode()
    if ending == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("node1/rank3.log", data)
    elif ending == "gz":
        path.write_bytes(gzip.compress(data))
    else:
        with tarfile.open(path, "w:gz" if ending.endswith("gz") else "w") as tar:
            info = tarfile.TarInfo("node1/rank3.log")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    explanation = explain(path)
    assert named(explanation) == ["npu-out-of-memory"]
    assert explanation.candidates[0].ranks == (() if ending == "gz" else (3,))


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LINE.encode())))
    job = read_job(["-"], fault_table())
    assert [each.fault.id for each in job.sightings] == ["npu-out-of-memory"]
    assert job.files == ["stdin"]


def test_truncated_compressed_log_is_read_as_far_as_possible(tmp_path: Path) -> None:
    packed = gzip.compress((LINE + "\n".join(map(str, range(9999)))).encode())
    (tmp_path / "log.gz").write_bytes(packed[: len(packed) // 2])
    explanation = explain(tmp_path / "log.gz")
    assert named(explanation) == ["npu-out-of-memory"]
    assert explanation.job.unread


def test_zip_bomb_is_read_only_up_to_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MIN_UNPACKED_LIMIT", 1 << 20)
    monkeypatch.setattr(sources, "MAX_EXPANSION", 2)
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.log", b"x" * 99 + b"\n" + (b"y" * 99 + b"\n") * 40_000 + LINE.encode())
    job = read_job([str(path)], fault_table())
    assert not job.sightings
    assert job.lines * 100 < 2 << 20
    assert "only its first 1 MiB were read" in job.unread[f"{path}/a.log"]


def test_skipped_archive_members_are_not_unpacked_endlessly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MIN_UNPACKED_LIMIT", 1 << 20)
    monkeypatch.setattr(sources, "MAX_EXPANSION", 2)
    path = tmp_path / "bomb.tgz"
    with tarfile.open(path, "w:gz") as packed:
        for name, data in (("a.log", b"x\n"), ("b.bin", b"y" * (5 << 20)), ("c.log", b"z\n")):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            packed.addfile(member, io.BytesIO(data))
    assert [source.name for source in sources.sources_of([str(path)])] == [f"{path}/a.log"]


@pytest.mark.parametrize("ending", ["zip", "tar.gz"])
def test_many_members_share_the_limit_of_their_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr(sources, "MIN_UNPACKED_LIMIT", 1 << 20)
    monkeypatch.setattr(sources, "MAX_EXPANSION", 2)
    path = tmp_path / f"bomb.{ending}"
    data = (b"y" * 99 + b"\n") * 9_000
    if ending == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
            for number in range(30):
                zipped.writestr(f"{number}.log", data)
    else:
        with tarfile.open(path, "w:gz") as packed:
            for number in range(30):
                member = tarfile.TarInfo(f"{number}.log")
                member.size = len(data)
                packed.addfile(member, io.BytesIO(data))
    job = read_job([str(path)], fault_table())
    assert 9_000 <= job.lines < 20_000 + 30 * 700


@pytest.mark.parametrize(
    "data",
    [
        LINE.encode("utf-16"),
        "昇腾 训练\n".encode("gb18030") + LINE.encode(),
        b"\xff\xfe\x00 broken \xc3\x28\n"[2:] + LINE.encode(),
        b"\xef\xbb\xbf" + LINE.encode(),
        b"35%|###   | 35/100\r36%|###   | 36/100\r" + LINE.encode(),
        LINE.replace("\n", "\r\n").encode(),
        LINE.strip().encode(),
    ],
)
def test_any_encoding_and_line_ending_is_read(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_bytes(data)
    assert named(explain(tmp_path / "log.txt")) == ["npu-out-of-memory"]


def test_line_numbers_count_line_endings(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(f"a\r1%\r2%\nb\n{LINE}")
    assert explain(tmp_path / "log.txt").candidates[0].first.line == 3


@pytest.mark.parametrize("content", [b"", bytes(100)])
def test_no_readable_log_is_an_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_bytes(content)
    with pytest.raises(UserError, match="no line of text"):
        explain(tmp_path / "log.txt")


def test_path_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such"):
        explain(tmp_path / "nothing.log")


def test_damaged_archive_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "logs.zip").write_bytes(b"PK\x03\x04" + b"no zip" * 20)
    with pytest.raises(UserError, match="not a readable zip"):
        explain(tmp_path / "logs.zip")
