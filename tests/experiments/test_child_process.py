import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jumar.experiments.child_process import run_child, run_children

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("code", [0, 1, 2, 143])
def test_the_exit_code_of_the_child_comes_back(code: int) -> None:
    assert run_child([sys.executable, "-c", f"raise SystemExit({code})"]) == code


def test_a_killed_child_is_a_negative_code() -> None:
    code = "import os; os.kill(os.getpid(), 9)"
    assert run_child([sys.executable, "-c", code]) == -9


def test_handlers_are_as_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    run_child([sys.executable, "-c", ""])
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@pytest.mark.parametrize("whole_group", [True, False], ids=["ctrl-c", "sigterm"])
def test_a_child_that_saves_for_a_second_is_waited_for(tmp_path: Path, whole_group: bool) -> None:
    """Ctrl-C reaches parent and child by the terminal, SIGTERM only the parent."""
    child = f"""
import pathlib, signal, time
here = pathlib.Path({str(tmp_path)!r})
stop = []
signal.signal(signal.SIGINT, lambda *_: stop.append(130))
signal.signal(signal.SIGTERM, lambda *_: stop.append(143))
(here / "ready").touch()
while not stop:
    time.sleep(0.01)
time.sleep(1)
(here / "saved").write_text(str(stop))
raise SystemExit(stop[0])
"""
    parent = (
        "import sys; from jumar.experiments.child_process import run_child; "
        f"sys.exit(run_child([sys.executable, '-c', {child!r}]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", parent],
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "src")},
    )
    deadline = time.monotonic() + 30
    while not (tmp_path / "ready").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    if whole_group:
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.SIGTERM)
    expected = 130 if whole_group else 143
    assert process.wait(timeout=30) == expected
    # Told once: a second signal would make a run leave at once, without its checkpoint.
    assert (tmp_path / "saved").read_text() == f"[{expected}]"


def test_children_side_by_side_keep_their_order_and_outputs(tmp_path: Path) -> None:
    def command(place: int) -> list[str]:
        code = f"import time; time.sleep({0.6 - 0.2 * place}); print({place}); exit({place})"
        return [sys.executable, "-c", code]

    outputs = [tmp_path / f"{place}.txt" for place in range(3)]
    begun = time.monotonic()
    codes = run_children([command(place) for place in range(3)], at_once=3, outputs=outputs)
    assert codes == [0, 1, 2]
    assert [path.read_text() for path in outputs] == ["0\n", "1\n", "2\n"]
    assert time.monotonic() - begun < 60


def test_no_more_children_run_at_once_than_allowed(tmp_path: Path) -> None:
    code = f"""
import pathlib, time
here = pathlib.Path({str(tmp_path)!r})
mine = here / f"running-{{time.monotonic_ns()}}"
mine.touch()
time.sleep(0.1)
count = len(list(here.glob("running-*")))
mine.unlink()
exit(count)
"""
    codes = run_children([[sys.executable, "-c", code]] * 5, at_once=2)
    assert max(codes) == 2
