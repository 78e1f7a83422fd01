"""Rank tables of every form: read, checked, converted."""

import copy
import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.launching.ranktables.checking import (
    against_machine,
    against_variables,
    contradictions,
)
from jumar.launching.ranktables.reading import read_rank_table
from jumar.launching.ranktables.report import convert_to, report_on
from jumar.launching.ranktables.writing import converted, torchrun_lines

V0 = {
    "status": "completed",
    "group_count": "1",
    "group_list": [
        {
            "group_name": "job-trainjob",
            "device_count": "4",
            "instance_count": "2",
            "instance_list": [
                {
                    "pod_name": "job-trainjob-10",
                    "server_id": "10.0.0.2",
                    "devices": [
                        {"device_id": "0", "device_ip": "192.168.1.3"},
                        {"device_id": "1", "device_ip": "192.168.1.4"},
                    ],
                },
                {
                    "pod_name": "job-trainjob-9",
                    "server_id": "10.0.0.1",
                    "devices": [
                        {"device_id": "0", "device_ip": "192.168.1.1"},
                        {"device_id": "1", "device_ip": "192.168.1.2"},
                    ],
                },
            ],
        }
    ],
}


def device(number: int, rank: int, **more: str) -> dict[str, str]:
    return {
        "device_id": str(number),
        "device_ip": f"192.168.1.{rank + 1}",
        **more,
        "rank_id": str(rank),
    }


V1 = {
    "status": "completed",
    "version": "1.0",
    "server_count": "2",
    "server_list": [
        {
            "server_id": "10.0.0.1",
            "device": [device(0, 0), device(1, 1)],
            "host_nic_ip": "reserve",
        },
        {"server_id": "10.0.0.2", "device": [device(0, 2), device(1, 3)]},
    ],
}
V12 = {
    "status": "completed",
    "version": "1.2",
    "server_count": "1",
    "server_list": [
        {
            "server_id": "pod-uid",
            "host_ip": "10.0.0.1",
            "device": [device(0, 0, super_device_id="37748736")],
        }
    ],
    "super_pod_list": [{"super_pod_id": "0", "server_list": [{"server_id": "pod-uid"}]}],
}


def newest_rank(rank: int, local: int) -> dict:
    return {
        "rank_id": rank,
        "local_id": local,
        "device_id": local,
        "level_list": [
            {
                "net_layer": 0,
                "net_instance_id": "s",
                "net_type": "TOPO_FILE_DESC",
                "net_attr": "",
                "rank_addr_list": [
                    {"addr_type": "EID", "addr": "00ff", "ports": ["1/1"], "plane_id": "1"}
                ],
            }
        ],
    }


V2 = {
    "status": "completed",
    "version": "2.0",
    "rank_count": 4,
    "rank_list": [newest_rank(rank, rank % 2) for rank in range(4)],
}
FORMS = {"0": V0, "1.0": V1, "1.2": V12, "2.0": V2}


