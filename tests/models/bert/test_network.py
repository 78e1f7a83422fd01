"""BERT and NEZHA without padding: the same numbers as with it, also with dropout and in pieces."""

import math
from dataclasses import FrozenInstanceError

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from jumar.models.bert import heads, relative
from jumar.models.bert.heads import (
    BertForClassification,
    BertForPretraining,
    BertForSpans,
    BertForTagging,
)
from jumar.models.bert.network import Bert, BertSize, Positions, initialize
from jumar.models.bert.packing import packing_of
from jumar.models.keyed_dropout import KeyedTokenDropout
from jumar.models.keyed_random import keyed_token_bits, random_position, set_random_position

LENGTHS = (9, 3, 14, 1)


def small(positions: Positions = "absolute", *, dropout: float = 0.0) -> BertSize:
    return BertSize(
        vocab_size=50,
        hidden_size=16,
        num_layers=2,
        num_heads=2,
        intermediate_size=24,
        max_positions=20,
        positions=positions,
        hidden_dropout=dropout,
        attention_dropout=dropout,
        initializer_range=0.3,
    )


def batch(length: int = 16) -> dict[str, torch.Tensor]:
    """Samples of the lengths, padded to `length` with word pieces that must not matter."""
    random = torch.Generator().manual_seed(3)
    mask = torch.arange(length)[None, :] < torch.tensor(LENGTHS)[:, None]
    ids = torch.randint(1, 50, (len(LENGTHS), 16), generator=random)[:, :length]
    segments = torch.randint(0, 2, (len(LENGTHS), 16), generator=random)[:, :length]
    return {"input_ids": ids, "segment_ids": segments, "mask": mask}


