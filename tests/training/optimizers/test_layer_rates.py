"""Factors on the learning rate by layer."""

import pytest
from torch import nn

from jumar.ground.errors import UserError
from jumar.training.optimizers.kinds import AdamW
from jumar.training.optimizers.layer_rates import factor_lines, rate_factors


class Encoder(nn.Module):
    """Names its layers, of which one has no parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.pool, self.deep = nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)
        self.extra = nn.Linear(2, 2)

    def layer_order(self) -> list[str]:
        return ["embed", "pool", "deep"]


class WithHeads(nn.Module):
    """A head before the encoder it sits on, and another encoder, which does not count."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(2, 1)
        self.body, self.other = Encoder(), Encoder()


def weights(model: nn.Module) -> list[str]:
    return [name for name, _ in model.named_parameters() if name.endswith("weight")]


def factors(model: nn.Module, decay: float, *rates: str) -> dict[str, float]:
    return rate_factors(model, weights(model), AdamW(layer_decay=decay, layer_rates=rates))


def test_layers_decay_from_the_output_down() -> None:
    assert factors(Encoder(), 0.5) == {
        "embed.weight": 0.25,
        "deep.weight": 0.5,
        "extra.weight": 1.0,
    }


def test_last_layer_is_the_output_if_every_layer_is_named() -> None:
    assert factors(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)), 0.5) == {
        "0.weight": 0.5,
        "2.weight": 1.0,
    }


def test_layer_order_is_that_of_the_first_encoder() -> None:
    result = factors(WithHeads(), 0.5, "head=3", "body.deep=10", "body.deep.weight=4")
    assert result == {
        "head.weight": 3.0,
        "body.embed.weight": 0.25,
        "body.deep.weight": 2.0,
        "body.extra.weight": 1.0,
        "other.embed.weight": 1.0,
        "other.deep.weight": 1.0,
        "other.extra.weight": 1.0,
    }


def test_network_of_unknown_order_is_refused_with_a_remedy() -> None:
    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.only = nn.Linear(2, 2)

    assert factors(Plain(), 1.0) == {"only.weight": 1.0}
    with pytest.raises(UserError) as refused:
        factors(Plain(), 0.9)
    assert str(refused.value) == (
        "optimizer.layer_decay: the order of the layers of Plain is not known\n"
        "  Set rates by layer instead: --set optimizer.layer_rates=PATTERN=FACTOR,... In "
        "your own network, define layer_order(), which returns the prefixes of its layers from the "
        "input to the output."
    )


def test_no_parameters_have_no_factors() -> None:
    assert rate_factors(Encoder(), [], AdamW(layer_decay=0.5)) == {}


def test_report_names_the_smallest_factor_first_and_elides_the_middle() -> None:
    assert factor_lines({}) == []
    assert factor_lines({"a": 1.0, "b": 1.0}) == []
    few = {"a.b.weight": 2.0, "a.b.bias": 2.0, "c.x": 0.123456, "d": 1.0, "e.y": 1.0, "f": 1.0}
    assert factor_lines(few) == [
        "factors on the learning rate: 0.1235 for c.x, 1 for d and 2 more, 2 for a.b"
    ]
    # An ending that all have is no name for them.
    assert factor_lines({"a.bias": 2.0, "b.bias": 2.0}) == [
        "factors on the learning rate: 2 for a.bias and 1 more"
    ]
    six = {f"layer{number}": float(number) for number in range(6, 0, -1)}
    shown = ", ".join(f"{number} for layer{number}" for number in range(1, 7))
    assert factor_lines(six) == [f"factors on the learning rate: {shown}"]
    assert factor_lines({**six, "layer7": 7.0}) == [
        "factors on the learning rate: 1 for layer1, 2 for layer2, 3 for layer3, ..., "
        "6 for layer6, 7 for layer7"
    ]
