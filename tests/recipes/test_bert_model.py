"""The settings of BERT's network."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jumar.data.text.vocabulary import SPECIAL
from jumar.ground.errors import UserError
from jumar.models.bert.network import Bert, BertSize
from jumar.models.unfilled import Unfilled
from jumar.recipes.bert import PretrainingRecipe
from jumar.recipes.bert_model import (
    SIZES,
    BertModel,
    bert_size,
    fitted_vocabulary,
    model_tokenizer,
    settings_of_weights,
    with_vocabulary,
)
from jumar.recipes.registry import create_recipe
from jumar.settings import override


@pytest.mark.parametrize(
    ("size", "pieces", "millions"),
    [
        ("bert-base", 30522, 109.48),
        ("nezha-base", 21128, 101.87),
        ("bert-tiny", 30522, 4.39),
        ("bert-mini", 30522, 11.17),
        ("bert-small", 30522, 28.76),
    ],
)
def test_sizes_match_the_published_networks(size: str, pieces: int, millions: float) -> None:
    with Unfilled(), torch.device("meta"):
        network = Bert(bert_size(BertModel(size=size, vocab_size=pieces)))
    numbers = sum(parameter.numel() for parameter in network.parameters())
    assert numbers / 1e6 == pytest.approx(millions, abs=0.006)


def test_large_sizes_match_ascends() -> None:
    assert bert_size(BertModel(size="nezha-large", vocab_size=21136)) == BertSize(
        vocab_size=21136,
        hidden_size=1024,
        num_layers=24,
        num_heads=16,
        intermediate_size=4096,
        positions="relative",
    )
    assert bert_size(BertModel(size="bert-large", vocab_size=2)).positions == "absolute"


def test_size_can_be_changed_by_field() -> None:
    model = BertModel(
        size="bert-tiny",
        vocab_size=9,
        hidden_size=12,
        num_layers=1,
        num_heads=3,
        max_positions=7,
        gelu="none",
        hidden_dropout=0.2,
        attention_dropout=0.3,
    )
    assert bert_size(model) == BertSize(
        vocab_size=9,
        hidden_size=12,
        num_layers=1,
        num_heads=3,
        intermediate_size=48,
        max_positions=7,
        gelu="none",
        hidden_dropout=0.2,
        attention_dropout=0.3,
    )
    assert bert_size(BertModel(vocab_size=9, intermediate_size=5)).intermediate_size == 5
    with pytest.raises(UserError, match="cannot be split among 5 heads"):
        bert_size(BertModel(vocab_size=9, num_heads=5))


def test_vocabulary_determines_the_number_of_pieces(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join([*SPECIAL, "中"]), encoding="utf-8")
    model = BertModel(vocabulary=str(path))
    tokenizer = model_tokenizer(model)
    assert with_vocabulary(model, tokenizer).vocab_size == 6
    assert model_tokenizer(BertModel(vocabulary=str(path), vocab_size=6)).ids("中") == [5]
    larger = BertModel(vocabulary=str(path), vocab_size=8)
    assert with_vocabulary(larger, model_tokenizer(larger)).vocab_size == 8
    with pytest.raises(UserError, match="has 6 word pieces, but the network only 5"):
        model_tokenizer(BertModel(vocabulary=str(path), vocab_size=5))
    with pytest.raises(UserError, match="the vocabulary is not set"):
        model_tokenizer(BertModel())
    with pytest.raises(UserError, match="not known without a vocabulary"):
        bert_size(BertModel())


def test_imported_weights_determine_the_number_of_pieces() -> None:
    table = {"bert/embeddings/word_embeddings": (11, 4)}
    assert fitted_vocabulary(BertModel(), table).vocab_size == 11
    table = {"bert.embeddings.word_embeddings.weight": (12, 4)}
    assert fitted_vocabulary(BertModel(), table).vocab_size == 12
    assert fitted_vocabulary(BertModel(vocab_size=5), table).vocab_size == 5
    assert fitted_vocabulary(BertModel(), {}).vocab_size == 0


def test_every_size_has_heads_of_64_features() -> None:
    for name in SIZES:
        size = bert_size(BertModel(size=name, vocab_size=2))
        assert size.hidden_size == 64 * size.num_heads


def shapes_of(model: BertModel, begin: str = "bert.") -> dict[str, tuple[int, ...]]:
    with Unfilled(), torch.device("meta"):
        network = Bert(bert_size(model))
    return {begin + name: tuple(value.shape) for name, value in network.state_dict().items()}


@pytest.mark.parametrize(
    ("theirs", "config", "own", "wanted"),
    [
        (BertModel(), {}, BertModel(), []),
        (BertModel(size="bert-mini"), {}, BertModel(), ["size=bert-mini"]),
        (BertModel(size="bert-mini"), {}, BertModel(size="bert-mini"), []),
        (BertModel(num_layers=3), {}, BertModel(), ["num_layers=3"]),
        (
            BertModel(hidden_size=312, num_layers=4, intermediate_size=1200),
            {"num_attention_heads": 6, "hidden_act": "gelu"},
            BertModel(),
            [
                "hidden_size=312",
                "num_layers=4",
                "intermediate_size=1200",
                "num_heads=6",
                "gelu=none",
            ],
        ),
        (
            BertModel(size="bert-mini"),
            {},
            BertModel(num_layers=2),
            ["hidden_size=256", "num_layers=4", "intermediate_size=1024", "num_heads=4"],
        ),
        (BertModel(), {"num_attention_heads": 8}, BertModel(), ["num_heads=8"]),
        (
            BertModel(),
            {"num_attention_heads": 12, "hidden_act": "gelu_new"},
            BertModel(gelu="none"),
            ["gelu=tanh"],
        ),
        (BertModel(max_positions=1024), {}, BertModel(), ["max_positions=1024"]),
        (BertModel(size="nezha-base"), {}, BertModel(), ["size=nezha-base"]),
        (BertModel(size="bert-tiny"), {}, BertModel(size="nezha-tiny"), ["size=bert-tiny"]),
    ],
)
def test_source_network_of_weights_is_inferred_from_their_shapes(
    theirs: BertModel, config: dict[str, object], own: BertModel, wanted: list[str]
) -> None:
    expected = [f"model.{each}" for each in wanted]
    shapes = shapes_of(replace(theirs, vocab_size=21))
    assert settings_of_weights(own, shapes, config) == expected
    bare = shapes_of(replace(theirs, vocab_size=21), begin="")
    assert settings_of_weights(own, bare, config) == expected


def test_network_built_with_the_settings_of_weights_has_their_shapes() -> None:
    theirs = BertModel(size="nezha-small", num_layers=1, intermediate_size=96, vocab_size=21)
    own = BertModel(vocab_size=21)
    recipe = override(create_recipe("bert-base"), ["model.vocab_size=21"])
    fitted = override(recipe, recipe.settings_of_weights(shapes_of(theirs), {}))
    assert isinstance(fitted, PretrainingRecipe)
    assert shapes_of(fitted.model) == shapes_of(theirs) != shapes_of(own)


@pytest.mark.parametrize("heads", ["\x1b[31m12", 0, -3, True, [12], None])
def test_non_numeric_head_counts_are_not_echoed(heads: object) -> None:
    shapes = shapes_of(BertModel(vocab_size=21))
    assert settings_of_weights(BertModel(), shapes, {"num_attention_heads": heads}) == []


def test_weights_of_another_network_kind_give_no_settings() -> None:
    assert settings_of_weights(BertModel(), {"layer.weight": (3, 4)}, {}) == []
