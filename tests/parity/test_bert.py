"""BERT and NEZHA against the numbers of the originals in TensorFlow 1.15, padded and unpadded."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.nn import functional

from jumar.models.bert import relative
from jumar.models.bert.attention import SelfAttention
from jumar.models.bert.heads import BertForPretraining
from jumar.models.bert.names import tf_names
from jumar.models.bert.network import BertSize, Encoded
from jumar.models.bert.relative import MAX_DISTANCE, relative_positions, relative_table
from tests.parity.fixture import ParityCase

Results = dict[str, NDArray[Any]]
NETWORKS = {"bert_small": "absolute", "nezha_small": "relative"}
KEY_BIASES = {f"grad/bert/encoder/layer_{layer}/attention/self/key/bias" for layer in (0, 1)}
"""Zero in exact arithmetic: a term that is the same for all keys cancels in the softmax."""


@pytest.fixture(params=list(NETWORKS))
def case(parity: Path, request: pytest.FixtureRequest) -> ParityCase:
    return ParityCase(parity / f"{request.param}.npz")


def network(case: ParityCase, *, unpadded: bool) -> BertForPretraining:
    """The network of a case with its weights."""
    config = case.config
    size = BertSize(
        vocab_size=config["vocab_size"],
        hidden_size=config["hidden_size"],
        num_layers=config["num_hidden_layers"],
        num_heads=config["num_attention_heads"],
        intermediate_size=config["intermediate_size"],
        max_positions=config["max_position_embeddings"],
        positions="relative" if config.get("use_relative_position") else "absolute",
        hidden_dropout=config["hidden_dropout_prob"],
        attention_dropout=config["attention_probs_dropout_prob"],
    )
    model = BertForPretraining(size, unpadded=unpadded)
    values = case.variables("all")
    variables = tf_names(values).variables
    assert {variable.tf_name for variable in variables} == set(values)
    model.load_state_dict({v.name: v.to_torch(values[v.tf_name]) for v in variables})
    return model


def inputs(case: ParityCase) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Word pieces, segments and mask."""
    lengths = torch.from_numpy(case.input("lengths"))
    mask = torch.arange(case.config["seq_length"])[None, :] < lengths[:, None]
    ids, segments = (
        torch.from_numpy(case.input(name)) * mask for name in ("input_ids", "segment_ids")
    )
    return ids, segments, mask


def losses(
    case: ParityCase, model: BertForPretraining, encoded: Encoded
) -> dict[str, torch.Tensor]:
    """The losses, as the original adds them up."""
    positions, ids, next_labels = (
        torch.from_numpy(case.input(name)).long()
        for name in ("masked_lm_positions", "masked_lm_ids", "next_sentence_labels")
    )
    weights = torch.from_numpy(case.input("masked_lm_weights")).flatten()
    words = model.word_losses(encoded, encoded.packing.at(positions), ids.flatten())
    logits = model.sentence_logits(encoded)
    masked = (words * weights).sum() / (weights.sum() + 1e-5)
    following = functional.cross_entropy(logits, next_labels.flatten())
    return {
        "masked_lm_example_loss": words,
        "masked_lm_loss": masked,
        "next_sentence_loss": following,
        "next_sentence_log_probs": logits.log_softmax(1),
        "total_loss": masked + following,
    }


def gradients(model: BertForPretraining) -> Results:
    """All gradients by the original's names, and their global norm."""
    named = {
        name: parameter.grad
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }
    result = {
        f"grad/{variable.tf_name}": variable.to_tensorflow(named[variable.name])
        for variable in tf_names(named).variables
    }
    squares = sum(float(np.square(value, dtype=np.float64).sum()) for value in result.values())
    return result | {"grad_global_norm": np.asarray(np.sqrt(squares))}


@contextmanager
def recorded_attention(model: BertForPretraining) -> Generator[list[NDArray[Any]]]:
    """The attention weights of each layer, from its queries and keys."""
    weights: list[NDArray[Any]] = []

    def record(module: torch.nn.Module, arguments: tuple[Any, ...], _output: torch.Tensor) -> None:
        assert isinstance(module, SelfAttention)
        x, packing = arguments
        query, key = (
            packing.unpack(layer(x)).unflatten(2, (module.num_heads, -1)).transpose(1, 2)
            for layer in (module.query, module.key)
        )
        scores = query @ key.transpose(2, 3)
        if module.relative:
            terms = relative_positions(packing.length, module.head_size, query.device)
            scores = scores + terms.scores(query)
        scores = scores / module.head_size**0.5
        masked = scores.masked_fill(~packing.mask[:, None, None, :], -torch.inf)
        weights.append(masked.softmax(3).detach().numpy())

    handles = [
        module.register_forward_hook(record)
        for module in model.modules()
        if isinstance(module, SelfAttention)
    ]
    yield weights
    for handle in handles:
        handle.remove()


def test_every_result_equals_the_original(case: ParityCase) -> None:
    model = network(case, unpadded=False)
    with recorded_attention(model) as weights:
        encoded = model.bert(*inputs(case), all_layers=True)
    embedded, *layers = (encoded.packing.unpack(layer) for layer in encoded.layers)
    result = losses(case, model, encoded)
    result["total_loss"].backward()
    positions = torch.from_numpy(case.input("masked_lm_positions")).long()
    words = encoded.tokens.index_select(0, encoded.packing.at(positions))
    words = model.cls.predictions.transform(words)
    results = {
        "embedding_output": embedded,
        "sequence_output": layers[-1],
        "pooled_output": model.bert.pooler(encoded.first()),
        "masked_lm_log_probs": model.word_logits(words).log_softmax(1),
        **{f"layer{number}": layer for number, layer in enumerate(layers)},
        **result,
    }
    arrays = {name: value.detach().numpy() for name, value in results.items()}
    arrays |= {f"attention_probs{number}": value for number, value in enumerate(weights)}
    if case.config.get("use_relative_position"):
        places = torch.arange(case.config["seq_length"])
        distance = (places[None, :] - places[:, None]).clamp(-MAX_DISTANCE, MAX_DISTANCE)
        head_size = case.config["hidden_size"] // case.config["num_attention_heads"]
        table = relative_table(head_size, torch.device("cpu"))
        arrays["relative_embeddings"] = table[distance + MAX_DISTANCE].numpy()
    noise = case.check_all(arrays | gradients(model))
    assert noise <= KEY_BIASES


@pytest.mark.parametrize("dense_up_to", [0, 1000])
def test_losses_and_gradients_without_padding_equal_the_original(
    case: ParityCase, dense_up_to: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relative, "DENSE_UP_TO", dense_up_to)
    relative_positions.cache_clear()
    model = network(case, unpadded=True)
    encoded = model.bert(*inputs(case))
    lengths = case.input("lengths")
    assert encoded.tokens.shape == (lengths.sum(), case.config["hidden_size"])
    result = losses(case, model, encoded)
    result["total_loss"].backward()
    relative_positions.cache_clear()
    for name, value in result.items():
        assert case.check(name, value.detach().numpy())
    unchecked = {name for name, value in gradients(model).items() if not case.check(name, value)}
    assert unchecked <= KEY_BIASES
    outputs = encoded.packing.unpack(encoded.tokens).detach().numpy()
    stored = case.arrays["r/sequence_output"]
    for row, length in enumerate(lengths):
        np.testing.assert_allclose(outputs[row, :length], stored[row, :length], rtol=0, atol=5e-5)
        assert not outputs[row, length:].any()
