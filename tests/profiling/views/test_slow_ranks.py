"""Ranks that compute longer, links that are slower, transfers in small packets or not aligned."""

from typing import Any

import pytest

from jumar.profiling.views.slow_ranks import alignment, packets, rank_times, slow_links
from jumar.profiling.views.view import VIEWS, Impossible, Options
from tests.profiling.generated import profile_of

_US = 1000


def _op(rank: int | None, step: int, start: int, length: int, **more: Any) -> dict[str, Any]:
    row = {"rank": rank, "step": step, "name": "a", "core": "AI_CORE"}
    return row | {"start_ns": start * _US, "duration_ns": length * _US} | more


def test_ranks_are_compared_with_the_median_by_their_average_step() -> None:
    ops = [
        *(_op(0, step, 1000 * step, 100) for step in range(3)),
        _op(1, 0, 0, 90),
        _op(1, 1, 1000, 110),
        _op(1, 1, 1110, 40, core="COMMUNICATION"),
        _op(2, 0, 0, 104),
        _op(3, 0, 0, 50),
        _op(3, 0, 60, 56),
    ]
    table = VIEWS["ranks"].make(profile_of(ops), Options())
    assert table.to_dicts() == [
        {
            "rank": rank,
            "steps": steps,
            "computing_ms": computing,
            "communication_not_overlapped_ms": talking,
            "free_ms": free,
            "computes_longer_%": longer,
            "verdict": verdict,
        }
        for rank, steps, computing, talking, free, longer, verdict in (
            (0, 3, 0.1, 0.0, 0.0, 0.0, ""),
            (1, 2, 0.1, 0.02, 0.0, 0.0, ""),
            (2, 1, 0.104, 0.0, 0.0, 4.0, ""),
            (3, 1, 0.106, 0.0, 0.01, 6.0, "slow"),
        )
    ]


def test_faster_of_two_ranks_is_the_median_and_shares_have_two_decimals() -> None:
    table = rank_times(profile_of([_op(0, 0, 0, 7), _op(1, 0, 0, 6)]))
    assert table["computes_longer_%"].to_list() == [16.67, 0.0]
    assert table["verdict"].to_list() == ["slow", ""]


def test_without_ops_ranks_are_compared_by_recorded_figures() -> None:
    steps = [
        {"rank": rank, "step": 0, "computing_ns": length, "free_ns": 2, "start_ns": 0}
        for rank, length in ((1, 30), (None, 20), (None, 40), (2, None))
    ]
    table = rank_times(profile_of(steps=[*steps, {"rank": 0, "step": 1, "computing_ns": 60}]))
    columns = ("rank", "steps", "computing_ns", "free_ns", "computes_longer_%", "verdict")
    assert table.select(columns).rows() == [
        (0, 3, 40.0, 2.0, 33.33, "slow"),
        (1, 1, 30.0, 2.0, 0.0, ""),
    ]


def test_single_rank_is_neither_slow_nor_fast() -> None:
    for ops in ([_op(0, 0, 0, 7)], [_op(None, 0, 0, 7), _op(0, 0, 8, 7)]):
        with pytest.raises(Impossible) as told:
            rank_times(profile_of(ops))
        assert str(told.value) == ("needs at least two ranks; pass the folders of all ranks")
    with pytest.raises(Impossible) as told:
        rank_times(profile_of([_op(rank, 0, 0, 7, start_ns=None) for rank in (0, 1)]))
    assert str(told.value) == (
        "needs ops with start times and durations, or the computing time of each step"
    )


def _link(source: int | None, destination: int | None, size: int, length: int, **more: Any) -> Any:
    row = {"rank": 0, "name": "all", "transport": "HCCS", "source": source}
    row |= {"destination": destination, "size_bytes": size, "transit_ns": length}
    return row | more


