"""The network of all recipes of BERT and NEZHA: its size and its vocabulary.

Sizes: `bert_base_config.json` of Bert-base_ID0060 and google-research/bert, and the NEZHA
configurations of huawei-noah and Ascend's Nezha-large; the small sizes are the BERT miniatures of
google-research, and the same with NEZHA's positions.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from jumar.data.text.tokenizer import Tokenizer, open_tokenizer
from jumar.ground.errors import UserError
from jumar.models.bert.network import Bert, BertSize
from jumar.recipes.recipe import OneObjectiveRecipe
from jumar.settings import setting
from jumar.tasks.task import Task

_SHAPES = {
    "large": (1024, 24, 16),
    "base": (768, 12, 12),
    "small": (512, 4, 8),
    "mini": (256, 4, 4),
    "tiny": (128, 2, 2),
}
"""Hidden size, layers and heads; a feed-forward layer is four times as wide."""
_POSITIONS = {"bert": "absolute", "nezha": "relative"}
SIZES = tuple(f"{family}-{shape}" for family in _POSITIONS for shape in _SHAPES)
_LAYER = re.compile(r"encoder\.layer\.(\d+)\.")
_HEAD_SIZE = 64
"""Units per head in all published sizes."""
_GELU = {"gelu": "none", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh"}
"""Values of `BertModel.gelu` by Hugging Face's names of the activation."""
WORDS = "bert.embeddings.word_embeddings.weight"


@dataclass(frozen=True, kw_only=True)
class BertModel:
    """The network and its vocabulary."""

    size: str = setting(
        "bert-base",
        "Shape of the encoder; bert has learned positions, nezha relative ones.",
        choices=SIZES,
    )
    vocabulary: str = setting(
        "",
        "vocab.txt with one word piece per line, or the folder of a BERT tokenizer.",
        unit="path",
    )
    vocab_size: int = setting(
        0, "Number of word pieces in the embedding; 0: determined by the vocabulary.", minimum=0
    )
    hidden_size: int = setting(0, "Hidden units per token; 0: determined by size.", minimum=0)
    num_layers: int = setting(0, "Number of layers; 0: determined by size.", minimum=0)
    num_heads: int = setting(0, "Attention heads per layer; 0: determined by size.", minimum=0)
    intermediate_size: int = setting(
        0, "Hidden units of the feed-forward layers; 0: four times hidden_size.", minimum=0
    )
    max_positions: int = setting(
        512, "Maximum length of a sequence (bert only).", unit="tokens", minimum=2
    )
    hidden_dropout: float = setting(
        0.1, "Probability of dropping a feature of a token.", minimum=0, maximum=0.99
    )
    attention_dropout: float = setting(
        0.1, "Probability of dropping an attention weight.", minimum=0, maximum=0.99
    )
    gelu: str = setting(
        "tanh",
        "Form of the activation: tanh as in the originals; none for the error function, Hugging "
        "Face's default.",
        choices=("tanh", "none"),
    )
    unpadded: bool = setting(True, "Skip padding outside of attention; the results are the same.")


def bert_size(model: BertModel) -> BertSize:
    """Return the shape of the network defined by the settings.

    Raises:
        UserError: The vocabulary's size is not known, or the number of heads does not divide the
            hidden size.
    """
    if not model.vocab_size:
        raise UserError(
            "the number of word pieces is not known without a vocabulary",
            where="model.vocab_size",
            todo="Set model.vocabulary=vocab.txt, or model.vocab_size (Chinese BERT: 21128).",
        )
    family, shape = model.size.split("-")
    hidden, layers, heads = _SHAPES[shape]
    hidden, heads = model.hidden_size or hidden, model.num_heads or heads
    if hidden % heads:
        raise UserError(
            f"{hidden} hidden units per token cannot be split among {heads} heads",
            where="model.num_heads",
            todo="model.hidden_size must be a multiple of model.num_heads.",
        )
    return BertSize(
        vocab_size=model.vocab_size,
        hidden_size=hidden,
        num_layers=model.num_layers or layers,
        num_heads=heads,
        intermediate_size=model.intermediate_size or 4 * hidden,
        max_positions=model.max_positions,
        positions="relative" if _POSITIONS[family] == "relative" else "absolute",
        gelu="none" if model.gelu == "none" else "tanh",
        hidden_dropout=model.hidden_dropout,
        attention_dropout=model.attention_dropout,
    )


def encoder_of(network: nn.Module) -> Bert:
    """Return the encoder in a network of BERT or NEZHA."""
    return next(module for module in network.modules() if isinstance(module, Bert))


def model_tokenizer(model: BertModel, *, lower_case: bool | None = None) -> Tokenizer:
    """Open the tokenizer of the model's vocabulary; for `lower_case` see `open_tokenizer`.

    Raises:
        UserError: The vocabulary is not set, cannot be read, or has more pieces than the network.
    """
    if not model.vocabulary:
        raise UserError(
            "the vocabulary is not set",
            where="model.vocabulary",
            todo="Use the vocab.txt with which the weights were trained: "
            "--set model.vocabulary=vocab.txt",
        )
    tokenizer = open_tokenizer(model.vocabulary, lower_case=lower_case)
    pieces = len(tokenizer.vocabulary)
    if model.vocab_size and pieces > model.vocab_size:
        raise UserError(
            f"the vocabulary has {pieces} word pieces, but the network only {model.vocab_size}",
            where="model.vocabulary",
            todo="Use the vocabulary with which the network was trained.",
        )
    return tokenizer