def put(folder: Path, content: object, name: str = "table.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("version", FORMS)
def test_every_valid_format_is_read_without_findings(version, tmp_path):
    table = read_rank_table(put(tmp_path, FORMS[version]))
    assert table.version == version
    assert contradictions(table) == []
    assert [device.rank for device in table.devices] == list(range(len(table.devices)))


def test_ranks_in_the_first_format_follow_pod_numbers(tmp_path):
    table = read_rank_table(put(tmp_path, V0))
    assert [server.server_id for server in table.servers] == ["10.0.0.1", "10.0.0.2"]
    assert table.devices[0].device_ip == "192.168.1.1"


def test_server_in_the_newest_format_starts_where_local_ids_restart(tmp_path):
    table = read_rank_table(put(tmp_path, V2))
    assert [len(server.devices) for server in table.servers] == [2, 2]


def changed(version: str, *path: object, value: object = None) -> dict:
    """A table with one value replaced; None removes it."""
    content = copy.deepcopy(FORMS[version])
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return content


SERVER, FIRST = ("server_list", 0), ("server_list", 0, "device", 0)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (changed("1.0", "status", value="initializing"), "status is"),
        (changed("1.0", "status"), "status is null"),
        (changed("1.0", "version", value="1.1"), "unknown; read as 1.0"),
        (changed("1.0", "version", value=1.0), "is the number 1.0"),
        (changed("1.0", "server_count", value="3"), 'server_count is "3", but there are 2'),
        (changed("1.0", "server_count", value=2), "must be a string"),
        (changed("1.0", "server_count"), "server_count is missing"),
        (changed("1.0", *FIRST, "rank_id", value=0), "device[0].rank_id is 0, which must be"),
        (changed("1.0", *FIRST, "rank_id", value="x"), 'rank_id is "x", not a rank'),
        (changed("1.0", *FIRST, "rank_id", value="1"), "rank 1 appears 2 times"),
        (changed("1.0", *FIRST, "rank_id", value="7"), "there is 7"),
        (changed("1.0", *FIRST, "rank_id"), "rank_id is missing"),
        (changed("1.0", *FIRST, "device_id", value="1"), "device_id 1 appears 2 times: 10.0.0.1"),
        (changed("1.0", *FIRST, "device_ip", value="192.168.1.4"), "device_ip 192.168.1.4 appears"),
        (
            changed("1.0", *FIRST, "device_ip", value="192.168.1"),
            "'192.168.1', which is not an IP address",
        ),
        (changed("1.0", *FIRST, "device_ip", value="fe80::1"), "mixed IPv4 and IPv6"),
        (changed("1.0", *FIRST, "device_ip"), "has no device_ip"),
        (changed("1.0", *SERVER, "server_id", value="10.0.0.2"), "server 10.0.0.2 appears 2"),
        (changed("1.0", *SERVER, "device", value=[]), "server 10.0.0.1 has no device"),
        (changed("0", "group_count", value="2"), 'group_count is "2", but there are 1'),
        (changed("0", "group_list", 0, "device_count", value="8"), "device_count is"),
        (changed("0", "group_list", 0, "instance_count", value="1"), "instance_count is"),
        (changed("1.2", *FIRST, "super_device_id"), "super_device_id is missing"),
        (changed("1.2", "super_pod_list"), "super_pod_list is missing"),
        (
            changed("1.2", "super_pod_list", 0, "server_list", 0, "server_id", value="other"),
            "which is not in server_list",
        ),
        (changed("1.2", "super_pod_list", 0, "server_list", value=[]), "is in 0 super pods"),
        (changed("2.0", "rank_count", value=3), "rank_count is 3, but there are 4"),
        (changed("2.0", "rank_list", 0, "rank_id", value="0"), "must be a number"),
        (changed("2.0", "rank_list", 0, "level_list", value=[]), "the rank has no address"),
        (changed("2.0", "version", value="1.0"), "a rank_list belongs to 2.0"),
    ],
)
def test_each_contradiction_gets_a_line(content, says, tmp_path):
    wrong = contradictions(read_rank_table(put(tmp_path, content)))
    assert any(says in line for line in wrong), wrong


def test_ranks_that_torchrun_could_not_give_get_a_line(tmp_path):
    content = copy.deepcopy(V1)
    content["server_list"][0]["device"][1]["rank_id"] = "2"
    content["server_list"][1]["device"][0]["rank_id"] = "1"
    (line,) = [
        line
        for line in contradictions(read_rank_table(put(tmp_path, content)))
        if "10.0.0.1" in line
    ]
    assert "torchrun assigns consecutive" in line


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"server_list": 1}',
        '{"server_list": [1]}',
        '{"rank_list": [[]]}',
        '{"group_list": [{}]}',
        '{"server_list": [{}]}',
        "[" * 100_000,
    ],
)
def test_file_that_is_not_a_rank_table_is_refused(text, tmp_path):
    path = tmp_path / "table.json"
    path.write_text(text)
    with pytest.raises(UserError):
        read_rank_table(path)


def test_variables_of_a_job_are_checked_against_the_table(tmp_path):
    path = put(tmp_path, V1)
    table = read_rank_table(path)
    fitting = {
        "RANK_SIZE": "4",
        "RANK_ID": "3",
        "DEVICE_ID": "1",
        "ASCEND_DEVICE_ID": "1",
        "RANK_TABLE_FILE": str(path),
        "HCCL_SOCKET_FAMILY": "AF_INET",
    }
    assert not list(against_variables(table, path, fitting))
    link = tmp_path / "link.json"
    link.symlink_to(path)
    for name, value, says in (
        ("RANK_SIZE", "8", "RANK_SIZE is 8, but the table has 4 ranks"),
        ("WORLD_SIZE", "2", "WORLD_SIZE is 2"),
        ("RANK_ID", "4", "RANK_ID is 4, which is not in the table"),
        ("DEVICE_ID", "0", "DEVICE_ID is 0, but rank 3 is device 1"),
        ("RANK_TABLE_FILE", "/other.json", "which is another file"),
        ("RANK_TABLE_FILE", str(link), "a link"),
        ("HCCL_SOCKET_FAMILY", "AF_INET6", "there are IPv4 addresses"),
    ):
        wrong = list(against_variables(table, path, {**fitting, name: value}))
        assert len(wrong) == 1, wrong
        assert says in wrong[0]


