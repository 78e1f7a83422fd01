"""BERT and NEZHA: embeddings, encoder and pooler, over tokens without padding.

Papers: J. Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language
Understanding", https://arxiv.org/abs/1810.04805; J. Wei et al., "NEZHA",
https://arxiv.org/abs/1909.00204. Originals: google-research/bert, NEZHA-TensorFlow of huawei-noah.
Names of modules and parameters are those of Hugging Face's `BertModel`.
"""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional

from jumar.models.bert.attention import SelfAttention
from jumar.models.bert.packing import Packing, packing_of
from jumar.models.initializers import truncated_normal_
from jumar.models.keyed_dropout import KeyedTokenDropout

Positions = Literal["absolute", "relative"]
Gelu = Literal["tanh", "none"]
"""Form of the activation: `tanh` as in the originals, or `none` for the error function, Hugging
Face's default."""


@dataclass(frozen=True, kw_only=True)
class BertSize:
    """The shape of an encoder.

    Attributes:
        vocab_size: Number of word pieces.
        hidden_size: Features per token.
        num_layers: Number of layers.
        num_heads: Attention heads per layer.
        intermediate_size: Features per token between the two dense layers of a layer.
        max_positions: Length of the longest sequence.
        type_vocab_size: Number of segment types.
        positions: `absolute` for BERT's trained table, `relative` for NEZHA's sinusoids.
        gelu: Form of the activation.
        hidden_dropout: Probability of dropping a feature of a token.
        attention_dropout: Probability of dropping an attention weight.
        initializer_range: Standard deviation of the initial weights, before truncation at two.
    """

    vocab_size: int
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    intermediate_size: int = 3072
    max_positions: int = 512
    type_vocab_size: int = 2
    positions: Positions = "absolute"
    gelu: Gelu = "tanh"
    hidden_dropout: float = 0.1
    attention_dropout: float = 0.1
    initializer_range: float = 0.02


class LayerNorm(nn.LayerNorm):
    """The originals' layer norm: in float32, with an epsilon of 1e-12."""

    def __init__(self, size: int) -> None:
        super().__init__(size, eps=1e-12)


class Embeddings(nn.Module):
    """Sum of the embeddings of word piece, segment and (BERT) position, normalised."""

    def __init__(self, size: BertSize) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(size.vocab_size, size.hidden_size)
        if size.positions == "absolute":
            self.position_embeddings = nn.Embedding(size.max_positions, size.hidden_size)
        else:
            self.position_embeddings = None
        self.token_type_embeddings = nn.Embedding(size.type_vocab_size, size.hidden_size)
        self.LayerNorm = LayerNorm(size.hidden_size)
        self.dropout = KeyedTokenDropout(size.hidden_dropout)

    def forward(
        self, input_ids: Tensor, segment_ids: Tensor, samples: Tensor, positions: Tensor
    ) -> Tensor:
        """Embed packed tokens as [tokens, hidden_size]."""
        x = self.word_embeddings(input_ids) + self.token_type_embeddings(segment_ids)
        if self.position_embeddings is not None:
            x = x + self.position_embeddings(positions)
        return self.dropout(self.LayerNorm(x), samples, positions)


class AddAndNorm(nn.Module):
    """A dense layer, dropout, the residual, and the norm after it."""

    def __init__(self, inputs: int, size: BertSize) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, size.hidden_size)
        self.LayerNorm = LayerNorm(size.hidden_size)
        self.dropout = KeyedTokenDropout(size.hidden_dropout)

    def forward(self, x: Tensor, residual: Tensor, samples: Tensor, positions: Tensor) -> Tensor:
        """[tokens, inputs] and the residual [tokens, hidden_size]."""
        return self.LayerNorm(self.dropout(self.dense(x), samples, positions) + residual)


class Attention(nn.Module):
    """Self-attention with its output layer."""

    def __init__(self, size: BertSize) -> None:
        super().__init__()
        self.self = SelfAttention(
            size.hidden_size,
            size.num_heads,
            dropout=size.attention_dropout,
            relative=size.positions == "relative",
        )
        self.output = AddAndNorm(size.hidden_size, size)

    def forward(self, x: Tensor, packing: Packing, samples: Tensor, positions: Tensor) -> Tensor:
        """[tokens, hidden_size] in and out."""
        return self.output(self.self(x, packing), x, samples, positions)


