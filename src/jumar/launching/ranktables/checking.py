"""Checks a rank table against itself, the environment and this machine."""

import ipaddress
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Final

from jumar.launching.ranktables.table import RankTable, Server
from jumar.launching.scripts.make_rank_table import ask_hccn_tool, own_address, read_hccn

HCCN_CONF = Path("/etc/hccn.conf")
_DEVICE_ID: Final = re.compile("[0-9]{1,9}")


def contradictions(table: RankTable) -> list[str]:
    """Return the contradictions within a table, one per line."""
    return [*table.faults, *_ranks(table), *_duplicates(table), *_addresses(table), *_pods(table)]


def against_machine(
    table: RankTable, hccn: Path = HCCN_CONF, server_id: str = ""
) -> tuple[str, list[str]]:
    """Return contradictions between a table and the addresses of this machine's devices.

    Args:
        table: The table.
        hccn: The driver's file with the addresses.
        server_id: The server_id of this machine; by default detected from its addresses.

    Returns:
        A line that identifies this machine, and a line for each contradiction.
    """
    addresses = read_hccn(str(hccn))
    device_ids = [
        device.device_id for device in table.devices if _DEVICE_ID.fullmatch(device.device_id)
    ]
    for number in sorted({int(text) for text in device_ids} - set(addresses)):
        address = ask_hccn_tool(number)
        if not address:
            break
        addresses[number] = address
    if not addresses and not server_id:
        return f"this machine has no NPU addresses ({hccn} and hccn_tool list none)", []
    server = _own_server(table, addresses, server_id)
    if server is None:
        name = server_id or own_address()
        return f"this machine is {name}", [f"no server of the table is this machine ({name})"]
    return f"this machine is {server.server_id}", list(_against_hccn(server, addresses, hccn))


def _own_server(table: RankTable, addresses: Mapping[int, str], server_id: str) -> Server | None:
    name = server_id or own_address()
    named = (server for server in table.servers if name in (server.server_id, *server.addresses))
    device_ips = set[str]() if server_id else set(addresses.values())
    with_devices = (
        server
        for server in table.servers
        if device_ips & {device.device_ip for device in server.devices}
    )
    return next(chain(named, with_devices), None)


def _against_hccn(server: Server, addresses: Mapping[int, str], hccn: Path) -> Iterator[str]:
    for device in server.devices:
        is_number = _DEVICE_ID.fullmatch(device.device_id)
        address = addresses.get(int(device.device_id)) if is_number else None
        if address is None:
            yield (
                f"device {device.device_id} (rank {device.rank}) has no address on this machine, "
                f"in {hccn}"
            )
        elif device.device_ip and device.device_ip != address:
            yield (
                f"device {device.device_id} (rank {device.rank}) is {device.device_ip} in the "
                f"table, but {address} on this machine"
            )


def against_variables(table: RankTable, path: Path, variables: Mapping[str, str]) -> Iterator[str]:
    """Yield contradictions between a table and a job's variables, one per line.

    Args:
        table: The table.
        path: The file of the table.
        variables: The environment; unset variables are ignored.
    """
    count = len(table.devices)
    for name in ("RANK_SIZE", "WORLD_SIZE"):
        if name in variables and variables[name] != str(count):
            yield f"{name} is {variables[name]}, but the table has {count} ranks"
    rank = variables.get("RANK_ID")
    if rank is not None:
        devices = [device for device in table.devices if str(device.rank) == rank]
        if not devices:
            yield f"RANK_ID is {rank}, which is not in the table"
        for name in ("DEVICE_ID", "ASCEND_DEVICE_ID"):
            if devices and name in variables and variables[name] != devices[0].device_id:
                yield (
                    f"{name} is {variables[name]}, but rank {rank} is device {devices[0].device_id}"
                )
    table_path = variables.get("RANK_TABLE_FILE")
    if table_path:
        if os.path.realpath(table_path) != os.path.realpath(path):
            yield f"RANK_TABLE_FILE is {table_path}, which is another file"
        elif os.path.islink(table_path):  # noqa: PTH114 - never raises
            yield f"RANK_TABLE_FILE is {table_path}, a link, which HCCL rejects"
    families = {"AF_INET": 4, "AF_INET6": 6}
    required_family = families.get(variables.get("HCCL_SOCKET_FAMILY", ""))
    if required_family:
        other_families = {family for family in _families(table) if family != required_family}
        if other_families:
            yield f"HCCL_SOCKET_FAMILY is {variables['HCCL_SOCKET_FAMILY']}, but there are IPv" + (
                f"{other_families.pop()} addresses"
            )


