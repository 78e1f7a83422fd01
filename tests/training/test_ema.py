import io

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from jumar.ground.errors import UserError
from jumar.training.ema import Ema, ema_decay


def network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, 2))


def disturb(model: nn.Module, step: int) -> None:
    generator = torch.Generator().manual_seed(step)
    with torch.no_grad():
        for value in model.state_dict().values():
            if value.is_floating_point():
                value.add_(torch.randn(value.shape, generator=generator))
            else:
                value.add_(1)


def test_parameters_are_averaged_and_buffers_copied_from_the_model() -> None:
    model = network()
    start = {name: value.clone() for name, value in model.state_dict().items()}
    ema = Ema(model, decay=0.75)
    disturb(model, 0)
    ema.update(0)
    parameters = dict(model.named_parameters())
    for name, value in ema.state_dict().items():
        now = model.state_dict()[name]
        expected = 0.75 * start[name] + 0.25 * now if name in parameters else now
        torch.testing.assert_close(value, expected)


@given(decay=st.floats(0.0, 1.0), step=st.integers(0, 10**6))
def test_decay_warms_up_to_its_value(decay: float, step: int) -> None:
    now, later = (ema_decay(decay, at, warm_up=True) for at in (step, step + 1))
    assert now <= later <= decay
    assert ema_decay(decay, step, warm_up=False) == decay
    assert ema_decay(decay, 0, warm_up=True) <= 0.1


def test_swapping_installs_averages_and_restores_weights_bitwise() -> None:
    model = network()
    ema = Ema(model, decay=0.9)
    disturb(model, 0)
    ema.update(0)
    own = {name: value.clone() for name, value in model.state_dict().items()}
    averages = {name: value.clone() for name, value in ema.state_dict().items()}
    with ema.swapped():
        assert all(torch.equal(v, averages[k]) for k, v in model.state_dict().items())
        assert all(torch.equal(v, averages[k]) for k, v in ema.state_dict().items())
    assert all(torch.equal(v, own[k]) for k, v in model.state_dict().items())


def test_weights_are_restored_after_an_error_and_averages_not_swapped_twice() -> None:
    model = network()
    ema = Ema(model, decay=0.9)
    disturb(model, 0)
    own = [p.clone() for p in model.parameters()]
    with pytest.raises(RuntimeError, match="already"), ema.swapped(), ema.swapped():
        pass
    assert all(torch.equal(a, b) for a, b in zip(own, model.parameters(), strict=True))


def test_averages_continue_bitwise_equal_after_saving_and_loading() -> None:
    straight, model = network(), network()
    reference, ema = Ema(straight, decay=0.9), Ema(model, decay=0.9)
    for step in range(3):
        for each, average in ((straight, reference), (model, ema)):
            disturb(each, step)
            average.update(step)
    file = io.BytesIO()
    torch.save(ema.state_dict(), file)
    file.seek(0)
    resumed = Ema(model, decay=0.9)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    for step in range(3, 6):
        for each, average in ((straight, reference), (model, resumed)):
            disturb(each, step)
            average.update(step)
    for name, value in reference.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name])


def test_state_is_a_complete_set_of_weights_in_model_order() -> None:
    model = network()
    ema = Ema(model, decay=0.9)
    assert list(ema.state_dict()) == list(model.state_dict())
    network(1).load_state_dict(ema.state_dict())


def test_16_bit_weights_are_averaged_in_32_bits() -> None:
    model = nn.Linear(2, 1, bias=False).to(torch.float16)
    with torch.no_grad():
        model.weight.fill_(1.0)
    ema = Ema(model, decay=0.9999)
    with torch.no_grad():
        model.weight.fill_(2.0)
    ema.update(0)
    assert ema.state_dict()["weight"].dtype == torch.float32
    torch.testing.assert_close(ema.state_dict()["weight"], torch.full((1, 2), 1.0001))
    with ema.swapped():
        assert model.weight.dtype == torch.float16


def test_shared_weight_is_averaged_once_and_loads_under_either_name() -> None:
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    ema = Ema(model, decay=0.5)
    disturbed = ema.state_dict()["0.weight"] + 1.0
    ema.load_state_dict({"1.weight": disturbed})
    assert torch.equal(ema.state_dict()["0.weight"], disturbed)
    assert ema.state_dict()["0.weight"] is ema.state_dict()["1.weight"]


def test_averages_of_another_model_are_refused_by_name() -> None:
    model = network()
    state = dict(Ema(model, decay=0.5).state_dict())
    state["3.weight"] = torch.zeros(7, 4)
    with pytest.raises(UserError, match=r"'3\.weight' of shape \[2, 4\] is of shape \[7, 4\]"):
        Ema(model, decay=0.5).load_state_dict(state)
    del state["3.weight"]
    with pytest.raises(UserError, match="missing"):
        Ema(model, decay=0.5).load_state_dict(state)


def test_decay_matches_tensorflows_with_a_step() -> None:
    """`tf.train.ExponentialMovingAverage(decay, num_updates)`: min(decay, (1 + n) / (10 + n))."""
    result = [ema_decay(0.9, step, warm_up=True) for step in (0, 1, 8, 79, 80, 81, 1000)]
    assert result == pytest.approx([0.1, 2 / 11, 0.5, 80 / 89, 0.9, 0.9, 0.9])
    assert result[3] < 0.9
    assert ema_decay(0.9, 0, warm_up=False) == 0.9


def test_averages_are_updated_with_the_warmed_up_decay() -> None:
    model = nn.Linear(1, 1, bias=False).double()
    with torch.no_grad():
        model.weight.fill_(1.0)
    warm, plain = Ema(model, decay=0.6, warm_up=True), Ema(model, decay=0.6)
    with torch.no_grad():
        model.weight.fill_(2.0)
    for step in (0, 1):
        warm.update(step)
        plain.update(step)
    # What is left of the distance of 1.
    assert warm.state_dict()["weight"].item() == pytest.approx(2 - 0.1 * 2 / 11)
    assert plain.state_dict()["weight"].item() == pytest.approx(2 - 0.36)
    assert (plain.decay, plain.warm_up) == (0.6, False)
    assert not warm.state_dict()["weight"].requires_grad


def test_only_the_averaged_part_differs_from_the_model_and_can_be_swapped_again() -> None:
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    ema = Ema(model, averaged=model[1], decay=0.5)
    start = [each.item() for each in model.parameters()]
    with torch.no_grad():
        for each in model.parameters():
            each.add_(1.0)
    ema.update(0)
    for _ in range(2):
        with ema.swapped():
            result = [each.item() for each in model.parameters()]
        assert result == pytest.approx([start[0] + 1.0, start[1] + 0.5])
    assert [each.item() for each in model.parameters()] == pytest.approx(
        [value + 1.0 for value in start]
    )
    with pytest.raises(UserError) as refused:
        ema.load_state_dict({"0.weight": torch.zeros(1, 1)})
    assert str(refused.value) == (
        "the averaged weight '1.weight' of shape [1, 1] is missing\n"
        "  Resume with the recipe and settings that wrote the checkpoint."
    )
