"""Reads rank tables: the first version, which has no number, 1.0, 1.2 and 2.0.

Unreadable tables are errors; readable but invalid entries become faults of the table.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jumar.ground.errors import UserError
from jumar.ground.json_text import parse_json
from jumar.ground.paths import read_text
from jumar.launching.ranktables.table import RankedDevice, RankTable, Server


def read_rank_table(path: Path) -> RankTable:
    """Read a rank table.

    Raises:
        UserError: The file cannot be read, or is not a rank table.
    """
    try:
        content: object = parse_json(read_text(path))
    except ValueError as error:
        raise UserError(f"is not JSON: {error}", where=str(path)) from error
    if not isinstance(content, dict):
        raise _not_a_table(path, "it is not a JSON object")
    return _Reader(path).table(content)


def _not_a_table(path: Path, why: str) -> UserError:
    return UserError(
        f"is not a rank table: {why}",
        where=str(path),
        todo="A rank table has server_list (1.0, 1.2), rank_list (2.0) or group_list.",
    )


class _Reader:
    """Reads one table, and records its faults."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.faults: list[str] = []

    def table(self, content: Mapping[str, Any]) -> RankTable:
        version = str(content.get("version", ""))
        status = content.get("status")
        if status != "completed":
            self.faults.append(
                f'status is {json.dumps(status)}, not "completed": the table is unfinished, and '
                "readers wait"
            )
        if "rank_list" in content:
            return self._from_version_2(content, version)
        if "group_list" in content and not version:
            return self._from_version_0(content)
        if "server_list" not in content:
            raise _not_a_table(self.path, "it has no server_list, rank_list or group_list")
        if version not in ("1.0", "1.2"):
            self.faults.append(
                f"version is {json.dumps(content.get('version'))}, which is unknown; read as 1.0"
            )
        elif not isinstance(content["version"], str):
            self.faults.append(f"version is the number {version}; up to 1.2 it is a string")
        return self._from_version_1(content, newer=version == "1.2" or "super_pod_list" in content)

    def _from_version_1(self, content: Mapping[str, Any], *, newer: bool) -> RankTable:
        servers: list[Server] = []
        for position, server in self._objects(content, "server_list", ""):
            devices = tuple(
                RankedDevice(
                    rank=self._number(device, "rank_id", inner_position),
                    device_id=self._text(device, "device_id", inner_position),
                    device_ip=self._text(device, "device_ip", inner_position, required=False),
                    super_device_id=self._text(
                        device, "super_device_id", inner_position, required=newer
                    ),
                )
                for inner_position, device in self._objects(server, "device", position)
            )
            addresses = [str(server[key]) for key in ("host_ip", "container_ip") if server.get(key)]
            name = self._text(server, "server_id", position)
            servers.append(Server(server_id=name, devices=devices, addresses=tuple(addresses)))
        self._count(content, "server_count", len(servers), "")
        pods: dict[str, tuple[str, ...]] = {}
        if newer:
            for position, pod in self._objects(content, "super_pod_list", "", required=False):
                members = self._objects(pod, "server_list", position)
                pods[self._text(pod, "super_pod_id", position)] = tuple(
                    self._text(member, "server_id", inner_position)
                    for inner_position, member in members
                )
        return self._table("1.2" if newer else "1.0", servers, pods)

    def _from_version_0(self, content: Mapping[str, Any]) -> RankTable:
        """Read the first version, which has no ranks: they follow the order of pod numbers."""
        servers: list[Server] = []
        rank = 0
        groups = self._objects(content, "group_list", "")
        self._count(content, "group_count", len(groups), "")
        for position, group in groups:
            instances = self._objects(group, "instance_list", position)
            self._count(group, "instance_count", len(instances), position)
            instances.sort(key=lambda item: _pod_number(item[1]))
            first_rank = rank
            for instance_position, instance in instances:
                entries = self._objects(instance, "devices", instance_position)
                devices: list[RankedDevice] = []
                for device_position, device in entries:
                    number = self._text(device, "device_id", device_position)
                    address = self._text(device, "device_ip", device_position)
                    devices.append(RankedDevice(rank=rank, device_id=number, device_ip=address))
                    rank += 1
                name = self._text(instance, "server_id", instance_position)
                servers.append(Server(server_id=name, devices=tuple(devices)))
            self._count(group, "device_count", rank - first_rank, position)
        return self._table("0", servers, {})

    def _from_version_2(self, content: Mapping[str, Any], version: str) -> RankTable:
        """Read version 2.0, a list of ranks; a server begins where local_id does not increase."""
        if version != "2.0":
            self.faults.append(
                f"version is {json.dumps(content.get('version'))}, but a rank_list belongs to 2.0"
            )
        servers: list[Server] = []
        devices: list[RankedDevice] = []
        last_local_id = -1
        entries = self._objects(content, "rank_list", "")
        for position, entry in entries:
            local_id = self._number(entry, "local_id", position, as_text=False)
            if devices and local_id <= last_local_id:
                servers.append(Server(server_id=f"server {len(servers)}", devices=tuple(devices)))
                devices = []
            last_local_id = local_id
            number = self._number(entry, "device_id", position, as_text=False)
            rank = self._number(entry, "rank_id", position, as_text=False)
            devices.append(RankedDevice(rank=rank, device_id=str(number)))
            if not entry.get("level_list"):
                self.faults.append(f"{position}.level_list is empty: the rank has no address")
        if devices:
            servers.append(Server(server_id=f"server {len(servers)}", devices=tuple(devices)))
        self._count(content, "rank_count", len(entries), "", as_text=False)
        return self._table("2.0", servers, {})

    def _table(
        self, version: Any, servers: list[Server], pods: dict[str, tuple[str, ...]]
    ) -> RankTable:
        return RankTable(
            version=version,
            servers=tuple(servers),
            super_pods=pods,
            faults=tuple(self.faults),
        )

    def _objects(
        self, content: Mapping[str, Any], key: str, position: str, *, required: bool = True
    ) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the objects of a list, each with its position in the table."""
        field = f"{position}.{key}" if position else key
        value = content.get(key)
        if value is None and not required:
            self.faults.append(f"{field} is missing")
            return []
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise _not_a_table(self.path, f"{field} is not a list of objects")
        return [(f"{field}[{index}]", entry) for index, entry in enumerate(value)]

    def _text(
        self, content: Mapping[str, Any], key: str, position: str, *, required: bool = True
    ) -> str:
        value = content.get(key)
        if value is None or value == "":
            if required:
                self.faults.append(f"{position}.{key} is missing")
            return ""
        if not isinstance(value, str):
            self.faults.append(f"{position}.{key} is {json.dumps(value)}, which must be a string")
        return str(value)

    def _number(
        self, content: Mapping[str, Any], key: str, position: str, *, as_text: bool = True
    ) -> int:
        """Return a number, which is a string of digits up to 1.2; -1 if missing or invalid."""
        value = content.get(key)
        if isinstance(value, str) != as_text and value is not None:
            kind = "a string" if as_text else "a number"
            self.faults.append(f"{position}.{key} is {json.dumps(value)}, which must be {kind}")
        if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,9}", str(value)):
            if value is None:
                self.faults.append(f"{position}.{key} is missing")
            elif isinstance(value, str) == as_text:
                self.faults.append(f"{position}.{key} is {json.dumps(value)}, not a rank or number")
            return -1
        return int(str(value))

    def _count(
        self,
        content: Mapping[str, Any],
        key: str,
        actual_count: int,
        position: str,
        *,
        as_text: bool = True,
    ) -> None:
        field = f"{position}.{key}" if position else key
        value = content.get(key)
        if value is None:
            self.faults.append(f"{field} is missing; it should be {actual_count}")
        elif str(value) != str(actual_count):
            self.faults.append(f"{field} is {json.dumps(value)}, but there are {actual_count}")
        elif isinstance(value, str) != as_text:
            kind = "a string" if as_text else "a number"
            self.faults.append(f"{field} is {json.dumps(value)}, which must be {kind}")


def _pod_number(instance: Mapping[str, Any]) -> tuple[int, str]:
    """Return a pod's sort key: the last number in its name, and the whole name."""
    name = str(instance.get("pod_name", ""))
    number = name.rpartition("-")[2]
    return (int(number) if re.fullmatch("[0-9]{1,9}", number) else 1 << 30, name)
