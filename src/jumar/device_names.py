"""How a device is asked for: `auto`, `cpu`, `cuda`, `cuda:N`, `npu` or `npu:N`."""

import re
from typing import Literal

from jumar.ground.errors import UserError, nearest

Kind = Literal["cpu", "cuda", "npu"]
Request = Literal["auto", "cpu", "cuda", "npu"]

_OTHER_NAMES: dict[str, Kind] = {
    **dict.fromkeys(("gpu", "cuda", "nvidia", "geforce", "rtx", "rocm", "hip", "amd"), "cuda"),
    **dict.fromkeys(("npu", "ascend", "atlas", "davinci", "huawei", "privateuseone"), "npu"),
    **dict.fromkeys(("cpu", "x86", "intel", "host"), "cpu"),
}
"""What users of other frameworks, of drivers and of vendors' pages call a kind of device."""

_UNSUPPORTED = ("mps", "metal", "xpu", "tpu", "xla", "hpu", "mlu", "musa", "meta", "vulkan")


def parse_device(request: str) -> tuple[Request, int | None]:
    """Kind and number of a device; None where no number was given.

    Raises:
        UserError: It is not the name of a device; with the name that was probably meant.
    """
    text = request.strip().lower()
    found = re.fullmatch(r"(auto)|(cpu)|(cuda|npu)(?::([0-9]{1,4}))?", text)
    if found is None:
        raise UserError(
            f"unknown device '{request}'",
            where="--device",
            todo=f"{_hint(text)}Known: auto, cpu, cuda, cuda:N, npu, npu:N.",
        )
    if found[1]:
        return "auto", None
    if found[2]:
        return "cpu", None
    return ("cuda" if found[3] == "cuda" else "npu"), int(found[4]) if found[4] else None


def _hint(text: str) -> str:
    word = next(iter(re.findall(r"[a-z]+(?:86)?", text.removeprefix("/device:"))), "")
    if word in _UNSUPPORTED:
        return f"{word} devices are not supported. "
    kind = next((kind for name, kind in _OTHER_NAMES.items() if word.startswith(name)), "")
    if not kind:
        kind = _OTHER_NAMES.get(nearest(word, _OTHER_NAMES), "")
    if not kind:
        return ""
    # Of `ascend910b` the digits are the chip; only those behind a separator, or directly behind
    # one of our own names, count devices.
    index = re.search(rf"(?:[:/_ -]|{kind}|gpu)([0-9]{{1,2}})$", text)
    known = f"{kind}:{int(index[1])}" if index and kind != "cpu" else kind
    if re.search(r"[:/]", text) and not index and kind != "cpu":
        return f"The part after the colon is a number, as in '{kind}:0'. "
    return f"Did you mean '{known}'? "
