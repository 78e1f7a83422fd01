"""How many ranks share a batch."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Timer

import pytest
import torch.distributed as dist

from jumar.ground.errors import UserError
from jumar.training.parallel import silence, spare
from jumar.training.parallel.silence import Place
from jumar.training.parallel.spare import release_spares, sharing, spares_line, wait_as_spare


@pytest.mark.parametrize(
    ("ranks", "samples", "part", "expected"),
    [
        (3, 8, 1, 2),
        (4, 8, 1, 4),
        (3, 12, 1, 3),
        (3, 8, 4, 2),
        (2, 12, 4, 1),
        (7, 7, 1, 7),
        (6, 7, 1, 1),
        (9, 4, 1, 4),
    ],
)
def test_number_of_training_ranks_divides_the_batch(
    ranks: int, samples: int, part: int, expected: int
) -> None:
    count = sharing(ranks, samples, part)
    assert count == expected
    assert samples // count % part == 0


def test_message_counts_training_and_spare_ranks() -> None:
    assert "3 ranks cannot share batches of 8 samples: 2 train, 1 waits as a spare" in spares_line(
        3, 2, 8
    )
    assert "1 trains, 5 wait as spares" in spares_line(6, 1, 7)


def test_message_is_complete() -> None:
    assert spares_line(3, 2, 8) == (
        "3 ranks cannot share batches of 8 samples: 2 train, 1 waits as a spare (a global batch "
        "that every number of ranks divides needs none)"
    )
    assert spares_line(6, 1, 7).partition(" (")[0] == (
        "6 ranks cannot share batches of 7 samples: 1 trains, 5 wait as spares"
    )


def test_spares_exit_when_the_run_is_finished_and_fail_without_a_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = dist.TCPStore("127.0.0.1", 0, None, is_master=True, wait_for_workers=False)
    place = Place(node=1, nodes=2, is_local_leader=True, host="127.0.0.1", port=server.port)
    timer = Timer(0.1, release_spares, [place])
    timer.start()
    wait_as_spare(place)
    timer.join()
    wait_as_spare(place)
    monkeypatch.setattr(silence, "SILENCE_S", 0.3)
    monkeypatch.setattr(spare, "_OPENING", timedelta(seconds=0.3))
    nowhere = Place(node=1, nodes=2, is_local_leader=True, host="127.0.0.1", port=1)
    release_spares(nowhere)
    with pytest.raises(UserError) as refused:
        wait_as_spare(nowhere)
    assert (
        str(refused.value)
        == "the store through which the ranks meet, 127.0.0.1:1, does not respond"
    )


def _store() -> tuple[dist.TCPStore, Place]:
    server = dist.TCPStore("127.0.0.1", 0, None, is_master=True, wait_for_workers=False)
    return server, Place(node=0, nodes=1, is_local_leader=True, host="127.0.0.1", port=server.port)


def test_host_of_the_store_leaves_after_the_spares_have_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Spares that look at the store every 10 ms would soon find it closed.
    monkeypatch.setattr(spare, "_POLL_INTERVAL", timedelta(milliseconds=10))
    with ThreadPoolExecutor(2) as spares:
        for _ in range(20):
            server, place = _store()
            waiting = [spares.submit(wait_as_spare, place) for _ in range(2)]
            time.sleep(0.05)
            release_spares(place, hosted_for=2)
            del server
            assert [one.result(timeout=30) for one in waiting] == [None, None]


def test_host_of_the_store_does_not_wait_for_a_lost_spare_forever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spare, "_LEAVING_S", 0.3)
    server, place = _store()
    began = time.monotonic()
    release_spares(place, hosted_for=1)
    assert 0.25 < time.monotonic() - began < 20
    assert server.check(["jumar/finished"])


def test_spare_waits_for_a_store_that_opens_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "SILENCE_S", 0.5)
    server, place = _store()
    del server
    with ThreadPoolExecutor(1) as spares:
        waiting = spares.submit(wait_as_spare, place)
        time.sleep(4)
        late = dist.TCPStore(place.host, place.port, None, is_master=True, wait_for_workers=False)
        release_spares(place, hosted_for=1)
        assert waiting.result(timeout=60) is None
    del late