def outputs(model: Bert, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """The outputs of the tokens, those of padding left out."""
    encoded = model(**inputs)
    padded = encoded.packing.unpack(encoded.tokens)
    return padded[encoded.packing.mask]


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("positions", ["absolute", "relative"])
def test_padding_changes_no_output_and_no_gradient(positions: Positions, dropout: float) -> None:
    result: list[torch.Tensor] = []
    for unpadded, length in ((True, 16), (False, 16), (True, 14)):
        torch.manual_seed(1)
        model = Bert(small(positions, dropout=dropout), unpadded=unpadded)
        initialize(model, 0.3)
        set_random_position(model, 5, 0)
        out = outputs(model, batch(length))
        out.square().sum().backward()
        gradients = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
        result.append(torch.cat([out.detach().flatten(), *gradients]))
    for other in result[1:]:
        torch.testing.assert_close(other, result[0], rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("positions", ["absolute", "relative"])
def test_split_batch_gets_the_same_dropout_as_the_whole(positions: Positions) -> None:
    torch.manual_seed(1)
    model = Bert(small(positions, dropout=0.3))
    initialize(model, 0.3)
    inputs = batch()
    set_random_position(model, 9, 40)
    whole = outputs(model, inputs)
    pieces: list[torch.Tensor] = []
    for first, last in ((0, 1), (1, 4)):
        set_random_position(model, 9, 40 + first)
        pieces.append(outputs(model, {name: rows[first:last] for name, rows in inputs.items()}))
    torch.testing.assert_close(torch.cat(pieces), whole, rtol=1e-4, atol=1e-5)
    set_random_position(model, 10, 40)
    assert not torch.allclose(outputs(model, inputs), whole, atol=1e-2)


@pytest.mark.parametrize("dense_up_to", [0, 1000])
def test_length_first_seen_in_evaluation_can_be_trained(
    dense_up_to: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relative, "DENSE_UP_TO", dense_up_to)
    relative.relative_positions.cache_clear()
    model = Bert(small("relative"))
    with torch.inference_mode():
        model(**batch())
    outputs(model, batch()).sum().backward()
    relative.relative_positions.cache_clear()


def test_attention_without_dropout_is_equal_in_training_and_evaluation() -> None:
    torch.manual_seed(1)
    trained, scored = Bert(small(dropout=1e-9)), Bert(small())
    scored.load_state_dict(trained.state_dict())
    set_random_position(trained, 0, 0)
    torch.testing.assert_close(outputs(trained, batch()), outputs(scored.eval(), batch()))


def test_sample_longer_than_the_positions_is_refused() -> None:
    ids = torch.ones(1, 21, dtype=torch.int64)
    with pytest.raises(ValueError, match="21 tokens is longer than the 20 positions"):
        Bert(small())(ids, ids * 0, ids)
    Bert(small("relative"))(ids, ids * 0, ids)


@given(lengths=st.lists(st.integers(1, 7), min_size=1, max_size=5), extra=st.integers(0, 3))
def test_packed_tokens_are_unpacked_in_place(lengths: list[int], extra: int) -> None:
    length = max(lengths) + extra
    mask = torch.arange(length)[None, :] < torch.tensor(lengths)[:, None]
    values = torch.rand(len(lengths), length, 2) + 1
    packing = packing_of(mask)
    kept = values[:, : packing.length]
    packed = packing.pack(kept)
    assert len(packed) == sum(lengths)
    assert torch.equal(packing.unpack(packed), kept * packing.mask[..., None])
    rows, positions = packing.rows(), packing.positions()
    assert torch.equal(kept[rows, positions], packed)
    at = torch.tensor([[0, end - 1] for end in lengths])
    expected = kept.gather(1, at[..., None].expand(-1, -1, 2)).flatten(0, 1)
    assert torch.equal(packed[packing.at(at)], expected)


def test_token_random_numbers_differ_by_sample_position_feature_and_key() -> None:
    samples, places = torch.arange(6).repeat_interleave(10), torch.arange(10).repeat(6)
    bits = keyed_token_bits(samples, places, 32, random_position(7))
    assert len(bits.unique()) == bits.numel()
    later = keyed_token_bits(samples[10:] - 1, places[10:], 32, random_position(7, 1))
    assert torch.equal(later, bits[10:])
    other = keyed_token_bits(samples, places, 32, random_position(8))
    assert (other != bits).all()


def test_share_of_dropped_features_equals_the_probability() -> None:
    dropout = KeyedTokenDropout(0.1)
    set_random_position(dropout, 3, 0)
    rows = torch.arange(400)
    kept = dropout(torch.ones(400, 500), rows, rows % 7)
    assert (kept == 0).float().mean().item() == pytest.approx(0.1, abs=0.005)
    assert kept.mean().item() == pytest.approx(1, abs=0.006)


@pytest.mark.parametrize(("words", "chunks"), [(0, 1), (32, 1), (65, 2), (319, 5), (321, 6)])
def test_chunked_logits_have_the_same_gradients(
    words: int, chunks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of at most 64 words; the logits of more than 160 are computed twice."""
    monkeypatch.setattr(heads, "_ON_CPU", heads.LogitLimits(64 * 4 * 50, kept=160 * 4 * 50))
    torch.manual_seed(1)
    model = BertForPretraining(small())
    inputs = batch()
    encoded = model.bert(**inputs)
    places = torch.randint(0, len(encoded.tokens), (words,))
    ids = torch.randint(0, 50, places.shape)
    products: list[int] = []
    of_words = model.word_logits
    monkeypatch.setattr(model, "word_logits", lambda x: products.append(len(x)) or of_words(x))
    losses = model.word_losses(encoded, places, ids)
    losses.sum().backward()
    assert sum(products) == words * (2 if words > 160 else 1)
    assert len(products) == chunks * (2 if words > 160 else 1)
    assert max(products) - min(products) <= 1
    table = model.bert.embeddings.word_embeddings.weight
    assert table.grad is not None
    chunked = table.grad.clone()
    model.zero_grad()
    encoded = model.bert(**inputs)
    transformed = model.cls.predictions.transform(encoded.tokens.index_select(0, places))
    logits = model.word_logits(transformed)
    whole = nn.functional.cross_entropy(logits, ids, reduction="none")
    whole.sum().backward()
    torch.testing.assert_close(losses, whole)
    torch.testing.assert_close(chunked, table.grad, rtol=1e-4, atol=1e-3)
    scored, right = model.word_scores(encoded, places, ids)
    torch.testing.assert_close(scored, whole)
    assert torch.equal(right, logits.argmax(1) == ids)


@pytest.mark.parametrize("positions", ["absolute", "relative"])
def test_task_heads_have_their_shapes_and_ignore_padding(positions: Positions) -> None:
    inputs = batch()
    classes = BertForClassification(small(positions), 3).eval()
    assert classes(**inputs).shape == (4, 3)
    changed = {**inputs, "input_ids": inputs["input_ids"] * inputs["mask"]}
    torch.testing.assert_close(classes(**inputs), classes(**changed))
    tags = BertForTagging(small(positions), 5).eval()(**inputs)
    assert tags.shape == (4, 14, 5)
    assert not tags[1, 3:].any()
    assert BertForSpans(small(positions)).eval()(**inputs).shape == (4, 14, 2)


def test_weights_are_initialised_from_a_normal_truncated_at_two_deviations() -> None:
    torch.manual_seed(1)
    model = BertForPretraining(BertSize(vocab_size=2000, num_layers=1))
    weight = model.bert.embeddings.word_embeddings.weight
    assert weight.abs().max().item() <= 0.04
    assert weight.std().item() == pytest.approx(0.02 * 0.8796, rel=0.01)
    layer = model.bert.pooler.dense
    assert not layer.bias.any()


def test_network_has_the_size_of_bert_base_by_default() -> None:
    assert BertSize(vocab_size=7) == BertSize(
        vocab_size=7,
        hidden_size=768,
        num_layers=12,
        num_heads=12,
        intermediate_size=3072,
        max_positions=512,
        type_vocab_size=2,
        positions="absolute",
        gelu="tanh",
        hidden_dropout=0.1,
        attention_dropout=0.1,
        initializer_range=0.02,
    )
    with pytest.raises(FrozenInstanceError):
        BertSize(vocab_size=7).vocab_size = 8  # type: ignore[misc]
    with pytest.raises(TypeError, match="positional"):
        BertSize(7)  # type: ignore[misc]
    with torch.device("meta"):
        network = Bert(BertSize(vocab_size=30_522))
    # bert-base-uncased, with its pooler.
    assert sum(p.numel() for p in network.parameters()) == 109_482_240
    norms = [module for module in network.modules() if isinstance(module, nn.LayerNorm)]
    assert {(norm.eps, norm.normalized_shape) for norm in norms} == {(1e-12, (768,))}
    dropouts = [each.p for each in network.modules() if isinstance(each, KeyedTokenDropout)]
    assert dropouts == [0.1] * (1 + 12 * 3)
    assert network.layer_order() == ["embeddings", *(f"encoder.layer.{n}" for n in range(12))]


def test_layers_match_the_papers_formulas() -> None:
    torch.manual_seed(1)
    model = Bert(small()).eval()
    initialize(model, 0.3)
    inputs = batch()
    with torch.no_grad():
        plain, every = model(**inputs), model(**inputs, all_layers=True)
        packing = plain.packing
        ids, segments = (
            packing.pack(inputs[name][:, : packing.length]) for name in ("input_ids", "segment_ids")
        )

        def normed(layer: nn.LayerNorm, x: torch.Tensor) -> torch.Tensor:
            centred = x - x.mean(1, keepdim=True)
            x = centred / centred.square().mean(1, keepdim=True).sqrt()
            return x * layer.weight + layer.bias

        tables = model.embeddings
        assert tables.position_embeddings is not None
        places = tables.position_embeddings.weight[packing.positions()]
        x = tables.word_embeddings.weight[ids] + tables.token_type_embeddings.weight[segments]
        x = normed(tables.LayerNorm, x + places)
        expected = [x]
        for layer in model.encoder.layer:
            attended = layer.attention.self(x, packing)
            output = layer.attention.output
            x = normed(output.LayerNorm, output.dense(attended) + x)
            wide = layer.intermediate.dense(x)
            # The form with tanh, as the originals have it.
            inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
            wide = 0.5 * wide * (1 + inner.tanh())
            x = normed(layer.output.LayerNorm, layer.output.dense(wide) + x)
            expected.append(x)
    assert plain.layers == ()
    assert len(every.layers) == 3
    for result, wanted in zip(every.layers, expected, strict=True):
        torch.testing.assert_close(result, wanted, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(plain.tokens, expected[-1], rtol=1e-3, atol=1e-4)
    starts = [0, *torch.tensor(LENGTHS).cumsum(0)[:-1].tolist()]
    torch.testing.assert_close(plain.first(), plain.tokens[starts])


def test_sample_as_long_as_the_positions_is_accepted() -> None:
    ids = torch.ones(1, 20, dtype=torch.int64)
    assert Bert(small())(ids, ids * 0, ids).tokens.shape == (20, 16)


def test_heads_are_dense_layers_over_tokens_or_the_pooled_first_token() -> None:
    torch.manual_seed(4)
    inputs = batch()
    model = BertForPretraining(small()).eval()
    initialize(model, 0.5)
    with torch.no_grad():
        encoded = model.bert(**inputs)
        head = model.cls.predictions
        torch.nn.init.normal_(head.bias)
        words = torch.randn(3, 16)
        table = model.bert.embeddings.word_embeddings.weight
        torch.testing.assert_close(model.word_logits(words), words @ table.T + head.bias)
        hidden = nn.functional.gelu(words @ head.transform.dense.weight.T, approximate="tanh")
        torch.testing.assert_close(
            head.transform(words), nn.functional.layer_norm(hidden, (16,), eps=1e-12)
        )
        dense, last = model.bert.pooler.dense, model.cls.seq_relationship
        pooled = (encoded.first() @ dense.weight.T).tanh()
        torch.testing.assert_close(model.sentence_logits(encoded), pooled @ last.weight.T)
        assert last.weight.shape == (2, 16)
        for kind in (BertForTagging, BertForSpans):
            made = (kind(small(), 3) if kind is BertForTagging else kind(small())).eval()
            layer = made.classifier if kind is BertForTagging else made.qa_outputs
            tokens = made.bert(**inputs)
            expected = tokens.packing.unpack(layer(tokens.tokens))
            torch.testing.assert_close(made(**inputs), expected)
    for made in (
        BertForClassification(small(dropout=0.3), 3),
        BertForTagging(small(dropout=0.3), 3),
    ):
        assert made.dropout.p == 0.3
