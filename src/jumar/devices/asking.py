"""Parsing device requests: `auto`, or a kind, usually with a number. Does not import torch."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from jumar.ground.errors import UserError, nearest

AUTO = "auto"
_UNSUPPORTED = ("mps", "metal", "xpu", "tpu", "xla", "hpu", "mlu", "musa", "meta", "vulkan")


@dataclass(frozen=True, kw_only=True)
class Names:
    """The names of a kind of device.

    Attributes:
        kind: Its name here and in torch.
        others: Its names in other frameworks, in drivers and on vendors' pages.
        numbered: Whether a number after a colon chooses one of several.
        counted: Names after which digits without a separator are a device number; in `ascend910b`,
            by contrast, they belong to the chip's name.
    """

    kind: str
    others: tuple[str, ...] = ()
    numbered: bool = True
    counted: tuple[str, ...] = ()


def parse_device(request: str, known: Sequence[Names]) -> tuple[str, int | None]:
    """Return the kind and the number of a device; the number is None if it was not specified.

    Args:
        request: The value of `--device`.
        known: The names of every kind.

    Raises:
        UserError: The value is not a device name; the message suggests the likely one.
    """
    text = request.strip().lower()
    if text == AUTO:
        return AUTO, None
    for names in known:
        number = "(?::([0-9]{1,4}))?" if names.numbered else "()"
        match = re.fullmatch(re.escape(names.kind) + number, text)
        if match:
            return names.kind, int(match[1]) if match[1] else None
    forms = [AUTO]
    for names in known:
        forms += [names.kind, f"{names.kind}:N"] if names.numbered else [names.kind]
    raise UserError(
        f"unknown device '{request}'",
        where="--device",
        todo=f"{_hint(text, known)}Known: {', '.join(forms)}.",
    )


def _hint(text: str, kinds: Sequence[Names]) -> str:
    name = next(iter(re.findall(r"[a-z]+(?:86)?", text.removeprefix("/device:"))), "")
    by_name = {known: names for names in kinds for known in (names.kind, *names.others)}
    guess = next((names for known, names in by_name.items() if name.startswith(known)), None)
    if guess is None and name in _UNSUPPORTED:
        return f"{name} devices are not supported. "
    guess = guess or by_name.get(nearest(name, by_name))
    if guess is None:
        return ""
    if not guess.numbered:
        return f"Did you mean '{guess.kind}'? "
    index = re.search(rf"(?:{'|'.join(('[:/_ -]', *guess.counted))})([0-9]{{1,2}})$", text)
    if index:
        return f"Did you mean '{guess.kind}:{int(index[1])}'? "
    if re.search(r"[:/]", text):
        return f"The part after the colon is a number, as in '{guess.kind}:0'. "
    return f"Did you mean '{guess.kind}'? "
