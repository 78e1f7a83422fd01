"""The simulation of many cards keeps to what holds for any cluster."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jumar.models.bert.heads import BertForPretraining
from jumar.models.bert.network import BertSize
from jumar.models.resnext import ResNeXt50
from scale_simulation import (
    KINDS,
    NETWORKS,
    Links,
    all_gather_s,
    all_reduce_s,
    all_to_all_s,
    buckets,
    main,
    simulate,
)

CARDS = st.sampled_from([1, 2, 4, 8, 16, 64, 512])
NAMES = st.sampled_from(list(NETWORKS))


@given(name=NAMES, kind=st.sampled_from(KINDS), parts=st.integers(1, 4))
def test_one_card_has_no_communication(name: str, kind: str, parts: int) -> None:
    network = NETWORKS[name]()
    step = simulate(network, kind, 1, Links(), parts=parts, steps=1)
    assert step.communication_s == 0
    assert step.seconds == pytest.approx(network.step_s)


@given(
    name=NAMES,
    kind=st.sampled_from(KINDS),
    cards=CARDS,
    field=st.sampled_from(["card_to_card", "group_to_group", "machine_to_machine"]),
    factor=st.floats(1.0, 100.0),
)
def test_faster_link_never_makes_a_step_slower(
    name: str, kind: str, cards: int, field: str, factor: float
) -> None:
    network, links = NETWORKS[name](), Links()
    faster = replace(links, **{field: getattr(links, field) * factor})
    before = simulate(network, kind, cards, links, steps=1)
    after = simulate(network, kind, cards, faster, steps=1)
    assert after.seconds <= before.seconds + 1e-12
    assert network.step_s <= after.seconds
    assert 0 <= after.exposed_s <= after.communication_s + 1e-12


@given(name=NAMES, cards=CARDS, parts=st.integers(1, 4))
def test_without_latency_overlapping_never_loses(name: str, cards: int, parts: int) -> None:
    links = Links(within_s=0.0, between_s=0.0)
    network = NETWORKS[name]()
    plain, hidden = (
        simulate(network, kind, cards, links, parts=parts, steps=1) for kind in KINDS[1:]
    )
    assert hidden.seconds <= plain.seconds + 1e-12
    assert hidden.communication_s == pytest.approx(plain.communication_s)


@pytest.mark.parametrize("kind", KINDS)
def test_collectives_wait_for_each_other(kind: str) -> None:
    slow = Links(card_to_card=1e6, group_to_group=1e6, machine_to_machine=1e6)
    step = simulate(NETWORKS["bert-base"](), kind, 16, slow)
    assert step.communication_s < step.seconds


def test_with_unlimited_links_the_slowest_cards_computation_remains() -> None:
    links = Links(
        card_to_card=1e30, group_to_group=1e30, machine_to_machine=1e30, within_s=0, between_s=0
    )
    network = NETWORKS["bert-base"]()
    alike = simulate(network, "exact", 512, links)
    spread = simulate(network, "exact", 512, links, spread=0.01)
    assert alike.seconds == pytest.approx(network.step_s)
    assert 1.02 * network.step_s < spread.seconds < 1.05 * network.step_s


def test_collectives_send_as_many_bytes_as_counted_by_hand() -> None:
    links = Links(
        card_to_card=1e9, group_to_group=1e9, machine_to_machine=1e9, within_s=0, between_s=0
    )
    assert all_reduce_s(8e9, 8, links) == pytest.approx(2 * 7 / 8 * 8)
    assert all_gather_s(8e9, 4, links) == pytest.approx(3 / 4 * 8)
    # Scattered in the machine, 7 GB; then a ring of two machines with an eighth of it each.
    assert all_reduce_s(8e9, 16, links) == pytest.approx(2 * (7 + 0.5))
    assert all_to_all_s(8e9, 4, links) == pytest.approx(2)
    assert all_to_all_s(8e9, 8, links) == pytest.approx(4)
    assert all_to_all_s(8e9, 16, links) == pytest.approx(4)
    assert all_to_all_s(8e9, 64, links) == pytest.approx(8 * 56 / 64)


def test_networks_have_our_parameter_counts_and_buckets_hold_them_all() -> None:
    with torch.device("meta"):
        ours = {
            "bert-base": BertForPretraining(BertSize(vocab_size=30522)),
            "resnext50": ResNeXt50(num_classes=1001),
        }
    for name, model in ours.items():
        network = NETWORKS[name]()
        count = sum(parameter.numel() for parameter in model.parameters())
        assert sum(layer.parameters for layer in network.layers) == count
        filled = buckets(network)
        assert sum(size for size, _ in filled) == 4 * count
        assert [at for _, at in filled] == sorted(at for _, at in filled)
        assert filled[-1][1] == pytest.approx(1.0)


def test_table_has_a_line_per_network_card_count_and_kind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["--cards", "1", "16", "--network", "resnext50", "--spread", "0"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 2 * 3
    assert lines[2] == "| resnext50 | 1 | fast | 43.2 | 0.0 | 0.0 | 100.0% | 742 |"


def test_card_counts_that_do_not_fill_machines_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["--cards", "12"])
    assert "12 is no divisor or multiple of 8" in capsys.readouterr().err
