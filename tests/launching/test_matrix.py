"""Driver, firmware, CANN, torch_npu and torch: the first two that do not fit are named."""

from dataclasses import replace

import pytest

from jumar.launching.matrix import Stack

FITTING = Stack(
    driver="25.2.0",
    firmware="7.7.0.1.231",
    firmware_range=("7.0.0", "7.7.99"),
    cann="8.2.RC1",
    adapter="2.6.0",
    adapter_name="torch_npu",
    torch="2.6.0+cpu",
)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"cann": "8.3.RC1"},
        {"cann": "8.5.0", "adapter": "2.6.0.post5"},
        {"cann": "9.1.0-beta.3", "adapter": "2.6.0.post99"},
        {"cann": "12.0.0"},
        {"cann": "8.3.RC11", "adapter": "2.9.0", "torch": "2.9.0"},
        {"driver": None, "firmware": None},
        {"driver": "25.9.9"},
        {"cann": None, "adapter": None, "torch": None},
        {"firmware_range": None, "firmware": "1.0"},
        {"driver": "24.1.rc3.b999"},
    ],
)
def test_matching_or_unlisted_versions_are_accepted(changes: dict[str, str]) -> None:
    assert replace(FITTING, **changes).first_mismatch() is None


@pytest.mark.parametrize(
    ("changes", "level", "what", "todo"),
    [
        (
            {"firmware": "6.4.12.1.241"},
            "error",
            "driver 25.2.0 needs firmware 7.0.0 to 7.7.99, but 6.4.12.1.241 is installed",
            "firmware of the driver's own release",
        ),
        ({"firmware": "7.8.0"}, "error", "7.8.0 is installed", "restart"),
        (
            {"driver": "23.0.5"},
            "error",
            "CANN 8.2.RC1 is for drivers 24.1, 25.0, 25.2, but 23.0.5 is installed",
            "Install driver and firmware 25.2",
        ),
        (
            {"cann": "8.5.0", "driver": "24.1.rc3"},
            "error",
            "CANN 8.5.0 is for drivers 25.0",
            "25.5",
        ),
        (
            {"cann": "8.5.0"},
            "warning",
            "torch_npu 2.6.0 is for CANN 8.2.RC1, but 8.5.0 is installed",
            "pip install 'torch_npu==2.6.0.post5', or install CANN 8.2.RC1",
        ),
        (
            {"cann": "8.1.RC1", "adapter": "2.9.0", "torch": "2.9.0"},
            "warning",
            "torch_npu 2.9.0 is for CANN 8.5.0, but 8.1.RC1 is installed",
            "pip install 'torch_npu==2.5.1'",
        ),
        (
            {"torch": "2.7.1"},
            "error",
            "torch_npu 2.6.0 is for torch 2.6, but 2.7.1 is installed",
            "pip install 'torch==2.6.*'",
        ),
    ],
)
def test_mismatched_pair_is_named_with_what_to_install(
    changes: dict[str, str], level: str, what: str, todo: str
) -> None:
    advice = replace(FITTING, **changes).first_mismatch()
    assert advice is not None
    assert advice.level == level
    assert advice.what.startswith("first mismatch: ")
    assert what in advice.what
    assert todo in advice.todo


def test_mismatch_closest_to_the_hardware_is_named() -> None:
    broken = replace(FITTING, firmware="1.0.0", driver="22.0.1", cann="8.5.0", torch="2.9.0")
    order = ["needs firmware", "is for drivers", "is for CANN", "is for torch"]
    mends = [{"firmware": "7.1.0"}, {"driver": "25.2.0"}, {"cann": "8.2.RC1"}, {"torch": "2.6.0"}]
    for words, mend in zip(order, mends, strict=True):
        advice = broken.first_mismatch()
        assert advice is not None
        assert words in advice.what
        broken = replace(broken, **mend)
    assert broken.first_mismatch() is None


def test_version_line_runs_from_hardware_up_and_is_empty_without_ascend() -> None:
    assert FITTING.line == (
        "driver 25.2.0 · firmware 7.7.0.1.231 · CANN 8.2.RC1 · torch_npu 2.6.0 · torch 2.6.0+cpu"
    )
    bare = replace(FITTING, driver=None, firmware=None, cann=None, adapter=None)
    assert bare.line == ""
