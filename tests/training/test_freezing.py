"""Frozen parameters and learning rates by layer: what trains, and that a resume changes no bit."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from jumar.ground.errors import UserError
from jumar.models.bert.heads import BertForClassification
from jumar.models.bert.network import BertSize
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.ema import Ema
from jumar.training.freezing import find_frozen, parameter_lines
from jumar.training.optimizers import Adam, AdamW, Lamb, Momentum, OptimizerSettings, RmsProp
from jumar.training.optimizers.layer_rates import factor_lines, rate_factors
from jumar.training.settings import CheckpointSettings, Plan, TrainingSettings, TransferSettings
from jumar.training.trainer import Trainer
from tests.training.small_tasks import PointTask, SmallNet, small_plan, trainer_for

FREEZE = TransferSettings(freeze=("first", "norm"))


def task(seed: int = 0) -> PointTask:
    torch.manual_seed(seed)
    return PointTask(SmallNet())


def plan(transfer: TransferSettings = FREEZE, **options: object) -> Plan:
    made = small_plan(
        training=TrainingSettings(log_every="5it", evaluate_every="5it", ema_decay=0.9),
        checkpoints=CheckpointSettings(every="1it", keep=20),
        **options,  # pyright: ignore[reportArgumentType]
    )
    return replace(made, transfer=transfer)


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in trainer.task.model.state_dict().items()}


def test_frozen_parameters_are_unchanged_without_slots_decay_or_averages(
    tmp_path: Path,
) -> None:
    trainer = trainer_for(task(), plan(), tmp_path)
    before = weights(trainer)
    trainer.train()
    after = weights(trainer)
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved == {
        "last.weight",
        "last.bias",
        "norm.running_mean",
        "norm.running_var",
        "norm.num_batches_tracked",
    }
    slots = {name.split("/")[1] for name in trainer.state.capture().slots}
    assert slots == {"last.weight", "last.bias"}
    assert isinstance(trainer.state.ema, Ema)
    averages = trainer.state.ema.state_dict()
    assert torch.equal(averages["first.weight"], before["first.weight"])
    assert not torch.equal(averages["last.weight"], after["last.weight"])


def test_frozen_batch_norms_keep_their_averages_on_request_even_after_an_evaluation(
    tmp_path: Path,
) -> None:
    trainer = trainer_for(task(), plan(replace(FREEZE, freeze_batch_norms=True)), tmp_path)
    before = weights(trainer)
    trainer.train()
    after = weights(trainer)
    for name in ("norm.running_mean", "norm.running_var", "norm.num_batches_tracked"):
        assert torch.equal(before[name], after[name]), name


@pytest.mark.parametrize(
    "optimizer",
    [
        Momentum(learning_rate=0.05, weight_decay=1e-3),
        Adam(learning_rate=0.01),
        AdamW(learning_rate=0.01, weight_decay=0.1),
        Lamb(learning_rate=0.01),
        RmsProp(learning_rate=0.001),
    ],
    ids=lambda each: each.kind,
)
def test_resuming_before_at_and_after_unfreezing_changes_no_bit(
    tmp_path: Path, optimizer: OptimizerSettings
) -> None:
    rates = replace(optimizer, layer_rates=("first=0.5", "last.bias=3"))
    late = plan(replace(FREEZE, unfreeze_at="4it"), duration="7it", optimizer=rates)
    whole = trainer_for(task(), late, tmp_path)
    whole.train()
    slots = {name.split("/")[1] for name in whole.state.capture().slots}
    assert {"first.weight", "norm.bias", "last.weight"} <= slots
    for at in (3, 4, 5):
        again = trainer_for(task(seed=9), late, tmp_path)
        checkpoints = list_checkpoints(tmp_path / "checkpoints")
        again.resume(next(each for each in checkpoints if each.step == at))
        again.train()
        one, other = whole.state.capture(), again.state.capture()
        assert one.slots.keys() == other.slots.keys()
        assert all(torch.equal(one.slots[name], other.slots[name]) for name in one.slots)
        expected = weights(whole)
        assert all(torch.equal(expected[name], value) for name, value in weights(again).items())


def test_frozen_parameters_train_from_the_configured_step(tmp_path: Path) -> None:
    late = plan(replace(FREEZE, unfreeze_at="1ep"), duration="7it")
    trainer = trainer_for(task(), late, tmp_path)
    start = weights(trainer)["first.weight"]
    moved: list[bool] = []
    for _ in trainer.each_step(7):
        moved.append(not torch.equal(start, weights(trainer)["first.weight"]))
    assert moved == [False] * 5 + [True] * 2  # 40 samples are 5 batches of 8


def test_unfreezing_starts_the_update_count_of_frozen_parameters_at_zero(tmp_path: Path) -> None:
    late = plan(
        replace(FREEZE, unfreeze_at="3it"), duration="5it", optimizer=Adam(learning_rate=0.01)
    )
    trainer = trainer_for(task(), late, tmp_path)
    trainer.train()
    groups = trainer.state.lanes[0].optimizer.param_groups
    updates = {float(group["updates"]) for group in groups if group["params"]}
    assert updates == {5.0, 2.0}


def test_unfreezing_keeps_the_optimizer_state_of_other_parameters(tmp_path: Path) -> None:
    late = plan(replace(FREEZE, unfreeze_at="3it"), duration="5it")
    trainer = trainer_for(task(), late, tmp_path)
    for _ in trainer.each_step(3):
        pass
    before = trainer.state.capture().slots["points/last.weight/momentum_buffer"].clone()
    trainer.state.unfreeze_if_due()
    slots = trainer.state.capture().slots
    assert before.any()
    assert torch.equal(slots["points/last.weight/momentum_buffer"], before)
    assert not slots["points/first.weight/momentum_buffer"].any()


@pytest.mark.parametrize(
    ("transfer", "message"),
    [
        (TransferSettings(freeze=("frist",)), "Did you mean 'first'?"),
        (TransferSettings(freeze=("first", "lastt.*")), "Did you mean 'last'?"),
        (TransferSettings(freeze=("*",)), "All of its parameters are frozen by *"),
        (TransferSettings(unfreeze_at="3it"), "nothing is frozen"),
        (TransferSettings(freeze_batch_norms=True), "nothing is frozen"),
        (replace(FREEZE, unfreeze_at="30min"), "'30min' is neither steps nor epochs"),
        (replace(FREEZE, unfreeze_at="50%"), "'50%' is neither steps nor epochs"),
    ],
)
def test_impossible_freezing_is_refused(
    tmp_path: Path, transfer: TransferSettings, message: str
) -> None:
    with pytest.raises(UserError) as error:
        trainer_for(task(), plan(transfer), tmp_path)
    assert message in str(error.value)


def test_without_freezing_the_optimizer_has_its_two_usual_groups(tmp_path: Path) -> None:
    trainer = trainer_for(task(), plan(TransferSettings()), tmp_path)
    groups = trainer.state.lanes[0].optimizer.param_groups
    assert len(groups) == 2
    assert not any("rate_factor" in group for group in groups)


def factors(model: nn.Module, settings: OptimizerSettings) -> dict[str, float]:
    return rate_factors(model, [name for name, _ in model.named_parameters()], settings)


def test_last_matching_pattern_counts() -> None:
    result = factors(SmallNet(), Momentum(layer_rates=("*=0.1", "last=10", "last.b*=2")))
    assert result == {
        "first.weight": 0.1,
        "first.bias": 0.1,
        "norm.weight": 0.1,
        "norm.bias": 0.1,
        "last.weight": 10.0,
        "last.bias": 2.0,
    }
    assert factor_lines(result) == [
        "factors on the learning rate: 0.1 for first.weight and 3 more, 2 for last.bias, "
        "10 for last.weight"
    ]
    assert factor_lines(factors(SmallNet(), Momentum())) == []


def test_each_parameter_group_uses_its_own_rate(tmp_path: Path) -> None:
    moved: list[dict[str, torch.Tensor]] = []
    for rates in ((), ("first=0.5", "last.bias=4")):
        plain = Momentum(learning_rate=0.1, momentum=0.0, layer_rates=rates)
        trainer = trainer_for(task(), plan(TransferSettings(), optimizer=plain), tmp_path)
        before = weights(trainer)
        next(iter(trainer.each_step(1)))
        moved.append({name: value - before[name] for name, value in weights(trainer).items()})
    for name, factor in (("first.weight", 0.5), ("last.bias", 4.0), ("last.weight", 1.0)):
        torch.testing.assert_close(moved[1][name], factor * moved[0][name])


def test_layers_of_bert_decay_from_the_head_down() -> None:
    size = BertSize(
        vocab_size=8, hidden_size=4, num_layers=2, num_heads=1, intermediate_size=8, max_positions=4
    )
    result = factors(
        BertForClassification(size, 2), AdamW(layer_decay=0.5, layer_rates=("*.bias=2",))
    )
    assert result["classifier.weight"] == result["bert.pooler.dense.weight"] == 1.0
    assert result["bert.encoder.layer.1.output.dense.weight"] == 0.5
    assert result["bert.encoder.layer.0.output.dense.weight"] == 0.25
    assert result["bert.encoder.layer.0.output.dense.bias"] == 0.5
    assert result["bert.embeddings.word_embeddings.weight"] == 0.125


def test_sequence_of_layers_is_its_own_order() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2), nn.Linear(2, 1))
    result = factors(net, AdamW(layer_decay=0.1))
    assert [result[f"{layer}.bias"] for layer in (0, 2, 3)] == pytest.approx([0.01, 0.1, 1.0])


def test_network_of_unknown_order_and_a_wrong_factor_are_refused() -> None:
    with pytest.raises(UserError, match="the order of the layers of SmallNet is not known"):
        factors(SmallNet(), AdamW(layer_decay=0.5))
    with pytest.raises(UserError, match="matches no parameter"):
        factors(SmallNet(), Momentum(layer_rates=("laast=2",)))
    for wrong in ("last", "last=x", "=2", "last=-1", "last=inf"):
        with pytest.raises(UserError, match="not a pattern and a factor"):
            Momentum(layer_rates=(wrong,), momentum=0.0).check()


def test_parameter_report_says_how_many_train_and_since_when(tmp_path: Path) -> None:
    net = SmallNet()

    def lines(**options: object) -> list[str]:
        settings = TransferSettings(**options)  # pyright: ignore[reportArgumentType]
        frozen = find_frozen(net, settings, steps_per_epoch=5)
        if frozen is not None:
            frozen.begin(net)
        message = parameter_lines(net, settings, frozen)
        if frozen is not None:
            frozen.end(net)
        return message

    assert lines() == ["195 parameters, all trained"]
    random = "warning: frozen parameters stay random, because transfer.start_from is empty"
    assert lines(freeze=("first.bias",)) == [
        "195 parameters, 179 trained, 16 frozen in 1 tensor",
        random,
    ]
    moving = (
        "batch norms of frozen parts (1): normalise by the batch and update their averages "
        "(transfer.freeze_batch_norms=true keeps them)"
    )
    assert lines(freeze=("first", "norm"), unfreeze_at="2ep", start_from="x") == [
        "195 parameters, 51 trained, 144 frozen in 4 tensors until step 10",
        moving,
    ]
    keeping = "batch norms of frozen parts (1): normalise with their averages, which do not change"
    assert lines(freeze=("norm",), freeze_batch_norms=True, unfreeze_at="7it") == [
        "195 parameters, 163 trained, 32 frozen in 2 tensors until step 7",
        keeping,
        random,
    ]
    for parameter in net.norm.parameters():
        parameter.requires_grad = False
    assert parameter_lines(net, TransferSettings(), None) == [
        "195 parameters, 163 trained, 32 frozen in 2 tensors"
    ]


def test_norms_are_frozen_with_all_parameters_or_by_name_if_they_have_none() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.BatchNorm1d(3, affine=False))

    def found(*patterns: str) -> tuple[set[str], set[str]]:
        frozen = find_frozen(net, TransferSettings(freeze=patterns), steps_per_epoch=1)
        assert frozen is not None
        assert frozen.until is None
        assert not frozen.keeps_averages
        return set(frozen.names), set(frozen.norms)

    assert found("0") == ({"0.weight", "0.bias"}, set())
    assert found("1.weight") == ({"1.weight"}, set())
    assert found("1") == ({"1.weight", "1.bias"}, {"1"})
    everything = {"0.weight", "0.bias", "1.weight", "1.bias"}
    assert found("*") == (everything, {"1", "2"})
    alone = find_frozen(nn.BatchNorm1d(3), TransferSettings(freeze=("*",)), steps_per_epoch=1)
    assert alone is not None
    assert list(alone.norms) == [""]


def test_frozen_parts_are_in_evaluation_mode_on_request_until_they_train() -> None:
    net = SmallNet()
    for keeps in (True, False):
        settings = TransferSettings(freeze=("norm", "first"), freeze_batch_norms=keeps)
        frozen = find_frozen(net, settings, steps_per_epoch=1)
        assert frozen is not None
        frozen.begin(net)
        trained = {name for name, each in net.named_parameters() if each.requires_grad}
        assert trained == {"last.weight", "last.bias"}
        net.train()
        frozen.set_modes()
        assert (net.norm.training, net.last.training) == (not keeps, True)
        frozen.end(net)
        assert net.norm.training
        assert all(each.requires_grad for each in net.parameters())
        net.eval()
        frozen.end(net)
        assert not net.norm.training


def test_settings_that_freeze_nothing_or_forever_are_refused_with_a_remedy() -> None:
    net = SmallNet()
    for options, field in (
        ({"unfreeze_at": "3it"}, "unfreeze_at"),
        ({"freeze_batch_norms": True, "unfreeze_at": "3it"}, "freeze_batch_norms"),
    ):
        with pytest.raises(UserError) as refused:
            find_frozen(net, TransferSettings(**options), steps_per_epoch=1)
        assert str(refused.value) == (
            f"transfer.{field}: nothing is frozen\n"
            "  Choose what to freeze: --set transfer.freeze=PATTERN"
        )
    settings = TransferSettings(freeze=("first",), unfreeze_at="10%")
    with pytest.raises(UserError) as refused:
        find_frozen(net, settings, steps_per_epoch=1)
    assert str(refused.value) == (
        "transfer.unfreeze_at: '10%' is neither steps nor epochs\n"
        "  A resumed run must unfreeze at the same step. For instance: 500it or 2ep."
    )


def test_objective_without_trainable_parameters_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        trainer_for(task(), plan(TransferSettings(freeze=("first", "*"))), tmp_path)
    assert str(refused.value) == (
        "transfer.freeze: the objective 'points' has no parameters to train\n"
        "  All of its parameters are frozen by first,*."
    )
    bare = task()
    for parameter in bare.model.parameters():
        parameter.requires_grad = False
    with pytest.raises(UserError) as refused:
        trainer_for(bare, plan(TransferSettings()), tmp_path)
    assert str(refused.value) == "the objective 'points' has no parameters to train"
