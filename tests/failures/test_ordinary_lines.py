"""Lines that programs print anyway do not hide what ended the job.

The logs of public issues are excerpts. Here they stand as in a whole log: behind what libraries
print at the start of a run, and behind what other processes print when one of them has ended.
"""

from pathlib import Path

import pytest

from tests.failures.explaining import explain_text, named
from tests.failures.test_logs import CASES, LOGS

ORDINARY = Path(__file__).parent / "ordinary"
RIGHT = [name for name, case in CASES.items() if case["named"] and "culprit" not in case]


CUT = 19
"""The drawing whose excerpts are cut at both ends: what ended the job is often missing in them."""


@pytest.mark.parametrize(
    ("kind", "is_cut", "most"),
    [("startup", False, 7), ("followers", False, 12), ("startup", True, 6), ("followers", True, 7)],
)
def test_ordinary_lines_in_front_change_few_first_causes(
    kind: str, is_cut: bool, most: int, tmp_path: Path
) -> None:
    """Those that change hold only an effect, or no error in the form of one."""
    ordinary = (ORDINARY / f"{kind}.txt").read_text(encoding="utf-8")
    changed: list[str] = []
    for name in (name for name in RIGHT if (CASES[name]["drawing"] == CUT) == is_cut):
        logs = sorted(path for path in (LOGS / name).iterdir() if path.suffix != ".json")
        text = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in logs)
        first = named(explain_text(tmp_path, log=ordinary + text))[:1]
        if first and first[0] not in CASES[name]["expects"]:
            changed.append(name)
    assert len(changed) <= most, changed
    assert len(RIGHT) > 250
