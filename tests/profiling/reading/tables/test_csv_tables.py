"""Units that the headers of CSV files name."""

from pathlib import Path

import pytest

from jumar.profiling.reading import read


@pytest.mark.parametrize(
    ("unit", "size"), [("B", 1), ("KB", 1024), ("MB", 1024**2), ("GB", 1024**3)]
)
def test_sizes_are_powers_of_two(tmp_path: Path, unit: str, size: int) -> None:
    folder = tmp_path / "PROF_000001_20250101_ABC" / "mindstudio_profiler_output"
    folder.mkdir(parents=True)
    (folder / "operator_memory_20250101.csv").write_text(
        f"Name,Size({unit}),Allocation Time(us),Duration(us),Device_id\naten::empty,3,100.5,2.0,0\n"
    )
    table = read(tmp_path).statistics["operator_memory"]
    assert table["size_bytes"].to_list() == [3 * size]
