"""make_rank_table.py: the table that HCCL reads, from the addresses of this machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jumar.launching.ported import rank_table_script
from tests.tensorflow115 import tensorflow_python


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "make_rank_table.py"
    path.write_text(rank_table_script())
    (tmp_path / "hccn.conf").write_text(
        "# made by the driver\naddress_0=10.1.0.1\nnetmask_0=255.255.0.0\n"
        "address_1 = 10.1.0.2\naddress_7=fe80::7\naddress_x=nothing\n"
    )
    return path


def run(program: Path, *arguments: str, python: str = sys.executable, path: str = "/usr/bin"):
    return subprocess.run(
        [python, str(program), *arguments],
        cwd=program.parent,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def table(program: Path, name: str) -> dict:
    return json.loads((program.parent / name).read_text())


def test_ranks_follow_the_order_of_the_devices(program):
    arguments = ["--devices", "7,0", "--hccn", "hccn.conf", "--to", "t.json"]
    assert run(program, *arguments, "--server-id", "10.0.0.1").returncode == 0
    assert table(program, "t.json") == {
        "version": "1.0",
        "server_count": "1",
        "server_list": [
            {
                "server_id": "10.0.0.1",
                "device": [
                    {"device_id": "7", "device_ip": "fe80::7", "rank_id": "0"},
                    {"device_id": "0", "device_ip": "10.1.0.1", "rank_id": "1"},
                ],
                "host_nic_ip": "reserve",
            }
        ],
        "status": "completed",
    }
    assert run(program, "--count", "t.json").stdout == "2\n"


def test_ranks_continue_across_servers(program):
    for server in ("10.0.0.1", "10.0.0.2"):
        arguments = ["--devices", "0,1", "--hccn", "hccn.conf", "--to", f"{server}.json"]
        assert run(program, *arguments, "--server-id", server).returncode == 0
    merge = ["--merge", "10.0.0.1.json", "10.0.0.2.json", "--to", "both.json"]
    assert run(program, *merge).returncode == 0

    merged = table(program, "both.json")
    assert merged["server_count"] == "2"
    ranks = [one["rank_id"] for server in merged["server_list"] for one in server["device"]]
    assert ranks == ["0", "1", "2", "3"]
    assert run(program, "--count", "both.json").stdout == "4\n"


def test_without_the_file_the_drivers_tool_is_queried(program):
    tool = program.parent / "hccn_tool"
    tool.write_text('#!/bin/sh\necho "ipaddr:10.9.0.$2"\necho "netmask:255.255.0.0"\n')
    tool.chmod(0o755)
    arguments = ["--devices", "3", "--hccn", "nothing", "--to", "t.json"]
    done = run(program, *arguments, path=f"{program.parent}:/usr/bin:/bin")

    assert done.returncode == 0, done.stderr
    assert table(program, "t.json")["server_list"][0]["device"][0]["device_ip"] == "10.9.0.3"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--devices", "5", "--hccn", "hccn.conf"], "no address of device 5"),
        (["--devices", "0,0"], "listed twice"),
        (["--devices", "0;1"], "such as 0,1,2,3"),
        (["--count", "hccn.conf"], "is not a rank table"),
        (["--merge", "nothing.json"], "is not a rank table"),
        ([], "required"),
    ],
)
def test_errors_are_reported_and_no_table_is_written(program, arguments, message):
    done = run(program, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(program.parent.glob("*.json*"))


def test_failed_write_of_a_table_leaves_no_files(program):
    arguments = ["--devices", "0", "--hccn", "hccn.conf", "--to", "no/such/folder.json"]
    assert "cannot be written" in run(program, *arguments).stderr


def test_script_runs_on_python_37(program):
    arguments = ["--devices", "0", "--hccn", "hccn.conf", "--to", "t.json"]
    done = run(program, *arguments, python=tensorflow_python())
    assert done.returncode == 0, done.stderr
    assert run(program, "--count", "t.json", python=tensorflow_python()).stdout == "1\n"


@pytest.mark.parametrize(
    ("table", "devices"),
    [
        ({"version": "2.0", "rank_list": [{"rank_id": 0}, {"rank_id": 1}]}, "2"),
        (
            {
                "group_list": [
                    {"instance_list": [{"devices": [{}, {}]}, {"devices": [{}]}]},
                    {"instance_list": [{"devices": [{}]}]},
                ]
            },
            "4",
        ),
    ],
)
def test_devices_in_old_and_new_formats_are_counted(program, table, devices):
    (program.parent / "hccl.json").write_text(json.dumps(table))
    assert run(program, "--count", "hccl.json").stdout.strip() == devices


def test_damaged_old_format_table_is_refused(program):
    (program.parent / "hccl.json").write_text('{"group_list": [{}]}')
    done = run(program, "--count", "hccl.json")
    assert done.returncode == 2
    assert "is not a rank table" in done.stderr