def test_addresses_of_this_machine_are_checked_against_the_table(tmp_path):
    table = read_rank_table(put(tmp_path, V1))
    hccn = tmp_path / "hccn.conf"
    assert against_machine(table, hccn)[1] == []
    hccn.write_text("address_0=192.168.1.3\naddress_1=192.168.1.4\n")
    assert against_machine(table, hccn) == ("this machine is 10.0.0.2", [])
    hccn.write_text("address_0=192.168.1.3\naddress_1=192.168.9.9\n")
    ((wrong,),) = (against_machine(table, hccn)[1],)
    assert wrong == "device 1 (rank 3) is 192.168.1.4 in the table, but 192.168.9.9 on this machine"
    hccn.write_text("address_0=192.168.1.3\n")
    assert "device 1 (rank 3) has no address on this machine" in against_machine(table, hccn)[1][0]
    hccn.write_text("address_0=172.16.0.1\n")
    assert "no server of the table is this machine" in against_machine(table, hccn)[1][0]
    assert against_machine(table, hccn, "10.0.0.1")[0] == "this machine is 10.0.0.1"
    assert "10.0.0.9" in against_machine(table, hccn, "10.0.0.9")[1][0]


@pytest.mark.parametrize(
    ("before", "after"),
    [("0", "0"), ("0", "1.0"), ("1.0", "0"), ("1.0", "1.0"), ("1.2", "1.0"), ("1.2", "1.2")],
)
def test_converted_table_has_the_same_content(before, after, tmp_path):
    first = read_rank_table(put(tmp_path, FORMS[before]))
    path = tmp_path / "after.json"
    convert_to(tmp_path / "table.json", after, path)
    second = read_rank_table(path)
    assert second.version == after
    assert contradictions(second) == []
    keep = ("rank", "device_id", "device_ip")
    assert [[getattr(each, name) for name in keep] for each in second.devices] == [
        [getattr(each, name) for name in keep] for each in first.devices
    ]
    assert [each.server_id for each in second.servers] == [each.server_id for each in first.servers]
    if before == after:
        assert second.super_pods == first.super_pods


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("1.0", "1.2", "super_device_id"),
        ("1.0", "2.0", "newer links"),
        ("2.0", "1.0", "no device_ip"),
        ("2.0", "2.0", "no device_ip"),
    ],
)
def test_format_needing_data_the_table_lacks_is_refused(before, after, says, tmp_path):
    with pytest.raises(UserError) as refused:
        converted(read_rank_table(put(tmp_path, FORMS[before])), after)
    assert says in str(refused.value)


def test_wrong_table_is_not_converted_and_no_other_file_replaced(tmp_path):
    to = tmp_path / "to.json"
    put(tmp_path, changed("1.0", *FIRST, "rank_id", value="1"))
    with pytest.raises(UserError, match="ranks are 0 to 3"):
        convert_to(tmp_path / "table.json", "1.0", to)
    assert not to.exists()
    put(tmp_path, V1)
    to.write_text("mine")
    with pytest.raises(UserError, match="already exists"):
        convert_to(tmp_path / "table.json", "1.0", to)
    assert to.read_text() == "mine"


def test_script_added_by_a_port_writes_the_same_format(tmp_path):
    script = Path(str(files("jumar.launching") / "scripts" / "make_rank_table.py"))
    (tmp_path / "hccn.conf").write_text("address_0=192.168.1.1\naddress_1=192.168.1.2\n")
    subprocess.run(
        [
            sys.executable,
            script,
            "--devices",
            "0,1",
            "--to",
            "table.json",
            "--hccn",
            "hccn.conf",
            "--server-id",
            "10.0.0.1",
        ],
        cwd=tmp_path,
        check=True,
    )
    path = tmp_path / "table.json"
    assert converted(read_rank_table(path), "1.0") == path.read_text()
    assert report_on(path, variables={}, hccn=tmp_path / "hccn.conf").wrong == ()


def test_torchrun_gets_the_ranks_of_the_table(tmp_path):
    lines = torchrun_lines(read_rank_table(put(tmp_path, V0)))
    assert [line.split(":")[0] for line in lines] == ["10.0.0.1", "10.0.0.2"]
    assert "--nnodes 2 --node-rank 1 --nproc-per-node 2 --master-addr 10.0.0.1" in lines[1]
    assert torchrun_lines(read_rank_table(put(tmp_path, V2))) == []
    uneven = copy.deepcopy(V1)
    del uneven["server_list"][1]["device"][1]
    assert torchrun_lines(read_rank_table(put(tmp_path, uneven))) == []
