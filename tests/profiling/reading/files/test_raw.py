"""Raw folders that nobody exported: the command that does, and doing it where CANN is."""

from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.profiling import read
from jumar.profiling.reading.files import raw
from jumar.profiling.reading.files.raw import export, export_command, raw_folders, unexported_hint

_HEADER = "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)"


def _raw(folder: Path, *, unified: bool = True) -> Path:
    """Raw data of msprof as CANN leaves it."""
    name = "unaging.additional.type_info_dic.slice_0" if unified else "Framework.task_desc.0"
    for place, file in (("host/data", name), ("device_0/data", "ts_track.data.0.slice_0")):
        (folder / place).mkdir(parents=True)
        (folder / place / file).write_bytes(b"\x00")
    (folder / "device_0" / "start_info.0").write_text("{}")
    return folder


@pytest.mark.parametrize(
    ("name", "unified", "commands"),
    [
        (
            "PROF_000001_2026",
            True,
            ["msprof --export=on --output={folder}, with CANN 6.2.RC2, 6.3.RC2 or later"],
        ),
        (
            "PROF_000001_2022",
            False,
            [
                "msprof --export=on --output={folder}, with the CANN 6.0 or 6.1",
                "msprof.py import -dir {folder}, then",
                "msprof.py export summary -dir {folder}",
            ],
        ),
        ("w_1_ascend_pt/PROF_1", True, ["from torch_npu.profiler.profiler import analyse"]),
        ("w_1_ascend_ms/PROF_1", True, ["from mindspore.profiler.profiler import analyse"]),
    ],
)
def test_raw_data_error_has_the_export_command_of_its_release(
    name: str, unified: bool, commands: list[str], tmp_path: Path
) -> None:
    folder = _raw(tmp_path / name, unified=unified)
    with pytest.raises(UserError) as caught:
        read(tmp_path)
    for command in commands:
        assert command.format(folder=folder) in caught.value.todo


def test_raw_data_next_to_any_table_is_named_unless_torch_npu_analysed_it(tmp_path: Path) -> None:
    folder = _raw(tmp_path / "PROF_000001_2026")
    (tmp_path / "kernel_details.csv").write_text(f"{_HEADER}\na,Mul,AI_CORE,1,2\n")
    (gap,) = (gap for gap in read(tmp_path).missing if "not read" in gap.what)
    assert gap.file == str(folder)
    assert gap.what == f"not read: raw data, never exported; {export_command(folder)}"
    # A renamed `*_ascend_pt` contains the tables and their raw data.
    output = tmp_path / "ASCEND_PROFILER_OUTPUT"
    output.mkdir()
    (tmp_path / "kernel_details.csv").rename(output / "kernel_details.csv")
    assert not [gap for gap in read(tmp_path).missing if "not read" in gap.what]
    assert export([tmp_path]) == []


def test_exported_data_is_not_raw(tmp_path: Path) -> None:
    folder = _raw(tmp_path / "PROF_000001_2026")
    assert raw_folders(tmp_path) == [folder]
    (folder / "mindstudio_profiler_output").mkdir()
    assert raw_folders(tmp_path) == []


def test_raw_folder_next_to_an_exported_one_is_named(tmp_path: Path) -> None:
    raw = _raw(tmp_path / "PROF_000001_2026")
    output = _raw(tmp_path / "PROF_000002_2026") / "mindstudio_profiler_output"
    output.mkdir()
    (output / "op_summary_1.csv").write_text(f"{_HEADER}\na,Mul,AI_CORE,10.000,4\n")
    (gap,) = (gap for gap in read(tmp_path).missing if "never exported" in gap.what)
    assert gap.file == str(raw)
    assert f"msprof --export=on --output={raw}" in gap.what


def _program(place: Path, lines: str) -> None:
    place.mkdir(parents=True)
    (place / "msprof").write_text(f"#!/bin/sh\n{lines}\n")
    (place / "msprof").chmod(0o755)


