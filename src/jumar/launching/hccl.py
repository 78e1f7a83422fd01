"""Checks HCCL's environment variables.

An invalid variable ends a job minutes after its start, with EI0001 or an unexplained timeout. The
ranges and their sources are in `hccl.json`.
"""

import ipaddress
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from jumar.launching.cann import facts
from jumar.launching.matrix import Advice

GROUP_TIMEOUT_S = 1800
"""Timeout of collectives in jumar's own process group."""

_INTERFACES = Path("sys/class/net")


def hccl_advice(variables: Mapping[str, str], root: Path = Path("/")) -> list[Advice]:
    """Return advice on invalid HCCL variables in an environment.

    Args:
        variables: The environment.
        root: Root of the file system for looking up network interfaces and files.
    """
    limits = facts("hccl")
    hccl_variables = {name: value for name, value in variables.items() if name.startswith("HCCL_")}
    advice = [
        problem
        for name, value in hccl_variables.items()
        for problem in _limits(name, value, limits["limited"], limits["others"])
    ]
    return [
        *advice,
        *_links(hccl_variables),
        *_timeouts(hccl_variables),
        *_addresses(hccl_variables, root),
    ]


def _limits(
    name: str, value: str, limits: Mapping[str, Any], other_names: list[str]
) -> Iterator[Advice]:
    limit = limits.get(name)
    if limit is None:
        if name not in other_names:
            matches = get_close_matches(name, [*limits, *other_names], 1)
            message = f"{name} is not a known HCCL variable"
            yield Advice(
                level="warning",
                what=message,
                todo=f"Did you mean {matches[0]}?" if matches else "Check its spelling.",
            )
        return
    if "choices" in limit:
        if value not in limit["choices"]:
            yield _not_allowed(name, value, f"one of {', '.join(limit['choices'])}")
        return
    low, high = limit["range"]
    step = limit.get("step", 1)
    if not value.isdecimal() or not low <= int(value) <= high or int(value) % step:
        unit = f" {limit['unit']}" if "unit" in limit else ""
        steps = f" in steps of {step}" if step > 1 else ""
        yield _not_allowed(name, value, f"a whole number from {low} to {high}{unit}{steps}")


def _links(hccl_variables: Mapping[str, str]) -> Iterator[Advice]:
    links = ("HCCL_INTRA_PCIE_ENABLE", "HCCL_INTRA_ROCE_ENABLE")
    if all(hccl_variables.get(name) == "1" for name in links):
        yield Advice(
            level="error",
            what="HCCL_INTRA_PCIE_ENABLE and HCCL_INTRA_ROCE_ENABLE are both 1 (EI0001)",
            todo="Unset one of them.",
        )


def _timeouts(hccl_variables: Mapping[str, str]) -> Iterator[Advice]:
    execution, event = (
        hccl_variables.get("HCCL_EXEC_TIMEOUT", ""),
        hccl_variables.get("HCCL_EVENT_TIMEOUT", ""),
    )
    if execution.isdecimal() and int(execution) >= GROUP_TIMEOUT_S:
        yield Advice(
            level="warning",
            what=f"HCCL_EXEC_TIMEOUT={execution} is not below jumar's timeout of "
            f"{GROUP_TIMEOUT_S} s: torch gives up first, and the log does not name the collective",
            todo="export HCCL_EXEC_TIMEOUT=1700",
        )
    if execution.isdecimal() and event.isdecimal() and int(event) <= int(execution):
        yield Advice(
            level="error",
            what=f"HCCL_EVENT_TIMEOUT={event} must exceed HCCL_EXEC_TIMEOUT={execution}",
            todo=f"export HCCL_EVENT_TIMEOUT={int(execution) + 68}",
        )


def _addresses(hccl_variables: Mapping[str, str], root: Path) -> Iterator[Advice]:
    family = hccl_variables.get("HCCL_SOCKET_FAMILY")
    if address := hccl_variables.get("HCCL_IF_IP"):
        try:
            version = ipaddress.ip_address(address).version
        except ValueError:
            yield _not_allowed("HCCL_IF_IP", address, "an IPv4 or IPv6 address of this machine")
        else:
            if family in ("AF_INET", "AF_INET6") and (version == 6) != (family == "AF_INET6"):
                yield Advice(
                    level="error",
                    what=f"HCCL_IF_IP={address} is not an address of HCCL_SOCKET_FAMILY={family}",
                    todo="Set both to the same family (EI0001).",
                )
    # `=eth` selects one interface, `^=eth` all others, `eth` those with that prefix.
    interface_spec = hccl_variables.get("HCCL_SOCKET_IFNAME", "")
    folder = root / _INTERFACES
    if interface_spec and not interface_spec.startswith("^") and folder.is_dir():
        interfaces = sorted(path.name for path in folder.iterdir())
        names = [name.lstrip("=") for name in interface_spec.split(",")]
        exact = interface_spec.startswith("=")
        if not any(
            interface == name if exact else interface.startswith(name)
            for name in names
            for interface in interfaces
        ):
            yield Advice(
                level="error",
                what=f"HCCL_SOCKET_IFNAME={interface_spec} matches no interface of this machine",
                todo=f"Available: {', '.join(interfaces)}.",
            )
    if hccl_variables.get("HCCL_WHITELIST_DISABLE") == "0":
        file = hccl_variables.get("HCCL_WHITELIST_FILE", "")
        if not file or not (root / file.lstrip("/")).is_file():
            yield Advice(
                level="error",
                what="HCCL_WHITELIST_DISABLE=0 needs HCCL_WHITELIST_FILE, and "
                + (f"'{file}' is not a file" if file else "it is not set"),
                todo="Write the file, or unset HCCL_WHITELIST_DISABLE.",
            )


def _not_allowed(name: str, value: str, allowed_values: str) -> Advice:
    return Advice(
        level="error",
        what=f"{name}={value} must be {allowed_values} (EI0001)",
        todo=f"unset {name}",
    )