def with_vocabulary(model: BertModel, tokenizer: Tokenizer) -> BertModel:
    """Return the settings with the vocabulary's number of word pieces, unless they set one."""
    return replace(model, vocab_size=model.vocab_size or len(tokenizer.vocabulary))


def fitted_vocabulary(model: BertModel, shapes: Mapping[str, Sequence[int]]) -> BertModel:
    """Return the settings with the vocabulary size of existing weights, unless they set one.

    Args:
        model: The settings.
        shapes: Shapes of the weights, by jumar's names or TensorFlow's.
    """
    table = shapes.get(WORDS) or shapes.get("bert/embeddings/word_embeddings")
    return replace(model, vocab_size=table[0]) if table and not model.vocab_size else model


def settings_of_weights(
    model: BertModel, shapes: Mapping[str, Sequence[int]], config: Mapping[str, Any]
) -> list[str]:
    """Return the assignments that make the network match existing weights.

    Args:
        model: The settings.
        shapes: Shapes of the weights, by jumar's names, Hugging Face's or TensorFlow's.
        config: Hugging Face's `config.json`, or the number of heads from `bert_config.json`, which
            does not follow from shapes. Empty if there is none.

    Returns:
        The assignments; empty if the settings agree, or if the weights are not BERT's or NEZHA's.
    """
    dotted_shapes = {
        name.replace("/", ".").replace("layer_", "layer."): tuple(shape)
        for name, shape in shapes.items()
    }
    layers = {int(number) for name in dotted_shapes for number in _LAYER.findall(name)}
    words = _shape_of(dotted_shapes, "embeddings.word_embeddings")
    intermediate = _shape_of(dotted_shapes, "encoder.layer.0.intermediate.dense")
    if len(words) != 2 or len(intermediate) != 2 or not layers:
        return []
    positions = _shape_of(dotted_shapes, "embeddings.position_embeddings")
    heads = config.get("num_attention_heads")
    heads = heads if type(heads) is int and heads > 0 else None
    hidden, depth = words[1], len(layers)
    # TensorFlow stores the transpose.
    intermediate_size = intermediate[0] if intermediate[1] == hidden else intermediate[1]
    current = bert_size(replace(model, vocab_size=model.vocab_size or words[0]))
    family = "bert" if positions else "nezha"
    changes: dict[str, object] = {}
    if (current.positions == "absolute") != bool(positions):
        changes["size"] = f"{family}-{model.size.partition('-')[2]}"
    by_field = (model.hidden_size, model.num_layers, model.num_heads, model.intermediate_size)
    published_sizes = [
        shape
        for shape, (width, number, split) in _SHAPES.items()
        if (hidden, depth, intermediate_size) == (width, number, 4 * width)
        and heads in (None, split)
        if not any(by_field)
    ]
    if (current.hidden_size, current.num_layers, current.intermediate_size) != (
        hidden,
        depth,
        intermediate_size,
    ):
        if published_sizes:
            changes["size"] = f"{family}-{published_sizes[0]}"
        else:
            sizes = {
                "hidden_size": hidden,
                "num_layers": depth,
                "intermediate_size": intermediate_size,
            }
            changes |= {
                name: size for name, size in sizes.items() if getattr(current, name) != size
            }
    if heads is None and hidden % current.num_heads and not hidden % _HEAD_SIZE:
        heads = hidden // _HEAD_SIZE
    if not published_sizes and heads not in (None, current.num_heads):
        changes["num_heads"] = heads
    if positions and current.max_positions != positions[0]:
        changes["max_positions"] = positions[0]
    if (gelu := _GELU.get(str(config.get("hidden_act")), current.gelu)) != current.gelu:
        changes["gelu"] = gelu
    return [f"model.{field}={value}" for field, value in changes.items()]


@dataclass(frozen=True, kw_only=True)
class EncoderRecipe(OneObjectiveRecipe):
    """A recipe of BERT or NEZHA, whose network can be adapted to existing weights."""

    model: BertModel = setting(BertModel(), "The network and its vocabulary.")

    def fitted_to(self, shapes: Mapping[str, Sequence[int]]) -> "EncoderRecipe":
        """Return the recipe with the vocabulary size of the weights."""
        return replace(self, model=fitted_vocabulary(self.model, shapes))

    def settings_of_weights(
        self, shapes: Mapping[str, Sequence[int]], config: Mapping[str, Any]
    ) -> Sequence[str]:
        """See `jumar.recipes.bert_model.settings_of_weights`."""
        return settings_of_weights(self.model, shapes, config)

    def settled(self, task: Task) -> "EncoderRecipe":
        """Return the recipe with the number of word pieces of the network."""
        table = task.model.state_dict()[WORDS]
        return replace(self, model=replace(self.model, vocab_size=len(table)))

    def tokenizer(self) -> Tokenizer:
        """Open the tokenizer of the network; see `model_tokenizer`."""
        return model_tokenizer(self.model)


def _shape_of(shapes: Mapping[str, tuple[int, ...]], layer: str) -> tuple[int, ...]:
    """Return the shape of a layer's weight, ignoring any name prefix; empty if there is none."""
    suffixes = (layer, f"{layer}.weight", f"{layer}.kernel")
    return next((shape for name, shape in shapes.items() if name.endswith(suffixes)), ())
