"""Machines that fall silent are noticed, with a real store between them."""

# Torch documents TCPStore under this name but does not export it.
# pyright: reportPrivateImportUsage=false

import platform
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch.distributed as dist

from jumar.training.parallel import silence
from jumar.training.parallel.replicated import Replicated
from jumar.training.parallel.silence import Place, SilenceWatch, announced_place

VARIABLES = {
    "GROUP_RANK": "1",
    "GROUP_WORLD_SIZE": "4",
    "LOCAL_RANK": "0",
    "MASTER_ADDR": "10.0.0.1",
    "MASTER_PORT": "29500",
}


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signs every 50 ms, and silence after a second."""
    monkeypatch.setattr(silence, "BEAT_S", 0.05)
    monkeypatch.setattr(silence, "SILENCE_S", 1.0)


def opened() -> tuple[dist.TCPStore, Callable[[int], Place]]:
    store = dist.TCPStore("127.0.0.1", 0, None, is_master=True, wait_for_workers=False)

    port = store.port

    def place(node: int) -> Place:
        return Place(node=node, nodes=2, is_local_leader=True, host="127.0.0.1", port=port)

    return store, place


def ended(codes: list[int], within_s: float = 5.0) -> bool:
    began = time.monotonic()
    while not codes and time.monotonic() - began < within_s:
        time.sleep(0.02)
    return bool(codes)


@pytest.mark.usefixtures("fast")
def test_silent_machine_ends_the_others_and_is_named(
    capfd: pytest.CaptureFixture[str],
) -> None:
    store, place = opened()
    codes: list[int] = []
    watch = SilenceWatch(place(0), lambda: "Go on with: this", end=codes.append)
    store.set("jumar/alive/1", "7 that-host")
    watch.start()
    assert ended(codes)
    assert codes == [2]
    message = capfd.readouterr().err
    assert "node 1 (that-host) has sent no heartbeat" in message
    assert "Go on with: this" in message


@pytest.mark.usefixtures("fast")
def test_active_and_departed_machines_are_not_reported_missing() -> None:
    _store, place = opened()
    codes: list[int] = []
    watches = [SilenceWatch(place(node), str, end=codes.append) for node in (0, 1)]
    for watch in watches:
        watch.start()
    assert not ended(codes, within_s=1.5)
    watches[1].stop()
    assert not ended(codes, within_s=1.5)
    watches[0].stop()


@pytest.mark.usefixtures("fast")
def test_lost_store_ends_every_rank(capfd: pytest.CaptureFixture[str]) -> None:
    store, place = opened()
    codes: list[int] = []
    watches = [SilenceWatch(place(node), str, end=codes.append) for node in (0, 1)]
    for watch in watches:
        watch.start()
    del store
    assert ended(codes)
    assert "does not respond" in capfd.readouterr().err


def test_position_is_read_from_torchruns_variables() -> None:
    place = announced_place(VARIABLES)
    assert place == Place(node=1, nodes=4, is_local_leader=True, host="10.0.0.1", port=29500)
    assert announced_place({**VARIABLES, "MASTER_PORT": "none"}) is None
    assert announced_place({}) is None


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            RuntimeError("[gloo/transport/tcp/pair.cc:537] Read error: Connection reset by peer."),
            "another rank is lost (connection reset)",
        ),
        (RuntimeError("Gloo connectFullMesh failed with timed out connecting"), "is lost"),
        (dist.DistStoreError("wait timeout after 1000ms"), "is lost"),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied (gloo)"), ""),
        (RuntimeError("Connection reset by a data source"), ""),
        (ValueError("gloo: timed out"), ""),
    ],
)
def test_connection_errors_between_ranks_are_distinguished_from_defects(
    monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    monkeypatch.delenv("GROUP_RANK", raising=False)
    message = Replicated(rank=1, world=2, local_world=1).loss_in(error)
    assert words in message if words else message == ""


def test_machines_silent_beyond_the_limit_are_named() -> None:
    _store, place = opened()
    watch = SilenceWatch(place(0), str, end=pytest.fail)
    assert (silence.BEAT_S, silence.SILENCE_S) == (2.0, 15.0)
    watch._answered, watch._seen, watch._names = 100.0, [100.0, 99.0], ["here", "that-host"]
    assert watch._silent(114.0) == ""
    assert watch._silent(114.1) == "node 1 (that-host) has sent no heartbeat for 15 s"
    watch._names[1] = ""
    assert watch._silent(115.0) == "node 1 has sent no heartbeat for 15 s"
    watch._seen = [99.5, 99.0]
    assert watch._silent(114.6).startswith("node 0 (here)")
    port = place(0).port
    assert (
        watch._silent(115.1)
        == f"the store through which the ranks meet, 127.0.0.1:{port}, does not respond"
    )


def test_heartbeats_record_the_first_and_the_last_sign() -> None:
    store, place = opened()
    quiet = SilenceWatch(replace(place(1), is_local_leader=False), str, end=pytest.fail)
    assert not store.check(["jumar/alive/1"])
    quiet.stop()
    assert not store.check(["jumar/alive/1"])
    watch = SilenceWatch(place(1), str, end=pytest.fail)
    assert store.get("jumar/alive/1").decode() == f"0 {platform.node()}"
    watch.stop()
    assert store.get("jumar/alive/1").decode() == f"left {platform.node()}"
    assert place(0).answers
    assert not replace(place(0), port=1).answers
    quiet_one = announced_place({**VARIABLES, "LOCAL_RANK": "3"})
    assert quiet_one is not None
    assert not quiet_one.is_local_leader


def test_ranks_on_one_machine_watch_nobody_and_spares_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    for world, nodes in ((2, 1), (3, 2), (4, 2), (8, 4), (20, 4)):
        place = Replicated(rank=0, world=world, local_world=2)._place
        assert place is not None
        assert place.nodes == nodes
    Replicated(rank=0, world=2, local_world=2).watch(pytest.fail)
    monkeypatch.delenv("GROUP_RANK")
    Replicated(rank=0, world=8, local_world=2).watch(pytest.fail)


def test_error_says_whether_the_ranks_can_still_rendezvous(monkeypatch: pytest.MonkeyPatch) -> None:
    store, place = opened()
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    error = RuntimeError("gloo: Broken pipe")
    ranks = Replicated(rank=1, world=4, local_world=1)
    for port, words in (
        (place(0).port, "another rank is lost (broken pipe)"),
        (1, "the store through which the ranks meet, 127.0.0.1:1, does not respond"),
    ):
        monkeypatch.setenv("MASTER_PORT", str(port))
        assert ranks.loss_in(error) == words
    assert ranks.loss_in(RuntimeError("gloo: shapes differ")) == ""
    assert store.port == place(0).port
