"""`communication.json` of torch_npu."""

import json
from pathlib import Path
from typing import Any

from jumar.profiling.reading.communication import read_communication


def collective(elapse_ms: float) -> dict[str, Any]:
    times = {"Start Timestamp(us)": 1000.5, "Elapse Time(ms)": elapse_ms, "Transit Time(ms)": 1}
    return {"Communication Time Info": times, "Communication Bandwidth Info": {}}


def test_the_row_of_all_collectives_is_not_one_of_them(tmp_path: Path) -> None:
    file = tmp_path / "communication.json"
    rows = {
        "hcom_allReduce__1@7": collective(2.5),
        "hcom_allReduce__2@7": collective(4.0),
        "Total Op Info": collective(6.5),
    }
    file.write_text(json.dumps({"step4": {"p2p": {}, "collective": rows}}))
    part = read_communication(file, file.name, "communication")
    assert part.collectives is not None
    assert part.collectives["elapse_ns"].to_list() == [2_500_000, 4_000_000]
