"""Pre-training divides by masked words, whatever the split, and scores words and sentences."""

import pytest
import torch
from torch.nn import functional

from jumar.models.bert.heads import BertForPretraining
from jumar.models.bert.network import BertSize
from jumar.tasks.pretraining import PretrainingObjective, PretrainingTask
from tests.training.small_tasks import point_task


def _network() -> BertForPretraining:
    torch.manual_seed(1)
    size = BertSize(
        vocab_size=30,
        hidden_size=8,
        num_layers=1,
        num_heads=2,
        intermediate_size=8,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        initializer_range=0.5,
    )
    return BertForPretraining(size)


def _batch() -> dict[str, torch.Tensor]:
    """Four samples with 1, 3, 2 and 0 masked words."""
    random = torch.Generator().manual_seed(2)
    weights = (torch.arange(3)[None, :] < torch.tensor([1, 3, 2, 0])[:, None]).float()
    return {
        "input_ids": torch.randint(1, 30, (4, 7), generator=random),
        "input_mask": torch.ones(4, 7, dtype=torch.int64),
        "segment_ids": torch.zeros(4, 7, dtype=torch.int64),
        "masked_lm_positions": torch.randint(0, 7, (4, 3), generator=random),
        "masked_lm_ids": torch.randint(0, 30, (4, 3), generator=random),
        "masked_lm_weights": weights,
        "next_sentence_labels": torch.tensor([0, 1, 1, 0]),
    }


def test_sums_and_weights_of_parts_add_up_to_those_of_the_batch() -> None:
    objective = PretrainingObjective(_network())
    batch = _batch()
    whole, weights = objective.sums(batch), objective.weights(batch)
    assert weights["masked_lm_loss"].item() == pytest.approx(6, abs=1e-4)
    parts = [{name: value[rows] for name, value in batch.items()} for rows in ([0], [1, 2, 3])]
    for name, value in whole.items():
        total = sum(objective.sums(part)[name].item() for part in parts)
        assert total == pytest.approx(value.item(), rel=1e-5)
    total = sum(objective.weights(part)["masked_lm_loss"].item() for part in parts)
    assert total == pytest.approx(6, abs=1e-3)


def test_losses_are_means_over_masked_words_and_over_sentences() -> None:
    network = _network()
    objective = PretrainingObjective(network)
    batch = _batch()
    sums, weights = objective.sums(batch), objective.weights(batch)
    encoded = network.bert(batch["input_ids"], batch["segment_ids"], batch["input_mask"])
    words = encoded.tokens[encoded.packing.at(batch["masked_lm_positions"])]
    logits = network.word_logits(network.cls.predictions.transform(words)).view(12, -1)
    masked = batch["masked_lm_weights"].flatten().bool()
    expected = functional.cross_entropy(logits[masked], batch["masked_lm_ids"].flatten()[masked])
    mean = sums["masked_lm_loss"] / weights["masked_lm_loss"]
    assert mean.item() == pytest.approx(expected.item(), rel=1e-4)
    follows = functional.cross_entropy(
        network.sentence_logits(encoded), batch["next_sentence_labels"]
    )
    assert sums["next_sentence_loss"].item() / 4 == pytest.approx(follows.item(), rel=1e-4)


def test_batch_without_a_masked_word_has_no_loss_and_no_gradients() -> None:
    network = _network()
    objective = PretrainingObjective(network)
    batch = {name: value[3:] for name, value in _batch().items()}
    loss = objective.sums(batch)["masked_lm_loss"] / objective.weights(batch)["masked_lm_loss"]
    assert loss.item() == 0
    loss.backward()
    assert not any(p.grad.any() for p in network.parameters() if p.grad is not None)


def test_weight_decay_skips_biases_and_norms() -> None:
    network = _network()
    objective = PretrainingObjective(network)
    undecayed = {n for n, p in network.named_parameters() if not objective.decays(n, p)}
    assert "cls.predictions.bias" in undecayed
    assert "bert.embeddings.LayerNorm.weight" in undecayed
    assert "bert.embeddings.word_embeddings.weight" not in undecayed
    assert all(name.endswith("bias") or "LayerNorm" in name for name in undecayed)


def test_accuracies_count_masked_words_and_sentences() -> None:
    network = _network()
    data = point_task().train_data
    task = PretrainingTask(network, train_data=data, eval_data=None)
    batch = _batch()
    with torch.no_grad():
        encoded = network.bert(batch["input_ids"], batch["segment_ids"], batch["input_mask"])
        words = encoded.tokens[encoded.packing.at(batch["masked_lm_positions"])]
        logits = network.word_logits(network.cls.predictions.transform(words))
        batch["masked_lm_ids"] = logits.argmax(1).view(4, 3)
        batch["masked_lm_ids"][1, 0] += 1  # one of the six masked words is wrong
        batch["masked_lm_ids"][3, 0] += 1  # not masked
        follows = network.sentence_logits(encoded).argmax(1)
        batch["next_sentence_labels"] = torch.where(torch.arange(4) == 2, 1 - follows, follows)
        sums = {name: value.double() for name, value in task.evaluate_batch(batch).items()}
    metrics = task.summarize(sums)
    assert metrics["masked_lm_accuracy"] == pytest.approx(100 * 5 / 6)
    assert metrics["next_sentence_accuracy"] == 75


def test_metrics_are_sums_over_masked_words_and_over_samples() -> None:
    task = PretrainingTask(_network(), train_data=point_task().train_data, eval_data=None)
    sums = {
        "masked_lm_loss": torch.tensor(12.0),
        "masked_lm_right": torch.tensor(3.0),
        "masked_lm_weight": torch.tensor(8.0),
        "next_sentence_loss": torch.tensor(2.0),
        "next_sentence_right": torch.tensor(4.0),
        "count": torch.tensor(5.0),
    }
    assert task.summarize(sums) == pytest.approx(
        {
            "masked_lm_accuracy": 37.5,
            "next_sentence_accuracy": 80.0,
            "masked_lm_loss": 1.5,
            "next_sentence_loss": 0.4,
        }
    )
    none = {**sums, "masked_lm_weight": torch.tensor(0.0), "masked_lm_right": torch.tensor(0.0)}
    assert task.summarize({**none, "masked_lm_loss": torch.tensor(0.0)})["masked_lm_loss"] == 0
    few = {**sums, "masked_lm_weight": torch.tensor(0.5)}
    assert task.summarize(few)["masked_lm_loss"] == 24


def test_half_masked_words_count_half() -> None:
    network = _network()
    objective = PretrainingObjective(network)
    batch = {name: value[:2] for name, value in _batch().items()}
    whole = objective.scored(batch)
    halved = objective.scored({**batch, "masked_lm_weights": batch["masked_lm_weights"] / 2})
    assert whole["masked_lm_weight"].item() == 4
    for name, value in whole.items():
        factor = 0.5 if name.startswith("masked_lm") else 1
        assert halved[name].item() == pytest.approx(factor * value.item(), rel=1e-6), name
    empty = {"masked_lm_weights": torch.zeros(2, 3)}
    assert objective.weights(empty)["masked_lm_loss"].item() == pytest.approx(1e-5)
