"""Labels of sentences: loss and scores."""

import pytest
import torch
from torch.nn import functional

from jumar.models.bert.heads import BertForClassification
from jumar.models.bert.network import BertSize
from jumar.tasks.sentences import SentenceTask
from tests.tasks.means import means

SIZE = BertSize(vocab_size=20, hidden_size=8, num_layers=1, num_heads=2, intermediate_size=16)
LABELS = ("a", "b", "c")


def task_for() -> SentenceTask:
    torch.manual_seed(1)
    network = BertForClassification(SIZE, len(LABELS))
    torch.nn.init.normal_(network.classifier.weight)
    return SentenceTask(network.eval(), labels=LABELS, train_data=None, eval_data=None)


def batch(count: int) -> dict[str, torch.Tensor]:
    torch.manual_seed(2)
    mask = torch.ones(count, 6, dtype=torch.int64)
    mask[0, 4:] = 0
    return {
        "input_ids": torch.randint(20, (count, 6)),
        "segment_ids": torch.zeros(count, 6, dtype=torch.int64),
        "input_mask": mask,
        "label": torch.randint(3, (count,)),
    }


def test_loss_is_the_mean_cross_entropy_of_the_samples() -> None:
    task, made = task_for(), batch(5)
    network = task.model
    logits = network(made["input_ids"], made["segment_ids"], made["input_mask"])
    expected = functional.cross_entropy(logits, made["label"])
    assert means(task.objectives[0], made)["loss"].item() == pytest.approx(expected.item())


def test_scores_do_not_depend_on_the_batches() -> None:
    task, made = task_for(), batch(7)
    parts = [
        {name: tensor[part] for name, tensor in made.items()} for part in (slice(3), slice(3, 7))
    ]
    sums = [task.evaluate_batch(part) for part in parts]
    total = {name: sums[0][name].double() + sums[1][name].double() for name in sums[0]}
    whole = {name: value.double() for name, value in task.evaluate_batch(made).items()}
    assert task.summarize(total) == pytest.approx(task.summarize(whole))
    network = task.model
    logits = network(made["input_ids"], made["segment_ids"], made["input_mask"])
    right = (logits.argmax(1) == made["label"]).double().mean().item()
    assert 0 < right < 1
    scores = task.summarize(total)
    assert scores["accuracy"] == pytest.approx(100 * right)
    assert scores["loss"] == pytest.approx(means(task.objectives[0], made)["loss"].item())
    table = task.score_tables(total)[0]
    assert [row[0] for row in table.rows] == list(LABELS)
    assert sum(int(cell) for row in table.rows for cell in row[1:4]) == 7


def test_weight_decay_skips_norms_and_biases() -> None:
    task = task_for()
    decaying = {
        name
        for name, parameter in task.model.named_parameters()
        if task.objectives[0].decays(name, parameter)
    }
    assert "classifier.weight" in decaying
    assert "bert.embeddings.word_embeddings.weight" in decaying
    assert not any("LayerNorm" in name or name.endswith(".bias") for name in decaying)
    assert len(decaying) == 3 + 6 + 1 + 1


def test_samples_of_label_zero_are_counted() -> None:
    task, made = task_for(), batch(5)
    made["label"] = torch.tensor([0, 2, 0, 1, 0])
    sums = task.evaluate_batch(made)
    assert sums["count"].item() == 5
    logits = task.model(made["input_ids"], made["segment_ids"], made["input_mask"])
    expected = functional.cross_entropy(logits, made["label"]).item()
    assert task.summarize(sums)["loss"] == pytest.approx(expected)
