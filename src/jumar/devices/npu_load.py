"""The load of an NPU, from `npu-smi info`, whose table differs from release to release.

There are two lines per chip: card, name, health, power, temperature and huge pages; then chip,
in some releases its number on the host, bus, AI Core and memory. The headers name the fields; their
values depend on the card (HBM follows DDR, and inference cards have only DDR). Chips other than the
first of a card have `-` or `NA` in place of the card's values.
"""

import os
import re

from jumar.devices.load import DeviceLoad, UnreadableLoadError, number_in, output_of
from jumar.ground.text import first_line

_COMMAND = ("npu-smi", "info")
_VISIBLE = "ASCEND_RT_VISIBLE_DEVICES"
_MIB = 1 << 20
_PAIR = r"(\d+)\s*/\s*(\d+)"
_BUS = r"NA|-|[0-9A-Fa-f]{4}:[0-9A-Fa-f:.]+"


class NpuMeter:
    """Queries npu-smi.

    Args:
        index: Number of the NPU among the visible ones.
    """

    def __init__(self, index: int) -> None:
        self._number = number_on_machine(index, os.environ.get(_VISIBLE, ""))

    def read(self) -> DeviceLoad:
        """See `LoadMeter.read`."""
        chips = parse_npu_smi(output_of(_COMMAND))
        if self._number >= len(chips):
            raise UnreadableLoadError(
                f"npu-smi lists {len(chips)} chips, but none with the number {self._number}"
            )
        return chips[self._number]


def number_on_machine(index: int, visible: str) -> int:
    """The number of an NPU among all NPUs of the machine.

    Args:
        index: Number among the visible ones.
        visible: The value of ASCEND_RT_VISIBLE_DEVICES; empty if all are visible.
    """
    numbers = re.fullmatch(r"\d+(,\d+)*", visible.replace(" ", ""))
    devices = [int(number) for number in numbers[0].split(",")] if numbers else []
    return devices[index] if index < len(devices) else index


def parse_npu_smi(text: str) -> list[DeviceLoad]:
    """The load of each chip in the output of `npu-smi info`, in order of their numbers.

    Raises:
        UnreadableLoadError: The output contains no such table.
    """
    if not (re.search(r"\|\s*NPU\s+Name\s*\|", text) and "AICore(%)" in text):
        raise UnreadableLoadError(f"npu-smi printed no table: {first_line(text, 'nothing')}")
    chips: list[DeviceLoad] = []
    power_text: str | None = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) != 3 or not re.match(r"\d+\b", cells[0]):
            continue
        if power_text is None or not re.fullmatch(_BUS, cells[1]):
            power_text = cells[2]
        else:
            chips.append(_load(power_text, cells[2]))
            power_text = None
    if not chips:
        raise UnreadableLoadError("npu-smi lists no chip")
    return chips


def _load(power_text: str, usage_text: str) -> DeviceLoad:
    """Parse the third cells of a chip's two lines."""
    power, temperature = [*map(number_in, power_text.split()[:2]), None, None][:2]
    pairs = [(int(a), int(b)) for a, b in re.findall(_PAIR, usage_text)]
    # HBM is the last; for a card without it, the table has 0 / 0 or nothing.
    memory = next(((a, b) for a, b in reversed(pairs) if b), None)
    return DeviceLoad(
        busy_percent=number_in(usage_text),
        memory_used_bytes=memory[0] * _MIB if memory else None,
        memory_total_bytes=memory[1] * _MIB if memory else None,
        power_w=power,
        temperature_c=temperature,
    )
