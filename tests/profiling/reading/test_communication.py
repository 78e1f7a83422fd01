"""`communication.json` of torch_npu."""

import json
from pathlib import Path
from typing import Any

import pytest

from jumar.profiling.profile import COLLECTIVES_SCHEMA, LINKS_SCHEMA
from jumar.profiling.reading.communication import (
    read_communication,
    read_matrix,
    read_msprof_info,
    read_nothing,
    read_profiler_info,
)
from jumar.profiling.reading.events import BrokenJson
from jumar.profiling.reading.file_content import FileContent


def collective(elapse_ms: float) -> dict[str, Any]:
    times = {"Start Timestamp(us)": 1000.5, "Elapse Time(ms)": elapse_ms, "Transit Time(ms)": 1}
    return {"Communication Time Info": times, "Communication Bandwidth Info": {}}


def test_total_row_is_not_a_collective(tmp_path: Path) -> None:
    file = tmp_path / "communication.json"
    rows = {
        "hcom_allReduce__1@7": collective(2.5),
        "hcom_allReduce__2@7": collective(4.0),
        "Total Op Info": collective(6.5),
    }
    file.write_text(json.dumps({"step4": {"p2p": {}, "collective": rows}}))
    content = read_communication(file, file.name, "communication")
    assert content.collectives is not None
    assert content.collectives["elapse_ns"].to_list() == [2_500_000, 4_000_000]


def written(folder: Path, tree: object) -> Path:
    path = folder / "x.json"
    path.write_text(json.dumps(tree))
    return path


def read_tree(folder: Path, tree: object) -> FileContent:
    return read_communication(written(folder, tree), "shown.json", "communication")


def times(**milliseconds: object) -> dict[str, object]:
    return {f"{name.title()} Time(ms)": value for name, value in milliseconds.items()}


def test_every_time_and_transfer_of_a_collective_is_a_column(tmp_path: Path) -> None:
    spent = times(elapse=5, transit=2.5, wait="1", synchronization=0.5, idle=1.5)
    sent = {
        **{"Transit Size(MB)": 1.25, "Transit Time(ms)": 0.5, "Bandwidth(GB/s)": "2.5"},
        "Large Packet Ratio": 1,
    }
    nothing = {"Transit Size(MB)": 0, "Transit Time(ms)": 0}
    name = "hcom_broadcast__1@77"
    entry = {
        "Communication Time Info": {"Start Timestamp(us)": "10.5", **spent},
        "Communication Bandwidth Info": {"RDMA": sent, "HCCS": nothing, "PCIE": [1], "SDMA": sent},
    }
    tree = {"step12": {"p2p": {name: entry}, "collective": {"b@1": {"x": {}}}}, "stepx": 3}
    found = read_tree(tmp_path, tree)
    assert (found.file, found.kind, found.producer) == ("shown.json", "communication", "torch_npu")
    assert found.collectives is not None
    assert found.collectives.schema == dict(COLLECTIVES_SCHEMA)
    assert found.collectives.to_dicts() == [
        {
            **{"rank": None, "step": 12, "name": "hcom_broadcast__1", "group": "77"},
            **{"start_ns": 10_500, "elapse_ns": 5_000_000, "transit_ns": 2_500_000},
            **{"wait_ns": 1_000_000, "synchronization_ns": 500_000, "idle_ns": 1_500_000},
        }
    ]
    assert found.links is not None
    assert found.links.schema == dict(LINKS_SCHEMA)
    link = {
        **{"rank": None, "step": 12, "name": "hcom_broadcast__1", "source": None},
        **{"destination": None, "size_bytes": 1_250_000, "transit_ns": 500_000},
        **{"bandwidth_gb_s": 2.5, "large_packet_ratio": 1.0},
    }
    assert found.links.to_dicts() == [link | {"transport": "RDMA"}, link | {"transport": "SDMA"}]
    assert found.missing == ()


@pytest.mark.parametrize(
    ("transfers", "spent", "expected"),
    [
        # The longest transfer counts, at most the whole time; idle time has priority over waiting.
        ((3, 4), times(elapse=10, transit=0, wait=5, idle=5), (4, 5, 1)),
        ((7,), times(elapse=10, transit=0, wait=5, idle=5), (7, 3, 0)),
        ((30,), times(elapse=10, transit=0, wait=5, idle=5), (10, 0, 0)),
        ((2,), times(elapse=10, transit=0), (2, 0, 0)),
        ((2,), times(transit=0, wait=1), (0, 0, 0)),
        ((2,), times(elapse=10, transit=1, wait=5), (1, 5, None)),
        ((0,), times(elapse=10, transit=0, wait=5), (0, 5, None)),
    ],
)
def test_zero_transit_time_with_transfers_is_repaired(
    tmp_path: Path,
    transfers: tuple[int, ...],
    spent: dict[str, object],
    expected: tuple[int | None, ...],
) -> None:
    links = {
        str(place): {"Transit Size(MB)": 1, "Transit Time(ms)": time}
        for place, time in enumerate(transfers)
    }
    entry = {"Communication Time Info": spent, "Communication Bandwidth Info": links}
    found = read_tree(tmp_path, {"step1": {"collective": {"a@1": entry, "b@1": entry}}})
    assert found.collectives is not None
    row = found.collectives.select("transit_ns", "wait_ns", "idle_ns").row(1)
    assert row == tuple(time and time * 1_000_000 for time in expected)
    mended = transfers != (0,) and spent["Transit Time(ms)"] == 0
    whats = [
        "the transfer time of 2 collectives: Transit Time is 0 despite transfers, so the "
        "times in Communication Bandwidth Info are used instead"
    ]
    assert [gap.what for gap in found.missing] == (whats if mended else [])


