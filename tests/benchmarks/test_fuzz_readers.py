"""Damaged files: readers refuse them as a user's error, and one that does not is noticed."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import fuzz_readers
from damage import damage
from fuzz_targets import Target
from jumar.ground.errors import UserError
from tests.checkout import CHECKOUT

SLOW = ("profile folders", "scripts")


@pytest.mark.slow
def test_readers_raise_user_errors_for_damaged_files(shared: Path, tmp_path: Path) -> None:
    command = [sys.executable, "benchmarks/fuzz_readers.py", str(shared / "data")]
    options = ["--count", "50", "--seed", "4", "--keep", str(tmp_path / "kept")]
    without = [word for name in SLOW for word in ("--without", name)]
    done = subprocess.run(
        [*command, *options, *without],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    lines = [line for line in done.stdout.splitlines() if " refused " in line]
    assert len(lines) > 25
    assert not [line for line in lines if " 0 read       0 refused" in line]


def test_unknown_reader_is_refused_with_the_known_ones(shared: Path) -> None:
    done = subprocess.run(
        [sys.executable, "benchmarks/fuzz_readers.py", str(shared / "data"), "--only", "pictures"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert "unknown reader 'pictures'; known: images, zips" in done.stderr


def refuse(_path: Path) -> None:
    raise UserError("no")


def fail(path: Path) -> object:
    return dict[Path, int]()[path]


def hang(_path: Path) -> None:
    time.sleep(60)


def take_all_memory(_path: Path) -> object:
    return bytearray(64 * 2**30)


def die(_path: Path) -> None:
    os._exit(3)


@pytest.mark.parametrize(
    ("read", "found"),
    [
        (refuse, ""),
        (fail, "KeyError"),
        (die, "the process died"),
        (hang, "TooSlow"),
        (take_all_memory, "MemoryError"),
    ],
    ids=["refuses", "raises", "dies", "hangs", "takes all memory"],
)
def test_forbidden_reader_behaviour_is_found(
    read: Callable[[Path], object],
    found: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fuzz_readers, "BATCH", 1)
    monkeypatch.setattr(fuzz_readers, "SECONDS", 1)
    target = Target(read=read, seeds=[{"a.json": b'{"a": [1, 2]}'}])
    outcome = fuzz_readers.fed_apart("a reader", target, 1, tmp_path / "kept")
    assert (outcome.refused, len(outcome.defects)) == (not found, bool(found))
    assert all(found in text for text in outcome.defects)
    assert (tmp_path / "kept").exists() == (found in ("KeyError", "TooSlow", "MemoryError"))


def test_damage_is_decided_by_the_seed_and_changes_the_file() -> None:
    data = b'{"rows": [{"a": 1, "b": "x"}]}\n' * 2
    made = [damage(data, random.Random(seed)) for seed in range(200)]
    assert made == [damage(data, random.Random(seed)) for seed in range(200)]
    assert len(set(made)) > 150
