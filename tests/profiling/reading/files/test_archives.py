"""Zips of profiles, unpacked in a safe place."""

import zipfile
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.profiling.reading.files import archives
from jumar.profiling.reading.files.archives import unpacked


def zipped(folder: Path, *members: tuple[str, bytes], stored: bool = False) -> Path:
    path = folder / "x.zip"
    with zipfile.ZipFile(path, "w", 0 if stored else zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def refused(path: Path) -> str:
    with pytest.raises(UserError) as caught, unpacked(path, "shown.zip"):
        pass
    assert caught.value.where == "shown.zip"
    assert caught.value.todo == "Unpack it yourself and pass the folder."
    return caught.value.what


def test_only_tables_are_unpacked_into_a_temporary_folder(
    tmp_path: Path,
) -> None:
    path = zipped(tmp_path, ("a/b.csv", b"1"), ("c\\D.JSON", b"2"), ("x.py", b"3"), ("e.csv/", b""))
    with unpacked(path, "x") as folder:
        found = {
            file.relative_to(folder).as_posix(): file.read_bytes()
            for file in folder.rglob("*")
            if file.is_file()
        }
        assert found == {"a/b.csv": b"1", "c/D.JSON": b"2"}
    assert not folder.exists()
    plain = tmp_path / "plain.csv"
    plain.write_bytes(b"PK\x03")
    for other in (plain, tmp_path):
        with unpacked(other, "x") as same:
            assert same == other


@pytest.mark.parametrize("name", ["/a.csv", "a/../../b.csv", "C:\\a.csv", "..\\a.csv"])
def test_members_that_point_outside_are_refused(tmp_path: Path, name: str) -> None:
    shown = name.replace("\\", "/")
    assert refused(zipped(tmp_path, (name, b"1"))).replace("\\", "/") == (
        f"'{shown}' is a path outside of the archive"
    )


def test_archive_with_too_many_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_FILES", 2)
    members = [(f"{number}.csv", b"1") for number in range(3)]
    with unpacked(zipped(tmp_path, *members[:2], ("x.py", b"")), "x") as folder:
        assert len(list(folder.iterdir())) == 2
    assert refused(zipped(tmp_path, *members)) == "contains more than 2 files"


@pytest.mark.parametrize("limit", ["fold", "largest"])
def test_archive_is_unpacked_only_up_to_a_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    content = b"a" * (3 << 20)
    path = zipped(tmp_path, ("a.csv", content), ("b.csv", b"b"))
    packed = path.stat().st_size
    room = len(content) + 1
    if limit == "largest":
        monkeypatch.setattr(archives, "MAX_UNPACKED", room)
        monkeypatch.setattr(archives, "MAX_EXPANSION", 1 << 20)
    else:
        # A megabyte more than so many times the archive.
        fold = -(-(room - (1 << 20)) // packed)
        monkeypatch.setattr(archives, "MAX_EXPANSION", fold)
    with unpacked(path, "x") as folder:
        assert (folder / "a.csv").stat().st_size == len(content)
    if limit == "largest":
        monkeypatch.setattr(archives, "MAX_UNPACKED", room - 1)
    else:
        monkeypatch.setattr(archives, "MAX_EXPANSION", fold - 1)
    assert refused(path) == "expands to far more than its size suggests"


def test_broken_archive_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(b"PK\x03\x04 and no more")
    assert refused(path) == "the archive is broken: File is not a zip file"
    whole = zipped(tmp_path, ("a.csv", b"1234567890"), stored=True).read_bytes()
    path.write_bytes(whole.replace(b"1234567890", b"1234567891", 1))
    assert refused(path).startswith("the archive is broken: Bad CRC-32")
    locked = bytearray(whole)
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(mark) + flags] |= 1
    path.write_bytes(locked)
    assert "password required" in refused(path)
    assert refused(path).startswith("the archive cannot be unpacked: ")
