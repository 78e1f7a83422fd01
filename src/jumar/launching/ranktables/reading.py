"""Reads rank tables: the first version without a number, 1.0, 1.2 and 2.0.

Unreadable tables are errors; readable but wrong entries become faults of the table.
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
        UserError: It cannot be read, or is not a rank table.
    """
    try:
        content: object = parse_json(read_text(path))
    except ValueError as error:
        raise UserError(f"is not JSON: {error}", where=str(path)) from error
    if not isinstance(content, dict):
        raise _no_table(path, "it has no object")
    reader = _Reader(path)
    return reader.table(content)


def _no_table(path: Path, why: str) -> UserError:
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
                f'status is {json.dumps(status)}, not "completed": whoever writes the table has '
                "not finished, and readers wait"
            )
        if "rank_list" in content:
            return self._of_2_0(content, version)
        if "group_list" in content and not version:
            return self._of_0(content)
        if "server_list" not in content:
            raise _no_table(self.path, "it has none of server_list, rank_list and group_list")
        if version not in ("1.0", "1.2"):
            self.faults.append(
                f"version is {json.dumps(content.get('version'))}, which is not known; read as 1.0"
            )
        elif not isinstance(content["version"], str):
            self.faults.append(f"version is the number {version}; up to 1.2 it is a text")
        return self._of_1(content, newer=version == "1.2" or "super_pod_list" in content)

    def _of_1(self, content: Mapping[str, Any], *, newer: bool) -> RankTable:
        servers: list[Server] = []
        for place, server in self._objects(content, "server_list", ""):
            devices = tuple(
                RankedDevice(
                    rank=self._number(device, "rank_id", inner),
                    device_id=self._text(device, "device_id", inner),
                    device_ip=self._text(device, "device_ip", inner, needed=False),
                    super_device_id=self._text(device, "super_device_id", inner, needed=newer),
                )
                for inner, device in self._objects(server, "device", place)
            )
            others = [str(server[key]) for key in ("host_ip", "container_ip") if server.get(key)]
            name = self._text(server, "server_id", place)
            servers.append(Server(server_id=name, devices=devices, addresses=tuple(others)))
        self._count(content, "server_count", len(servers), "")
        pods: dict[str, tuple[str, ...]] = {}
        if newer:
            for place, pod in self._objects(content, "super_pod_list", "", needed=False):
                members = self._objects(pod, "server_list", place)
                pods[self._text(pod, "super_pod_id", place)] = tuple(
                    self._text(member, "server_id", inner) for inner, member in members
                )
        return self._made("1.2" if newer else "1.0", servers, pods)

    def _of_0(self, content: Mapping[str, Any]) -> RankTable:
        """The first version, which has no ranks: they follow the order of the pods' numbers."""
        servers: list[Server] = []
        rank = 0
        groups = self._objects(content, "group_list", "")
        self._count(content, "group_count", len(groups), "")
        for place, group in groups:
            instances = self._objects(group, "instance_list", place)
            self._count(group, "instance_count", len(instances), place)
            instances.sort(key=lambda each: _pod_number(each[1]))
            first = rank
            for inner, instance in instances:
                entries = self._objects(instance, "devices", inner)
                devices: list[RankedDevice] = []
                for within, device in entries:
                    number = self._text(device, "device_id", within)
                    address = self._text(device, "device_ip", within)
                    devices.append(RankedDevice(rank=rank, device_id=number, device_ip=address))
                    rank += 1
                name = self._text(instance, "server_id", inner)
                servers.append(Server(server_id=name, devices=tuple(devices)))
            self._count(group, "device_count", rank - first, place)
        return self._made("0", servers, {})

    def _of_2_0(self, content: Mapping[str, Any], version: str) -> RankTable:
        """The newest version, a list of ranks: a server begins where local_id does not continue."""
        if version != "2.0":
            self.faults.append(
                f"version is {json.dumps(content.get('version'))}, but a rank_list belongs to 2.0"
            )
        servers: list[Server] = []
        devices: list[RankedDevice] = []
        last = -1
        entries = self._objects(content, "rank_list", "")
        for place, entry in entries:
            local = self._number(entry, "local_id", place, texts=False)
            if devices and local <= last:
                servers.append(Server(server_id=f"server {len(servers)}", devices=tuple(devices)))
                devices = []
            last = local
            number = self._number(entry, "device_id", place, texts=False)
            rank = self._number(entry, "rank_id", place, texts=False)
            devices.append(RankedDevice(rank=rank, device_id=str(number)))
            if not entry.get("level_list"):
                self.faults.append(f"{place}.level_list is empty: the rank has no address")
        if devices:
            servers.append(Server(server_id=f"server {len(servers)}", devices=tuple(devices)))
        self._count(content, "rank_count", len(entries), "", texts=False)
        return self._made("2.0", servers, {})

    def _made(
        self, version: Any, servers: list[Server], pods: dict[str, tuple[str, ...]]
    ) -> RankTable:
        return RankTable(
            version=version,
            servers=tuple(servers),
            super_pods=pods,
            faults=tuple(self.faults),
        )

    def _objects(
        self, content: Mapping[str, Any], key: str, place: str, *, needed: bool = True
    ) -> list[tuple[str, Mapping[str, Any]]]:
        """The objects of a list, each with its position in the table."""
        where = f"{place}.{key}" if place else key
        value = content.get(key)
        if value is None and not needed:
            self.faults.append(f"{where} is missing")
            return []
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise _no_table(self.path, f"{where} is not a list of objects")
        return [(f"{where}[{index}]", each) for index, each in enumerate(value)]

    def _text(
        self, content: Mapping[str, Any], key: str, place: str, *, needed: bool = True
    ) -> str:
        value = content.get(key)
        if value is None or value == "":
            if needed:
                self.faults.append(f"{place}.{key} is missing")
            return ""
        if not isinstance(value, str):
            self.faults.append(f"{place}.{key} is {json.dumps(value)}, which has to be a text")
        return str(value)

    def _number(
        self, content: Mapping[str, Any], key: str, place: str, *, texts: bool = True
    ) -> int:
        """A number: a string of digits up to 1.2, and a number in 2.0. -1 if missing."""
        value = content.get(key)
        if isinstance(value, str) != texts and value is not None:
            kind = "a text" if texts else "a number"
            self.faults.append(f"{place}.{key} is {json.dumps(value)}, which has to be {kind}")
        if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,9}", str(value)):
            if value is None:
                self.faults.append(f"{place}.{key} is missing")
            elif isinstance(value, str) == texts:
                self.faults.append(f"{place}.{key} is {json.dumps(value)}, not a rank or number")
            return -1
        return int(str(value))

    def _count(
        self,
        content: Mapping[str, Any],
        key: str,
        actual: int,
        place: str,
        *,
        texts: bool = True,
    ) -> None:
        where = f"{place}.{key}" if place else key
        value = content.get(key)
        if value is None:
            self.faults.append(f"{where} is missing; it is {actual}")
        elif str(value) != str(actual):
            self.faults.append(f"{where} is {json.dumps(value)}, but there are {actual}")
        elif isinstance(value, str) != texts:
            kind = "a text" if texts else "a number"
            self.faults.append(f"{where} is {json.dumps(value)}, which has to be {kind}")


def _pod_number(instance: Mapping[str, Any]) -> tuple[int, str]:
    """The number after the last hyphen of a pod's name, which determines its rank."""
    name = str(instance.get("pod_name", ""))
    number = name.rpartition("-")[2]
    return (int(number) if re.fullmatch("[0-9]{1,9}", number) else 1 << 30, name)
