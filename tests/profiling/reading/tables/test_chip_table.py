"""Our own table of the machine's rates."""

from pathlib import Path

import pytest

from jumar.profiling.reading.events import BrokenJson
from jumar.profiling.reading.tables.chip_table import read_chip_table


def test_chip_table_is_kept_as_text_up_to_a_size(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"a\xff" + b" " * ((1 << 20) - 2))
    content = read_chip_table(path, "shown", "chips")
    assert (content.file, content.kind, list(content.statistics)) == ("shown", "chips", ["chips"])
    assert content.statistics["chips"].to_dicts() == [{"json": "a�" + " " * ((1 << 20) - 2)}]
    path.write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(BrokenJson, match=r"^larger than 1 MiB, so not a chip table$"):
        read_chip_table(path, "shown", "chips")