def test_msprof_exports_if_cann_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _raw(tmp_path / "PROF_000001_2026")
    place = tmp_path / "cann" / "tools" / "profiler" / "bin"
    _program(
        place,
        'test "$1" = --export=on || exit 3\n'
        'out="${2#--output=}/mindstudio_profiler_output"\nmkdir "$out"\n'
        f'printf "{_HEADER}\\na,Mul,AI_CORE,10.000,4\\n" > "$out/op_summary_1.csv"',
    )
    monkeypatch.setenv("ASCEND_TOOLKIT_HOME", str(tmp_path / "cann"))
    assert export([tmp_path]) == [folder]
    assert read(folder).ops["name"].to_list() == ["a"]
    assert export([tmp_path]) == []


@pytest.mark.parametrize(
    ("lines", "said"), [("exit 7", "exit status 7"), ("exit 0", "it wrote no tables")]
)
def test_failing_msprof_is_an_error(
    lines: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _raw(tmp_path / "PROF_000001_2026")
    _program(tmp_path / "bin", lines)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    with pytest.raises(UserError, match=said):
        export([tmp_path])


def test_without_msprof_the_command_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _raw(tmp_path / "PROF_000001_2026")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("ASCEND_TOOLKIT_HOME", raising=False)
    with pytest.raises(UserError, match="msprof was not found") as caught:
        export([folder])
    assert f"--output={folder}" in caught.value.todo


def test_raw_folder_message_has_the_whole_command(tmp_path: Path) -> None:
    assert unexported_hint(tmp_path) == ""
    assert unexported_hint(tmp_path / "missing") == ""
    folder = _raw(tmp_path / "PROF_1 x")
    told = f"msprof --export=on --output='{folder}', with CANN 6.2.RC2, 6.3.RC2 or later"
    assert export_command(folder) == told
    more = "Where CANN is installed, `jumar profile show --export` does this for msprof's folders."
    one = f"This is raw data that was never exported. Run: {told}. {more}"
    assert unexported_hint(tmp_path) == one
    _raw(tmp_path / "PROF_2")
    assert unexported_hint(tmp_path) == one.replace("exported.", "exported (2 folders).", 1)
    torch = _raw(tmp_path / "t/w_ascend_pt/PROF_1").parent
    assert export_command(torch) == (
        "python3 -c 'from torch_npu.profiler.profiler import analyse; "
        f"""analyse('"'"'{torch.parent}'"'"')', where torch_npu and CANN are installed"""
    )


@pytest.mark.parametrize(
    "inner",
    [
        *("mindstudio_profiler_output", "summary", "timeline", "device_0/summary", "host/timeline"),
        *("msprof_1.db",),
    ],
)
def test_folder_with_tables_at_any_depth_counts_as_exported(tmp_path: Path, inner: str) -> None:
    folder = _raw(tmp_path / "PROF_1")
    (folder / inner).mkdir()
    assert raw_folders(tmp_path) == []


def test_raw_folders_have_data_and_are_sorted_and_not_nested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("b/PROF_2", "a/PROF_3", "a/w_ascend_ms/PROF_4", "c/w_ascend_pt/PROF_5", "PROFX")
    for name in names:
        _raw(tmp_path / name)
    (tmp_path / "PROF_9" / "host").mkdir(parents=True)
    (tmp_path / "PROF_8" / "device_1" / "data").mkdir(parents=True)
    (tmp_path / "e_ascend_pt" / "PROF_1").mkdir(parents=True)
    (tmp_path / "c/w_ascend_pt/ASCEND_PROFILER_OUTPUT").mkdir()
    expected = [tmp_path / name for name in ("PROF_8", "a/PROF_3", "a/w_ascend_ms", "b/PROF_2")]
    assert raw_folders(tmp_path) == expected
    assert raw_folders(tmp_path / "a/PROF_3") == [tmp_path / "a/PROF_3"]
    # The top, and PROFX with the four folders in it, which are looked at before PROF_8.
    for most, found in ((6, []), (7, expected[:1])):
        monkeypatch.setattr(raw, "_MAX_FOLDERS", most)
        assert raw_folders(tmp_path) == found
