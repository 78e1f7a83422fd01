"""Rivals that take turns, of which some are lost."""

import importlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from jumar.devices.contract import Device
from on_accelerator.measuring import Context, Missing
from on_accelerator.rivals import Rival, Step, compare


def rival(name: str, step: Callable[[], object], *, is_peer: bool = False) -> Rival:
    """One that is built at once."""

    def build(context: Context, device: Device) -> Step:
        del context, device
        return step

    return Rival(name=name, build=build, is_peer=is_peer, eager=not is_peer)


def lacking(name: str) -> Rival:
    """One that imports what is not there."""

    def build(context: Context, device: Device) -> Step:
        del context, device
        return importlib.import_module("package_that_nobody_has").step

    return Rival(name=name, build=build, is_peer=True)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    rates = {"float32": 1e9, "copy": 1e9}
    place = {"out": tmp_path, "work": tmp_path, "data": None}
    return Context(device="cpu", small=True, deadline=time.time() + 60, rates=rates, **place)


def multiply() -> object:
    """2 x 64 x 64 x 64 operations."""
    return torch.ones(64, 64) @ torch.ones(64, 64)


def test_faster_rival_is_found_and_shares_follow_the_rates(context: Context) -> None:
    rivals = [
        rival("jumar", lambda: (time.sleep(0.02), multiply())),
        rival("peer", lambda: time.sleep(0.25), is_peer=True),
        rival("slow peer", lambda: time.sleep(0.6), is_peer=True),
    ]
    rows = compare(context, rivals, {"network": "none"}, samples=10, dtype="float32")
    assert [row["of"] for row in rows] == ["jumar", "peer", "slow peer"]
    ours, peer, slow = rows
    assert ours["ms"] < peer["ms"] < slow["ms"]
    assert ours["samples_s"] == pytest.approx(10_000 / ours["ms"])
    assert ours["of_best_peer"] == pytest.approx(peer["ms"] / ours["ms"])
    assert peer["of_best_peer"] == pytest.approx(1)
    flops = 2 * 64**3
    assert ours["of_peak"] == pytest.approx(flops / 1e9 / (ours["ms"] / 1000))
    # The two matrices of ones are written, too.
    assert ours["of_roofline"] > ours["of_peak"]


def test_failed_rivals_are_named_and_the_others_measured(context: Context) -> None:
    rivals = [
        rival("jumar", multiply),
        lacking("package"),
        rival("dying", lambda: os._exit(7), is_peer=True),
        rival("failing", lambda: 1 / 0, is_peer=True),
    ]
    rows = compare(context, rivals, {"network": "none"}, samples=1)
    lost = {row["of"]: row["not measured"] for row in rows if "not measured" in row}
    assert lost == {
        "package": "needs package_that_nobody_has, which is not installed",
        "dying": "its process exited 7",
        "failing": "ZeroDivisionError: division by zero",
    }
    assert rows[0]["ms"] > 0
    assert rows[0]["of_best_peer"] is None


def test_measurement_is_missing_if_every_rival_lacks_a_package(context: Context) -> None:
    with pytest.raises(Missing, match="needs package_that_nobody_has"):
        compare(context, [lacking("one"), lacking("two")], {}, samples=1)
