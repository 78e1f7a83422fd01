"""Checks whether driver, firmware, CANN, torch_npu and torch match.

The driver itself lists the firmware that it accepts; the other tables are published ones, in
`versions.json`. Versions that are in no table are not checked.
"""

import re
from dataclasses import dataclass
from typing import Any, Literal

from jumar.launching.cann import facts


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A finding; `level` is `error`, `warning` or `note`."""

    level: Literal["error", "warning", "note"]
    what: str
    todo: str


@dataclass(frozen=True, kw_only=True)
class Stack:
    """Versions from the hardware up; None if missing.

    Attributes:
        firmware_range: The oldest and the newest firmware that the driver accepts.
        adapter: The version of torch's package for NPUs.
        adapter_name: The name of that package.
    """

    driver: str | None
    firmware: str | None
    firmware_range: tuple[str, str] | None
    cann: str | None
    adapter: str | None
    adapter_name: str
    torch: str | None

    @property
    def line(self) -> str:
        """All versions; empty on a machine without Ascend software."""
        if not (self.driver or self.firmware or self.cann or self.adapter):
            return ""
        parts = {
            "driver": self.driver,
            "firmware": self.firmware,
            "CANN": self.cann,
            self.adapter_name: self.adapter,
            "torch": self.torch,
        }
        return " · ".join(f"{name} {version or '-'}" for name, version in parts.items())

    def first_mismatch(self) -> Advice | None:
        """Return the first mismatch, from the hardware up; others often follow from it."""
        return _firmware(self) or _driver(self) or _adapter(self) or _torch(self)


def _firmware(stack: Stack) -> Advice | None:
    firmware = stack.firmware
    if not firmware or not stack.firmware_range:
        return None
    oldest, newest = stack.firmware_range
    digits = len(_numbers(newest))
    if _numbers(oldest) <= _numbers(firmware)[:digits] <= _numbers(newest):
        return None
    return Advice(
        level="error",
        what=f"first mismatch: driver {stack.driver or '?'} needs firmware {oldest} "
        f"to {newest}, but {firmware} is installed",
        todo="Install the firmware of the driver's own release, then restart the machine.",
    )


def _driver(stack: Stack) -> Advice | None:
    driver, cann = stack.driver, stack.cann
    if not driver or not cann:
        return None
    drivers: list[str] = facts("versions")["drivers"].get(".".join(cann.split(".")[:2]), [])
    if not drivers or _numbers(driver)[:2] >= _numbers(drivers[0]):
        return None
    return Advice(
        level="error",
        what=f"first mismatch: CANN {cann} is for drivers {', '.join(drivers)}, but "
        f"{driver} is installed",
        todo=f"Install driver and firmware {drivers[-1]}, or an older CANN.",
    )


def _adapter(stack: Stack) -> Advice | None:
    adapter, cann = stack.adapter, stack.cann
    if not adapter or not cann:
        return None
    table: dict[str, Any] = facts("versions")["adapters"]
    compatible_releases: list[str] = table["any"]
    releases = {name: versions for name, versions in table.items() if name not in ("source", "any")}
    installed = next(
        (name for name in (*releases, *compatible_releases) if _is_release(cann, name)), None
    )
    intended = next((name for name, versions in releases.items() if adapter in versions), None)
    if installed is None or intended is None or installed == intended:
        return None
    if installed in compatible_releases and intended in compatible_releases:
        return None
    minor = ".".join(adapter.split(".")[:2])
    same_minor = [
        version for version in releases.get(installed, []) if version.startswith(f"{minor}.")
    ]
    suggestions = (same_minor or releases.get(installed, []))[:1]
    todo = (
        f"pip install '{stack.adapter_name}=={suggestions[0]}', or install CANN {intended}."
        if suggestions
        else ""
    )
    return Advice(
        level="warning",
        what=f"first mismatch: {stack.adapter_name} {adapter} is for CANN {intended}, but "
        f"{cann} is installed",
        todo=todo or f"Install CANN {intended}.",
    )


def _torch(stack: Stack) -> Advice | None:
    adapter, torch = stack.adapter, stack.torch
    if not adapter or not torch or _numbers(adapter)[:2] == _numbers(torch)[:2]:
        return None
    minor = ".".join(adapter.split(".")[:2])
    return Advice(
        level="error",
        what=f"first mismatch: {stack.adapter_name} {adapter} is for torch {minor}, but "
        f"{torch} is installed",
        todo=f"pip install 'torch=={minor}.*'",
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", version.partition("+")[0]))


def _is_release(version: str, name: str) -> bool:
    return re.match(rf"{re.escape(name)}(?!\d)", version, re.IGNORECASE) is not None