class Intermediate(nn.Module):
    """The wide dense layer and its activation."""

    def __init__(self, size: BertSize) -> None:
        super().__init__()
        self.dense = nn.Linear(size.hidden_size, size.intermediate_size)
        self.gelu = size.gelu

    def forward(self, x: Tensor) -> Tensor:
        """[tokens, hidden_size] in, [tokens, intermediate_size] out."""
        return functional.gelu(self.dense(x), approximate=self.gelu)


class Layer(nn.Module):
    """One layer of the encoder."""

    def __init__(self, size: BertSize) -> None:
        super().__init__()
        self.attention = Attention(size)
        self.intermediate = Intermediate(size)
        self.output = AddAndNorm(size.intermediate_size, size)

    def forward(self, x: Tensor, packing: Packing, samples: Tensor, positions: Tensor) -> Tensor:
        """[tokens, hidden_size] in and out."""
        x = self.attention(x, packing, samples, positions)
        return self.output(self.intermediate(x), x, samples, positions)


class Encoder(nn.Module):
    """All layers."""

    def __init__(self, size: BertSize) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer(size) for _ in range(size.num_layers))


class Pooler(nn.Module):
    """The pooled representation of a sample, from its first token."""

    def __init__(self, size: BertSize) -> None:
        super().__init__()
        self.dense = nn.Linear(size.hidden_size, size.hidden_size)

    def forward(self, first: Tensor) -> Tensor:
        """[samples, hidden_size] in and out."""
        return self.dense(first).tanh()


@dataclass(frozen=True, eq=False)
class Encoded:
    """The output of an encoder.

    Attributes:
        tokens: [tokens, hidden_size] of the last layer, packed.
        packing: Their positions.
        layers: The outputs of all layers, the embeddings first; empty unless requested.
    """

    tokens: Tensor
    packing: Packing
    layers: tuple[Tensor, ...] = ()

    def first(self) -> Tensor:
        """[samples, hidden_size] of the first token of each sample."""
        zeros = self.packing.mask.new_zeros(self.packing.samples, 1).long()
        return self.tokens.index_select(0, self.packing.at(zeros))


class Bert(nn.Module):
    """The encoder of BERT or NEZHA.

    Args:
        size: Its shape.
        unpadded: Whether layers other than attention leave out padding.
    """

    def __init__(self, size: BertSize, *, unpadded: bool = True) -> None:
        super().__init__()
        self.size = size
        self.unpadded = unpadded
        self.embeddings = Embeddings(size)
        self.encoder = Encoder(size)
        self.pooler = Pooler(size)

    def layer_order(self) -> list[str]:
        """The prefixes of the parameters of all layers below the pooler, from the input on."""
        layers = [f"encoder.layer.{number}" for number in range(len(self.encoder.layer))]
        return ["embeddings", *layers]

    def forward(
        self, input_ids: Tensor, segment_ids: Tensor, mask: Tensor, *, all_layers: bool = False
    ) -> Encoded:
        """Encode a batch.

        Args:
            input_ids: int [samples, length], word pieces.
            segment_ids: int [samples, length], 0 or 1.
            mask: [samples, length], non-zero for tokens.
            all_layers: Whether to return the outputs of all layers.

        Raises:
            ValueError: A sample is longer than the position table.
        """
        packing = packing_of(mask, unpadded=self.unpadded)
        if self.size.positions == "absolute" and packing.length > self.size.max_positions:
            raise ValueError(
                f"a sample of {packing.length} tokens is longer than the "
                f"{self.size.max_positions} positions of the network"
            )
        samples, positions = packing.rows(), packing.positions()
        ids, segments = (
            packing.pack(tensor[:, : packing.length]) for tensor in (input_ids, segment_ids)
        )
        x = self.embeddings(ids, segments, samples, positions)
        layers = [x]
        for layer in self.encoder.layer:
            x = layer(x, packing, samples, positions)
            if all_layers:
                layers.append(x)
        return Encoded(tokens=x, packing=packing, layers=tuple(layers) if all_layers else ())


def initialize(module: nn.Module, initializer_range: float) -> None:
    """Fill weights as the originals do: normal, truncated at two deviations, with biases of 0.

    Args:
        module: A network of this package, changed in place.
        initializer_range: Standard deviation before truncation.
    """
    for layer in module.modules():
        if isinstance(layer, (nn.Linear, nn.Embedding)):
            truncated_normal_(layer.weight, initializer_range)
        if isinstance(layer, nn.Linear):
            nn.init.zeros_(layer.bias)
