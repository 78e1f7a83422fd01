"""Reading at offsets from threads, forks and pickled copies."""

import multiprocessing
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jumar.data.records import offset_files
from jumar.data.records.offset_files import OffsetFiles, read_whole, too_large


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    made = [tmp_path / str(number) for number in range(5)]
    for number, path in enumerate(made):
        path.write_bytes(bytes([number]) * 1000 + b"end")
    return made


def check(files: OffsetFiles, rounds: int) -> bool:
    return all(
        files.read(number % 5, number % 1000, 1) == bytes([number % 5]) for number in range(rounds)
    )


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_threads_read_correctly_with_few_open_files(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offset_files, "MAX_OPEN", 2)
    before = open_files()
    files = OffsetFiles(paths)
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(check, [files] * 16, [500] * 16))
    assert open_files() <= before + 2
    del files
    assert open_files() == before


def test_forked_workers_read_correctly_from_files_opened_earlier(paths: list[Path]) -> None:
    files = OffsetFiles(paths)
    assert check(files, 10)
    context = multiprocessing.get_context("fork")
    workers = [
        context.Process(target=lambda: os._exit(0 if check(files, 3000) else 1)) for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    assert check(files, 3000)
    for worker in workers:
        worker.join(30)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]


def test_pickled_copy_opens_its_own_files(paths: list[Path]) -> None:
    files = OffsetFiles(paths)
    check(files, 10)
    assert len(pickle.dumps(files)) < 1000
    assert check(pickle.loads(pickle.dumps(files)), 100)


def test_reads_are_shortened_at_the_end_of_the_file(paths: list[Path]) -> None:
    files = OffsetFiles(paths)
    assert files.read(1, 999, 100) == b"\x01end"
    assert files.read(1, 5000, 100) == b""


def test_named_pipe_is_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")
    with pytest.raises(ValueError, match="not a regular file"):
        read_whole(tmp_path / "pipe.jpg")


def test_oversized_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(300 * 2**20)
    with pytest.raises(ValueError, match="the maximum is 256 MiB"):
        read_whole(tmp_path / "sparse")


def test_open_files_are_limited_and_the_oldest_is_closed_first(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offset_files.MAX_OPEN == 256
    monkeypatch.setattr(offset_files, "MAX_OPEN", 3)
    before = open_files()
    files = OffsetFiles(paths)
    counts: list[int] = []
    for which in (0, 1, 2, 0, 3):
        assert files.read(which, 1, 2) == bytes([which]) * 2
        counts.append(open_files() - before)
    assert counts == [1, 2, 3, 3, 3]
    # 0 was the first to be opened: it is opened again, and finds another file there.
    for path in paths:
        path.unlink()
        path.write_bytes(b"new")
    assert [files.read(which, 0, 3) for which in (1, 2, 3, 0)] == [
        *(b"\1\1\1", b"\2\2\2", b"\3\3\3", b"new")
    ]


def test_file_is_reopened_after_a_failed_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.mkdir()
    files = OffsetFiles([path])
    with pytest.raises(IsADirectoryError):
        files.read(0, 0, 4)
    path.rmdir()
    path.write_bytes(b"text")
    assert files.read(0, 1, 3) == b"ext"
    with pytest.raises(FileNotFoundError):
        OffsetFiles([tmp_path / "none"]).read(0, 0, 1)


def test_whole_file_may_be_exactly_as_large_as_allowed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert read_whole(path) == read_whole(path, 5) == b"12345"
    with pytest.raises(ValueError, match=r"^5 B for one image; the maximum is 4 B$"):
        read_whole(path, 4)
    assert offset_files.MAX_IMAGE_BYTES == 256 * 2**20
    assert too_large(3 * 2**20) == "3 MiB for one image; the maximum is 256 MiB"