def _ranks(table: RankTable) -> Iterator[str]:
    ranks = [device.rank for device in table.devices if device.rank >= 0]
    count = len(table.devices)
    if not count:
        yield "the table has no devices"
    missing = sorted(set(range(count)) - set(ranks))
    if missing:
        yield f"ranks are 0 to {count - 1}, but {_listed(missing)} missing"
    excessive = sorted({rank for rank in ranks if rank >= count})
    if excessive:
        yield f"ranks are 0 to {count - 1}, but there is {_listed(excessive, verb=False)}"
    for server in table.servers:
        server_ranks = [device.rank for device in server.devices]
        if not server_ranks:
            yield f"server {server.server_id} has no device"
        elif server_ranks != list(range(server_ranks[0], server_ranks[0] + len(server_ranks))):
            yield (
                f"ranks of {server.server_id} are {_listed(server_ranks, verb=False)}: torchrun "
                "assigns consecutive ranks to each node"
            )


def _duplicates(table: RankTable) -> Iterator[str]:
    yield from _twice("server", [(entry.server_id, "") for entry in table.servers])
    devices = [(server.server_id, device) for server in table.servers for device in server.devices]
    yield from _twice(
        "rank", [(str(entry.rank), name) for name, entry in devices if entry.rank >= 0]
    )
    yield from _twice("device_ip", [(entry.device_ip, name) for name, entry in devices])
    yield from _twice("super_device_id", [(entry.super_device_id, name) for name, entry in devices])
    for server in table.servers:
        device_ids = [(device.device_id, server.server_id) for device in server.devices]
        yield from _twice("device_id", device_ids)


def _twice(kind: str, values: Iterable[tuple[str, str]]) -> Iterator[str]:
    servers_of: dict[str, list[str]] = defaultdict(list)
    for value, server in values:
        if value:
            servers_of[value].append(server)
    for value, servers in servers_of.items():
        if len(servers) > 1:
            names = ", ".join(dict.fromkeys(filter(None, servers)))
            yield f"{kind} {value} appears {len(servers)} times{f': {names}' if names else ''}"


def _addresses(table: RankTable) -> Iterator[str]:
    for server in table.servers:
        for device in server.devices:
            if device.device_ip and _family(device.device_ip) is None:
                yield (
                    f"device {device.device_id} of {server.server_id} has the address "
                    f"'{device.device_ip}', which is not an IP address"
                )
            elif not device.device_ip and table.version in ("0", "1.0") and len(table.devices) > 1:
                yield f"device {device.device_id} of {server.server_id} has no device_ip"
    if len(_families(table)) > 1:
        yield "device addresses are mixed IPv4 and IPv6; HCCL accepts only one of them (EI0001)"


def _families(table: RankTable) -> set[int]:
    families = (_family(device.device_ip) for device in table.devices if device.device_ip)
    return {family for family in families if family}


def _family(address: str) -> int | None:
    try:
        return ipaddress.ip_address(address).version
    except ValueError:
        return None


def _pods(table: RankTable) -> Iterator[str]:
    if table.version != "1.2":
        return
    servers = [server.server_id for server in table.servers]
    members = [(name, pod) for pod, names in table.super_pods.items() for name in names]
    for name, pod in members:
        if name not in servers:
            yield f"super pod {pod} has the server {name}, which is not in server_list"
    for name in servers:
        pods = [pod for member, pod in members if member == name]
        if len(pods) != 1 and table.super_pods:
            yield f"server {name} is in {len(pods)} super pods"


def _listed(numbers: list[int], *, verb: bool = True) -> str:
    text = ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")
    return f"{text} {'is' if len(numbers) == 1 else 'are'}" if verb else text
