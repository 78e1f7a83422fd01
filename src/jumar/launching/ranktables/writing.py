"""Converts rank tables, and writes the torchrun commands for them."""

import json
import shlex
from typing import Any

from jumar.ground.errors import UserError
from jumar.launching.ranktables.table import RankTable, Server, Version

_TODO = "Create one on a machine with the devices: make_rank_table.py, which `jumar port` adds."


def converted(table: RankTable, version: Version) -> str:
    """Return the text of a table in another version.

    Raises:
        UserError: The table lacks a field that the version requires.
    """
    if version == "2.0" and table.version != "2.0":
        raise UserError(
            "2.0 requires addresses of the newer links, which no earlier version contains",
            where="--to-version 2.0",
            todo="Use the table that ascend-operator writes.",
        )
    if table.version == "2.0":
        raise UserError(
            "a table of 2.0 has no device_ip, which earlier versions require",
            where=f"--to-version {version}",
            todo=_TODO,
        )
    if version == "1.2" and not all(device.super_device_id for device in table.devices):
        raise UserError(
            "1.2 requires the super_device_id of each device, which the table lacks",
            where="--to-version 1.2",
            todo="Use the table that ascend-operator writes.",
        )
    content = _to_version_0(table) if version == "0" else _to_version_1(table, version)
    return f"{json.dumps(content, indent=2)}\n"


def _to_version_1(table: RankTable, version: Version) -> dict[str, Any]:
    """Return version 1.0 or 1.2, with keys in the order of `make_rank_table.py`."""
    newer = version == "1.2"
    content: dict[str, Any] = {
        "version": version,
        "server_count": str(len(table.servers)),
        "server_list": [
            {
                "server_id": server.server_id,
                "device": [
                    {
                        "device_id": device.device_id,
                        "device_ip": device.device_ip,
                        **({"super_device_id": device.super_device_id} if newer else {}),
                        "rank_id": str(device.rank),
                    }
                    for device in server.devices
                ],
                "host_nic_ip": "reserve",
            }
            for server in table.servers
        ],
        "status": "completed",
    }
    if newer:
        pods = table.super_pods or {"0": tuple(server.server_id for server in table.servers)}
        content["super_pod_list"] = [
            {"super_pod_id": pod, "server_list": [{"server_id": name} for name in names]}
            for pod, names in pods.items()
        ]
    return content


def _to_version_0(table: RankTable) -> dict[str, Any]:
    """Return the first version, in which ranks follow the numbers of the pods."""
    servers = sorted(table.servers, key=_first_rank)
    ranks = [device.rank for server in servers for device in server.devices]
    if ranks != list(range(len(ranks))):
        raise UserError(
            "in the first version, ranks follow the order of the servers; these ranks do not",
            where="--to-version 0",
            todo="Assign consecutive ranks to each server.",
        )
    return {
        "status": "completed",
        "group_count": "1",
        "group_list": [
            {
                "group_name": "worker",
                "device_count": str(len(ranks)),
                "instance_count": str(len(servers)),
                "instance_list": [
                    {
                        "pod_name": f"worker-{number}",
                        "server_id": server.server_id,
                        "devices": [
                            {"device_id": device.device_id, "device_ip": device.device_ip}
                            for device in server.devices
                        ],
                    }
                    for number, server in enumerate(servers)
                ],
            }
        ],
    }


def torchrun_lines(table: RankTable) -> list[str]:
    """Return the torchrun arguments of each server, in the order of ranks; empty if impossible.

    torchrun starts the same number of processes on every node, with consecutive ranks.
    """
    servers = sorted(table.servers, key=_first_rank)
    sizes = {len(server.devices) for server in servers}
    ranks = [device.rank for server in servers for device in server.devices]
    if len(sizes) != 1 or ranks != list(range(len(ranks))) or table.version == "2.0":
        return []
    (size,) = sizes
    return [
        f"{server.server_id}: ASCEND_RT_VISIBLE_DEVICES={_device_ids(server)} torchrun "
        f"--nnodes {len(servers)} --node-rank {rank} --nproc-per-node {size} "
        f"--master-addr {shlex.quote(_address(servers[0]))} --master-port 29500 ..."
        for rank, server in enumerate(servers)
    ]


def _device_ids(server: Server) -> str:
    return ",".join(device.device_id for device in server.devices)


def _address(server: Server) -> str:
    return server.addresses[0] if server.addresses else server.server_id


def _first_rank(server: Server) -> int:
    return min((device.rank for device in server.devices), default=0)
