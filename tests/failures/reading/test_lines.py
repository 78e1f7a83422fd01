"""Lines of a stream; logs that are quoted in one line."""

from pathlib import Path

import pytest

from jumar.failures.reading.lines import unescaped
from tests.failures.explaining import explain_text, named


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (r"500: error\n[ERROR] 2025-11-19\n[Error]: no", 3),
        (r"a\nTraceback (most recent call last):\n  File x\nValueError: no", 4),
        (r"a\nE30006: 2025-11-19-11:14:58.516.606 Failed", 2),
        (r"a\n[PID: 4346] 2025-11-30-05:12:25.730.116 X(EZ1001): no", 2),
        (r'  File "D:\new\train.py", line 3', 1),
        (r"D:\nested.Exceptions are kept", 1),
        ("nothing", 1),
    ],
)
def test_quoted_log_is_split_at_its_written_out_breaks(text: str, parts: int) -> None:
    assert len(unescaped(text)) == parts


def test_cause_in_a_quoted_log_is_named_before_what_it_led_to(tmp_path: Path) -> None:
    log = (
        r'ERROR | {"detail":"SetDevice(device_id_), error code is 507033\n[ERROR] 2025-11-19-11:14'
        r":58 (PID:356, Device:0, RankID:-1) ERR00100 PTA call acl api failed\n[Error]: Failed to "
        r'start the device. \nE30006: 2025-11-19-11:14:58.516.606 Failed to verify the OPP\n"}'
    )
    explanation = explain_text(tmp_path, log=log + "\n")
    assert named(explanation) == ["npu-opp-unverified"]
    assert explanation.candidates[0].first.line == 1


def test_message_in_a_quoted_log_is_named(tmp_path: Path) -> None:
    log = (
        r'AssertionError: {"message":"call aclnnInplaceCopy failed, error code is 161002\n[ERROR] '
        r"2025-11-30-05:12:25 (PID:4346, Device:0, RankID:-1) ERR00100 PTA call acl api failed.\n"
        r"[PID: 4346] 2025-11-30-05:12:25.730.116 AclNN_Parameter_Error(EZ1001): The self tensor "
        r'cannot be larger than 8 dimensions.\n"}'
    )
    explanation = explain_text(tmp_path, log=log + "\n")
    assert named(explanation)[0] == "cann-message"
    assert explanation.candidates[0].first.says.startswith("The self tensor cannot be larger")
