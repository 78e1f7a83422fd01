"""Writes the rank table that HCCL reads, from the device addresses of this machine.

    python3 make_rank_table.py --devices 0,1,2,3 --to hccl_4p.json
    python3 make_rank_table.py --merge server0.json server1.json --to hccl_8p.json
    python3 make_rank_table.py --count hccl_8p.json

The addresses come from /etc/hccn.conf or the driver's hccn_tool. For several servers, create a
table on each, and merge the tables in the same order everywhere.

Runs with Python 3.7 and its standard library.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

HCCN_TOOL = "/usr/local/Ascend/driver/tools/hccn_tool"


class Problem(Exception):
    """An error the user can fix; printed without a traceback."""


def read_hccn(path: str) -> dict[int, str]:
    """Return the address of each device in a hccn.conf: lines like `address_0=192.168.100.101`."""
    addresses: dict[int, str] = {}
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                match = re.match(r"\s*address_(\d+)\s*=\s*([0-9A-Fa-f.:]+)\s*$", line)
                if match:
                    addresses[int(match.group(1))] = match.group(2)
    except OSError:
        pass
    return addresses


def ask_hccn_tool(device: int) -> str:
    """Return the address of a device that the driver's tool prints; empty if that fails."""
    tool = shutil.which("hccn_tool") or HCCN_TOOL
    if not Path(tool).is_file():
        return ""
    try:
        result = subprocess.run(
            [tool, "-i", str(device), "-ip", "-g"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r"ipaddr\s*:\s*([0-9A-Fa-f.:]+)", result.stdout.decode("utf-8", "replace"))
    return match.group(1) if match else ""


def own_address() -> str:
    """Return the address at which other servers reach this one, without sending a packet."""
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"
    finally:
        probe.close()


def server(devices: list[int], hccn: str, server_id: str) -> dict[str, Any]:
    """Return the entry of this machine, with ranks counted from 0."""
    addresses = read_hccn(hccn)
    entries = []
    for rank, device in enumerate(devices):
        address = addresses.get(device) or ask_hccn_tool(device)
        if not address:
            raise Problem(
                f"{hccn} has no address of device {device}\n"
                f"  Check with: hccn_tool -i {device} -ip -g; in a container, mount /etc/hccn.conf."
            )
        entries.append({"device_id": str(device), "device_ip": address, "rank_id": str(rank)})
    return {"server_id": server_id or own_address(), "device": entries, "host_nic_ip": "reserve"}


def table(servers: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the table of several servers, with ranks numbered across them."""
    rank = 0
    server_ids: set[str] = set()
    for server in servers:
        if server["server_id"] in server_ids:
            raise Problem(f"two servers have the id {server['server_id']}")
        server_ids.add(server["server_id"])
        for device in server["device"]:
            device["rank_id"] = str(rank)
            rank += 1
    return {
        "version": "1.0",
        "server_count": str(len(servers)),
        "server_list": servers,
        "status": "completed",
    }


def read_table(path: str) -> list[dict[str, Any]]:
    """Return the servers of a table."""
    try:
        with Path(path).open(encoding="utf-8") as content:
            servers = json.load(content)["server_list"]
        for entry in servers:
            entry["server_id"] += ""
            entry["device"][0]["device_id"] += ""
        return servers
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise Problem(f"'{path}' is not a rank table: {error!r}") from error


def count(path: str) -> int:
    """Return the number of devices in a table: 1.0, 1.2, 2.0, or the first, without a version."""
    try:
        with Path(path).open(encoding="utf-8") as content:
            table = json.load(content)
        if "rank_list" in table:
            return len(table["rank_list"])
        if "group_list" in table:
            instances = [entry for group in table["group_list"] for entry in group["instance_list"]]
            return sum(len(entry["devices"]) for entry in instances)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Problem(f"'{path}' is not a rank table: {error!r}") from error
    return sum(len(entry["device"]) for entry in read_table(path))


def device_list(text: str) -> list[int]:
    """Parse device numbers such as `0,1,2`."""
    if not re.match(r"\d+(,\d+)*$", text):
        raise argparse.ArgumentTypeError("expected numbers such as 0,1,2,3")
    numbers = [int(part) for part in text.split(",")]
    if len(set(numbers)) != len(numbers):
        raise argparse.ArgumentTypeError("a device is listed twice")
    return numbers


def write(path: str, content: dict[str, Any]) -> None:
    """Write to a temporary file and rename it, so that no process reads a partial table."""
    temporary = Path(f"{path}.{os.getpid()}.partial")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(content, file, indent=2)
            file.write("\n")
        temporary.replace(path)
    except OSError as error:
        raise Problem(f"'{path}' cannot be written: {error.strerror}") from error


def main(arguments: list[str]) -> int:
    """Execute the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Write HCCL's rank table, or count its devices.")
    modes = parser.add_mutually_exclusive_group(required=True)
    modes.add_argument(
        "--devices", type=device_list, help="devices of this machine, such as 0,1,2,3"
    )
    modes.add_argument("--merge", nargs="+", metavar="TABLE", help="tables of servers, in order")
    modes.add_argument("--count", metavar="TABLE", help="print the number of devices in a table")
    parser.add_argument("--to", metavar="TABLE", default="rank_table.json", help="file to write")
    parser.add_argument("--hccn", default="/etc/hccn.conf", help="file with the addresses")
    parser.add_argument("--server-id", default="", help="address of this machine")
    options = parser.parse_args(arguments)
    try:
        if options.count:
            print(count(options.count))
            return 0
        if options.merge:
            servers = [entry for path in options.merge for entry in read_table(path)]
        else:
            servers = [server(options.devices, options.hccn, options.server_id)]
        write(options.to, table(servers))
    except Problem as problem:
        sys.stderr.write(f"make_rank_table.py: {problem}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