def test_rank_step_and_group_come_from_the_parent_keys(tmp_path: Path) -> None:
    entry = {"Communication Time Info": times(elapse=1)}
    tree = {
        "(0, 1)": {"step5": {"a@g@h": {"0": entry, "12345678": entry, "123456789": entry}}},
        "step" + "9" * 19: {"b": entry},
        "step٣": {"c@٤": {"٥": entry}},
        "stepx": {"collective": {"d": {"x": entry}}},
    }
    found = read_tree(tmp_path, tree).collectives
    assert found is not None
    assert found.select("rank", "step", "name", "group").rows() == [
        (0, 5, "a", "g@h"),
        (12345678, 5, "a", "g@h"),
        (None, 5, "a", "g@h"),
        (None, None, "b", ""),
        (None, None, "c", "٤"),
        (None, None, "x", ""),
    ]


@pytest.mark.parametrize(("depth", "found"), [(6, 1), (7, 0)])
def test_entries_are_searched_up_to_a_depth(tmp_path: Path, depth: int, found: int) -> None:
    tree: dict[str, Any] = {"Communication Time Info": times(elapse=1)}
    for _ in range(depth):
        tree = {"a@1": tree}
    table = read_tree(tmp_path, tree).collectives
    assert table is not None
    assert table.height == found


def test_non_object_times_and_totals_are_not_collectives(tmp_path: Path) -> None:
    entry = {"Communication Time Info": times(elapse=1)}
    tree = {"step1": {"Total Op Info": {"a@1": entry}, "c": {"Communication Time Info": 3}}}
    found = read_tree(tmp_path, tree).collectives
    assert found is not None
    assert found.is_empty()
    with pytest.raises(BrokenJson, match=r"^not a JSON object$"):
        read_tree(tmp_path, [1])


def test_matrix_links_become_rows(tmp_path: Path) -> None:
    link = {
        **{"Transport Type": "HCCS", "Transit Size(MB)": 1.5, "Transit Time(ms)": 0.5},
        **{"Bandwidth(GB/s)": "x", "Large Packet Ratio": [1]},
    }
    tree = {
        "step3": {
            "collective": {
                "allreduce-top1@5": {
                    **{"0-1": link, "12345678-2": link, "0-123456789": link, "x": link},
                    "1-0": {"Transport Type": 7, "Transit Size(MB)": "odd"},
                }
            }
        },
        "Transport": 1,
    }
    found = read_matrix(written(tmp_path, tree), "shown.json", "communication_matrix")
    assert (found.file, found.kind, found.producer) == (
        *("shown.json", "communication_matrix", "torch_npu"),
    )
    row = {
        **{"rank": None, "step": 3, "name": "allreduce-top1", "transport": "HCCS"},
        **{"size_bytes": 1_500_000, "transit_ns": 500_000, "bandwidth_gb_s": None},
        "large_packet_ratio": None,
    }
    assert found.links is not None
    assert found.links.schema == dict(LINKS_SCHEMA)
    assert found.links.to_dicts() == [
        row | {"source": 0, "destination": 1},
        row | {"source": 12345678, "destination": 2},
        row
        | {"source": 1, "destination": 0, "transport": "7"}
        | {"size_bytes": None, "transit_ns": None},
    ]
    assert [gap.what for gap in found.missing] == [
        "1 number cannot be read: op 'allreduce-top1', Transit Size(MB): 'odd'"
    ]


@pytest.mark.parametrize(
    ("tree", "producer", "rank"),
    [
        (
            {"config": {"experimental_config": {"_profiler_level": "Level1"}}, "rank_id": 3},
            *("torch_npu level 1", 3),
        ),
        (
            {"config": {"experimental_config": {"_profiler_level": "level_none"}}, "rank_id": -1},
            *("torch_npu level none", None),
        ),
        ({"config": {"experimental_config": []}, "rank_id": "12345678"}, "torch_npu", 12345678),
        ({"config": 1, "rank_id": 123456789}, "torch_npu", None),
        ({"rank_id": "٣"}, "torch_npu", None),
        ({}, "torch_npu", None),
    ],
)
def test_capture_info_has_level_and_rank(
    tmp_path: Path, tree: object, producer: str, rank: int | None
) -> None:
    found = read_profiler_info(written(tmp_path, tree), "shown.json", "profiler_info")
    assert found == FileContent(
        file="shown.json", kind="profiler_info", producer=producer, rank=rank
    )


def test_msprof_info_has_the_cores_of_each_device(tmp_path: Path) -> None:
    device = {"id": 0, "ai_core_num": "24", "aiv_num": 48, "aic_frequency": "1850"}
    odd = {"id": "٣", "ai_core_num": "1234567890", "aiv_num": "123456789", "aic_frequency": "x"}
    tree = {"DeviceInfo": [device, 3, odd]}
    found = read_msprof_info(written(tmp_path, tree), "shown.json", "msprof_info")
    assert (found.file, found.kind, found.producer) == ("shown.json", "msprof_info", "msprof")
    table = found.statistics["device"]
    assert table.columns == ["device", "ai_core_num", "aiv_num", "aic_mhz"]
    assert table.rows() == [(0, 24, 48, 1850), (None, None, 123456789, None)]
    for empty in ({"DeviceInfo": []}, {"DeviceInfo": {}}, {}):
        path = written(tmp_path, empty)
        assert read_msprof_info(path, "shown.json", "k").statistics == {}


def test_file_without_usable_content_has_no_tables(tmp_path: Path) -> None:
    assert read_nothing(tmp_path, "shown.txt", "k") == FileContent(file="shown.txt", kind="k")