def test_links_are_compared_with_the_median_of_their_transport() -> None:
    links = [
        _link(0, 1, 1_000_000, 100_000),
        _link(1, 0, 1_000_000, 50_000),
        _link(0, 1, 1_000_500, 100_050),
        _link(0, 2, 3_000_000, 150_000),
        _link(2, 0, 1_920_000, 100_000),
        _link(2, 1, 2_123_456, 100_000),
        _link(0, 1, 5_000_000, 900_000, transport="RDMA"),
        # No transfer between two ranks that took time.
        _link(3, 3, 9, 9),
        _link(None, 1, 9, 9),
        _link(0, 1, 0, 9),
        _link(0, 1, 9, 0),
    ]
    table = VIEWS["links"].make(profile_of(links=links), Options())
    assert table.columns == [
        *("transport", "source", "destination", "transfers", "size_mb", "transit_ms"),
        *("gb_s", "below_median_%", "verdict"),
    ]
    assert table.rows() == [
        ("RDMA", 0, 1, 1, 5.0, 0.9, 5.556, 0.0, ""),
        ("HCCS", 0, 1, 2, 2.0, 0.20005, 10.0, 50.0, "slow"),
        ("HCCS", 2, 0, 1, 1.92, 0.1, 19.2, 4.0, ""),
        ("HCCS", 0, 2, 1, 3.0, 0.15, 20.0, 0.0, ""),
        ("HCCS", 1, 0, 1, 1.0, 0.05, 20.0, 0.0, ""),
        ("HCCS", 2, 1, 1, 2.123, 0.1, 21.235, -6.2, ""),
    ]
    near = [_link(0, 1, 100, 1), _link(1, 0, 100, 1)]
    for size, verdict in ((94, "slow"), (96, "")):
        found = slow_links(profile_of(links=[*near, _link(1, 2, size, 1)]), Options())
        assert found["verdict"].to_list() == [verdict, "", ""]


def test_equally_fast_links_are_sorted_by_endpoints_and_transport() -> None:
    links = [
        _link(source, destination, 10, 1, transport=transport)
        for transport in ("RDMA", "HCCS")
        for source in (2, 1)
        for destination in (4, 3)
    ]
    table = slow_links(profile_of(links=links), Options())
    found = table.select("source", "destination", "transport").rows()
    assert len(found) == 8
    assert found == sorted(found)


@pytest.mark.parametrize("view", ["links", "packets", "alignment"])
def test_without_transfers_there_is_nothing_to_compare(view: str) -> None:
    needs = {
        "links": "transfers by link (communication_matrix.json)",
        "packets": "transfers by transport (communication.json)",
        "alignment": "SDMA or HCCS transfers (communication.json)",
    }[view]
    for links in ([], [_link(2, 2, 0, 5)], [_link(None, 2, 0, 5)]):
        with pytest.raises(Impossible) as told:
            VIEWS[view].make(profile_of(links=links), Options())
        assert str(told.value) == (
            f"needs {needs}; record with profiler_level=Level1 on several devices"
        )


def test_small_packet_transfers_are_listed_largest_first() -> None:
    def sent(size: int, ratio: float | None, transport: str | None = "RDMA", **more: Any) -> Any:
        row = {"large_packet_ratio": ratio, "transport": transport, "bandwidth_gb_s": 1.23456}
        return _link(None, None, size, 3_000, **row) | more

    links = [
        sent(1_000, 0.5),
        sent(3_000, 0.49996, name="b"),
        sent(3_000, 0.1, "SDMA", name="a"),
        sent(2_000, None),
        sent(9_000, 0.1, None),
        sent(9_000, 0.1, source=1),
        sent(0, 0.1),
        sent(1_234_567, 0.9996),
    ]
    table = VIEWS["packets"].make(profile_of(links=links), Options())
    assert table.rows() == [
        (0, "all", "RDMA", 1.235, 0.003, 1.235, 1.0, ""),
        (0, "b", "RDMA", 0.003, 0.003, 1.235, 0.5, "small packets"),
        (0, "a", "SDMA", 0.003, 0.003, 1.235, 0.1, ""),
        (0, "all", "RDMA", 0.002, 0.003, 1.235, None, ""),
        (0, "all", "RDMA", 0.001, 0.003, 1.235, 0.5, ""),
    ]
    assert packets(profile_of(links=links[:1]), Options()).height == 1


def test_transfers_are_grouped_by_512_byte_alignment() -> None:
    links = [
        _link(None, None, 1024, 1_000, transport="SDMA", name=None),
        _link(None, None, 512_000, 2_000, transport="SDMA", name="b"),
        _link(None, None, 513, 3_000, transport="SDMA", name="c"),
        _link(None, None, 511, 5_000, name="d"),
        _link(None, None, 512, 5_000, transport="RDMA"),
        _link(None, None, 0, 5_000),
    ]
    view = VIEWS["alignment"]
    table = view.make(profile_of(links=links), Options())
    assert table.rows() == [
        ("HCCS", False, 1, 0.001, 0.005, "d"),
        ("SDMA", False, 1, 0.001, 0.003, "c"),
        ("SDMA", True, 2, 0.513, 0.003, "b"),
    ]
    # Links have the same bytes again.
    with_links = [*links, _link(0, 1, 2048, 4_000, name="e"), _link(0, 1, 1, 1, transport="PCIE")]
    assert alignment(profile_of(links=with_links), Options()).rows() == [
        ("HCCS", True, 1, 0.002, 4_000, "e")
    ]
