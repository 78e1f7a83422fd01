"""BERT's outputs, losses and gradients equal those of transformers with the same weights."""

import pytest
import torch

from jumar.models.bert.heads import BertForPretraining
from jumar.models.bert.network import BertSize

transformers = pytest.importorskip("transformers", reason="needs transformers")
LENGTHS = (20, 7, 12)


@pytest.mark.parametrize(("theirs", "ours"), [("gelu", "none"), ("gelu_new", "tanh")])
def test_losses_and_gradients_match_transformers(theirs: str, ours: str) -> None:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=300,
        hidden_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=64,
        hidden_act=theirs,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    reference = transformers.BertForPreTraining(config)
    with torch.no_grad():
        for name, parameter in reference.named_parameters():
            parameter.normal_(float("LayerNorm.weight" in name), 0.2)
    size = BertSize(
        vocab_size=300,
        hidden_size=64,
        num_layers=3,
        num_heads=4,
        intermediate_size=128,
        max_positions=64,
        gelu="none" if ours == "none" else "tanh",
        hidden_dropout=0.0,
        attention_dropout=0.0,
    )
    model = BertForPretraining(size)
    left = model.load_state_dict(reference.state_dict(), strict=False)
    assert not left.missing_keys
    assert all("predictions.decoder" in name for name in left.unexpected_keys)

    ids, segments = torch.randint(0, 300, (3, 20)), torch.randint(0, 2, (3, 20))
    mask = (torch.arange(20)[None, :] < torch.tensor(LENGTHS)[:, None]).long()
    positions = torch.stack([torch.randperm(length)[:4] for length in LENGTHS])
    words, follows = torch.randint(0, 300, (3, 4)), torch.tensor([0, 1, 1])
    labels = torch.full((3, 20), -100).scatter(1, positions, words)
    expected = reference(
        ids,
        attention_mask=mask,
        token_type_ids=segments,
        labels=labels,
        next_sentence_label=follows,
        output_hidden_states=True,
    )
    expected.loss.backward()
    encoded = model.bert(ids, segments, mask)
    losses = model.word_losses(encoded, encoded.packing.at(positions), words.flatten())
    logits = model.sentence_logits(encoded)
    loss = losses.mean() + torch.nn.functional.cross_entropy(logits, follows)
    loss.backward()

    outputs = encoded.packing.unpack(encoded.tokens)
    hidden = expected.hidden_states[-1] * mask[..., None]
    torch.testing.assert_close(outputs, hidden, rtol=0, atol=1e-5)
    torch.testing.assert_close(logits, expected.seq_relationship_logits, rtol=0, atol=1e-5)
    torch.testing.assert_close(loss, expected.loss, rtol=1e-6, atol=1e-5)
    gradients = {name: parameter.grad for name, parameter in reference.named_parameters()}
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[name], rtol=1e-4, atol=1e-4, msg=name)
