"""Class weights: which ones, and a loss that is the same however a batch is split."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from jumar.ground.errors import UserError
from jumar.recipes.registry import create_recipe
from jumar.settings import override
from jumar.tasks.class_weights import (
    class_names,
    class_weights,
    cross_entropy_sum,
    loss_weights,
)
from jumar.training.optimizers import Sgd
from jumar.training.settings import TrainingSettings
from tests.data.pictures import pets, write_files
from tests.recipes.small_data import write_texts
from tests.training.small_tasks import (
    CLASSES,
    PointObjective,
    PointTask,
    SmallNet,
    small_plan,
    trainer_for,
)

NAMES = ("cat", "dog", "owl")
COUNTS = np.array([60, 30, 0])


def chosen(*asked: str) -> list[float]:
    messages: list[str] = []
    weights = class_weights(asked, NAMES, lambda: COUNTS, messages.append)
    assert weights is not None
    assert messages[-1].startswith("class weights: ")
    return weights.tolist()


def test_balanced_weights_match_scikit_learn() -> None:
    from sklearn.utils.class_weight import compute_class_weight

    labels = np.repeat([0, 1], [60, 30])
    expected = compute_class_weight("balanced", classes=np.array([0, 1]), y=labels)
    assert chosen("balanced") == pytest.approx([*expected, 1.0])


def test_weights_are_read_by_name_from_the_setting_or_a_file(tmp_path: Path) -> None:
    assert chosen("dog=2", "owl=0.5") == [1.0, 2.0, 0.5]
    (tmp_path / "weights.json").write_text('{"owl": 3, "cat": 0}')
    assert chosen(str(tmp_path / "weights.json")) == [0.0, 1.0, 3.0]
    (tmp_path / "weights.csv").write_text("dog,4\n\nowl, 0.25\n")
    assert chosen(str(tmp_path / "weights.csv")) == [1.0, 4.0, 0.25]
    assert class_weights((), NAMES, lambda: COUNTS, lambda _: None) is None


def test_compensating_twice_for_rare_classes_gives_a_warning() -> None:
    for asked, sampling, warned in (
        ("balanced", "balanced", True),
        ("balanced", "natural", False),
        ("cat=2", "balanced", False),
    ):
        lines: list[str] = []
        class_weights((asked,), NAMES, lambda: COUNTS, lines.append, sampling=sampling)
        assert any("both compensate for rare classes" in line for line in lines) is warned


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["dgo=2"], "unknown class 'dgo'\n  Did you mean 'dog'"),
        (["dog=-1"], "the weight of 'dog' is '-1'"),
        (["dog=inf"], "the weight of 'dog' is 'inf'"),
        (["cat=0", "dog=0", "owl=0"], "all classes have weight 0"),
        (["cat=1", "dog"], "'dog' is not of the form NAME=WEIGHT"),
        (["nowhere.csv"], "nowhere.csv"),
    ],
)
def test_settings_that_give_no_weights_are_refused(asked: list[str], message: str) -> None:
    with pytest.raises(UserError) as error:
        chosen(*asked)
    assert message in str(error.value)


def test_damaged_file_is_refused(tmp_path: Path) -> None:
    for name, text in (
        ("a.json", "[1]"),
        ("b.json", "{"),
        ("c.csv", "cat,1,2"),
        ("d.csv", "cat,x"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(UserError):
            chosen(str(tmp_path / name))


def test_mean_matches_torch_without_label_smoothing() -> None:
    torch.manual_seed(0)
    logits, labels = torch.randn(20, 3), torch.randint(0, 3, (20,))
    weights = torch.tensor([0.2, 1.0, 5.0])
    total = loss_weights(labels, weights)["loss"]
    mean = cross_entropy_sum(logits, labels, weights) / total
    torch.testing.assert_close(mean, functional.cross_entropy(logits, labels, weight=weights))


def test_smoothing_is_applied_before_the_sample_weight() -> None:
    torch.manual_seed(0)
    logits, labels = torch.randn(5, 3), torch.tensor([0, 1, 2, 2, 0])
    weights = torch.tensor([0.0, 1.0, 5.0])
    losses = functional.cross_entropy(logits, labels, label_smoothing=0.1, reduction="none")
    total = cross_entropy_sum(logits, labels, weights, label_smoothing=0.1)
    torch.testing.assert_close(total, losses[1] + 5 * (losses[2] + losses[3]))


class Weighted(PointObjective):
    def sums(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        logits = self.trained(batch["point"])
        return {"loss": cross_entropy_sum(logits, batch["label"], self._weights)}

    def weights(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return dict(loss_weights(batch["label"], self._weights))

    _weights = torch.tensor([0.1, 1.0, 7.0])[:CLASSES]


def test_parts_of_any_size_give_the_gradient_of_the_whole_batch(tmp_path: Path) -> None:
    weights: list[torch.Tensor] = []
    for micro in (0, 1, 3):
        torch.manual_seed(0)
        task = PointTask(SmallNet(batch_norm=False, torch_dropout=0.0), eval_size=0)
        task.objectives = [Weighted(task.model)]
        training = TrainingSettings(log_every="1it", micro_batch_size=micro)
        plan = small_plan(duration="3it", optimizer=Sgd(learning_rate=0.1), training=training)
        trainer_for(task, plan, tmp_path / str(micro)).train()
        weights.append(torch.cat([each.detach().flatten() for each in task.model.parameters()]))
    torch.testing.assert_close(weights[0], weights[1])
    torch.testing.assert_close(weights[0], weights[2])


def test_report_lists_weights_smallest_first_and_classes_without_samples() -> None:
    messages: list[str] = []
    class_weights(("balanced",), NAMES, lambda: COUNTS, messages.append)
    assert messages == [
        "weight 1 for lack of training samples: owl",
        "class weights: cat=0.75, owl=1, dog=1.5",
    ]
    messages.clear()
    names = [f"c{number}" for number in range(10)]
    asked = [f"{name}={10 - number + 0.12345}" for number, name in enumerate(names)]
    class_weights(asked[:8], names[:8], lambda: COUNTS, messages.append)
    class_weights(asked[:9], names[:9], lambda: COUNTS, messages.append)
    assert messages == [
        "class weights: c7=3.123, c6=4.123, c5=5.123, c4=6.123, c3=7.123, c2=8.123, c1=9.123, "
        "c0=10.12",
        "class weights: c8=2.123, c7=3.123, c6=4.123, c5=5.123, ..., c3=7.123, c2=8.123, "
        "c1=9.123, c0=10.12",
    ]
    messages.clear()
    counts = np.array([0] * 9 + [4])
    weights = class_weights(("balanced",), names, lambda: counts, messages.append)
    assert messages[0] == "weight 1 for lack of training samples: c0, c1, c2, c3, c4, c5, c6, c7"
    assert weights is not None
    assert weights.dtype == torch.float32
    assert weights.tolist() == [1.0] * 10


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "[1]", "is not a JSON object with names and weights"),
        ("b.json", "{", "cannot be read as JSON: "),
        (
            "c.json",
            '{"cat": true}',
            "'cat' is 'True', but must be a number of at least 0",
        ),
        (
            "d.json",
            '{"cat": null}',
            "'cat' is 'None', but must be a number of at least 0",
        ),
        ("e.csv", "dog,2\n\ncat,1,2\n", "row 2 has 3 columns instead of a name and a weight"),
        ("f.csv", "cat\n", "row 1 has 1 column instead of a name and a weight"),
        ("g.csv", "cat,x", "the weight of 'cat' is 'x', but must be a number of at least 0"),
        ("h.csv", "cat,nan", "the weight of 'cat' is 'nan', but must be a number of at least 0"),
        ("i.csv", "cow,1", "unknown class 'cow'"),
    ],
)
def test_file_error_says_where_and_what(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UserError) as error:
        chosen(str(path))
    assert message in str(error.value)
    assert ("loss.class_weights" if name[0] == "i" else str(path)) in str(error.value)


def test_item_without_a_name_or_a_weight_is_refused_with_an_example() -> None:
    for asked in (["=2", "dog=1"], ["dog=1", "cat"]):
        with pytest.raises(UserError) as error:
            chosen(*asked)
        assert "is not of the form NAME=WEIGHT" in str(error.value)
        assert "--set loss.class_weights=cat=2,dog=0.5" in str(error.value)
    # A name may have an equals sign; the last one divides it from the weight.
    messages: list[str] = []
    weights = class_weights(("a=b=0", "c=4"), ("a=b", "c", "d"), lambda: COUNTS, messages.append)
    assert weights is not None
    assert weights.tolist() == [0.0, 4.0, 1.0]


def test_classes_are_identified_by_name_or_number() -> None:
    assert class_names(("a", "b"), 5) == ["a", "b"]
    assert class_names((), 3) == ["0", "1", "2"]


def test_without_weights_the_loss_is_summed_and_divided_by_samples() -> None:
    logits, labels = torch.tensor([[2.0, 0.0], [0.0, 3.0]]), torch.tensor([0, 0])
    right, wrong = np.log1p(np.exp(-2.0)), np.log1p(np.exp(3.0))
    assert cross_entropy_sum(logits, labels, None).item() == pytest.approx(right + wrong)
    weights = torch.tensor([3.0, 1.0])
    assert cross_entropy_sum(logits, labels, weights).item() == pytest.approx(3 * (right + wrong))
    smoothed = cross_entropy_sum(logits, labels, None, label_smoothing=0.5).item()
    # A quarter of the probability goes to the other class.
    assert smoothed == pytest.approx(right + wrong + 0.25 * 2 - 0.25 * 3)
    assert loss_weights(labels, None) == {}


@pytest.mark.parametrize("name", ["resnext50", "bert-classify"])
def test_recipes_warn_of_compensating_twice(tmp_path: Path, name: str) -> None:
    fields = ["loss.class_weights=balanced", "data.sampling=balanced"]
    if name == "resnext50":
        write_files(tmp_path, {f"train/{key}": data for key, data in pets(4).items()})
        fields += [f"data.path={tmp_path}", "data.eval_path=none", "data.image_size=32"]
    else:
        write_texts(tmp_path)
        fields += [f"model.vocabulary={tmp_path / 'vocab.txt'}", "model.size=bert-tiny"]
        fields += [f"data.path={tmp_path / 'sentences'}", "data.max_seq_length=12"]
    lines: list[str] = []
    override(create_recipe(name), fields).build_task(lines.append)
    assert any("both compensate for rare classes" in line for line in lines)
