"""Networks with audio, text or latent vectors as input: keywords, BERT and NEZHA, BigGAN."""

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from jumar.data.text.tokenizer import Tokenizer
from jumar.models.bert.heads import BertForPretraining
from jumar.models.bert.network import Bert
from jumar.models.biggan import BigGan, SelfAttention, spectral_layers
from jumar.models.export_mode import in_export_mode
from jumar.models.mfcc import Mfcc
from jumar.recipes.bert import PretrainingRecipe
from jumar.recipes.bert_model import encoder_of
from jumar.recipes.bert_tasks import BertTaskRecipe, ClassifyRecipe, EntityRecipe, ReadingRecipe
from jumar.recipes.biggan128 import GenerationRecipe
from jumar.recipes.ds_cnn import KeywordRecipe
from jumar.recipes.trained import Trained
from jumar.runs.exporting.network import SEED, Axis, Exportable, Lengths, Port
from jumar.runs.exporting.pictures import BATCH
from jumar.runs.weights_huggingface import longest_sample, tokenizer_files
from jumar.tasks.sampling import numbered_latents
from jumar.tasks.task import Task


class _Listener(nn.Module):
    """A keyword network with its audio front end."""

    def __init__(self, front_end: Mfcc, network: nn.Module) -> None:
        super().__init__()
        self.front_end, self.network = front_end, network

    def forward(self, audio: Tensor) -> Tensor:
        return self.network(self.front_end(audio)).float()


def listener(trained: Trained) -> Exportable:
    """Return the network from audio clips to logits."""
    recipe = cast(KeywordRecipe, trained.recipe)
    data = recipe.data
    samples = data.clip_samples
    return Exportable(
        network=_Listener(recipe.build_front_end(), trained.model),
        inputs=[
            Port(
                name="audio",
                shape=("batch", samples),
                meaning=f"{data.sample_rate} samples per second from -1 to 1; the cepstral "
                "coefficients are computed within the network",
            )
        ],
        outputs=[
            Port(
                name="logits",
                shape=("batch", len(data.labels)),
                meaning="softmax over the last axis gives the probabilities of the labels",
            )
        ],
        axes={"batch": BATCH},
        made_up=lambda lengths, random: (
            0.2 * torch.rand(lengths["batch"], samples, generator=random) - 0.1,
        ),
        facts={
            "preprocessing": {
                "sample_rate": data.sample_rate,
                "samples": samples,
                "longer_clips": "cut; shorter ones are padded with zeros at the end",
            },
            "labels": list(data.labels),
            "postprocessing": "softmax",
        },
        entrance=_front_end,
    )


class _TextHead(nn.Module):
    """A BERT with its head; in an exported graph, outputs for padding are 0."""

    def __init__(self, network: nn.Module, *, by_token: bool) -> None:
        super().__init__()
        self.network, self.by_token = network, by_token

    def forward(self, input_ids: Tensor, segment_ids: Tensor, input_mask: Tensor) -> Tensor:
        logits = self.network(input_ids, segment_ids, input_mask).float()
        if self.by_token and in_export_mode():
            logits = logits * input_mask[:, :, None].to(logits.dtype)
        return logits


class _Features(nn.Module):
    """A pre-trained encoder that returns the vectors of all tokens and the pooled vector."""

    def __init__(self, bert: Bert) -> None:
        super().__init__()
        self.bert = bert

    def forward(
        self, input_ids: Tensor, segment_ids: Tensor, input_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        encoded = self.bert(input_ids, segment_ids, input_mask)
        tokens = encoded.packing.unpack(encoded.tokens)
        if in_export_mode():
            tokens = tokens * input_mask[:, :, None].to(tokens.dtype)
        return tokens, self.bert.pooler(encoded.first())


def text_head(trained: Trained) -> Exportable:
    """Return the network from word pieces to the logits of labels, tags or answers."""
    recipe = cast(BertTaskRecipe, trained.recipe)
    facts: dict[str, Any] = {}
    shape: tuple[int | str, ...]
    if isinstance(recipe, ClassifyRecipe):
        labels = list(recipe.data.labels)
        shape, facts["labels"] = ("batch", len(labels)), labels
        meaning = "softmax over the last axis gives the probabilities of the labels"
    elif isinstance(recipe, EntityRecipe):
        labels = list(recipe.data.labels)
        shape, facts["labels"] = ("batch", "length", len(labels)), labels
        facts["new_texts"] = recipe.data.new_texts
        meaning = "a token's tag is the largest on the last axis; a word's, that of its first token"
    else:
        data = cast(ReadingRecipe, recipe).data
        shape = ("batch", "length", 2)
        meaning = "scores of the answer's start and end at each token"
        facts["answers"] = {
            "doc_stride": data.doc_stride,
            "max_query_length": data.max_query_length,
            "max_answer_length": data.max_answer_length,
            "n_best": data.n_best,
        }
    logits = Port(name="logits", shape=shape, meaning=meaning)
    network = _TextHead(trained.model, by_token=len(shape) == 3)
    return _of_texts(trained, network, [logits], recipe.tokenizer(), facts)


def text_encoder(trained: Trained) -> Exportable:
    """Return the encoder of a pre-training run, from word pieces to vectors."""
    recipe = cast(PretrainingRecipe, trained.recipe)
    bert = cast(BertForPretraining, trained.model).bert
    hidden_size = bert.size.hidden_size
    outputs = [
        Port(
            name="tokens",
            shape=("batch", "length", hidden_size),
            meaning="the last layer's vectors",
        ),
        Port(name="pooled", shape=("batch", hidden_size), meaning="pooled from the first token"),
    ]
    return _of_texts(trained, _Features(bert), outputs, recipe.tokenizer(), {})


def _of_texts(
    trained: Trained,
    network: nn.Module,
    outputs: list[Port],
    tokenizer: Tokenizer,
    facts: Mapping[str, Any],
) -> Exportable:
    size = encoder_of(trained.model).size
    recipe = cast("PretrainingRecipe | BertTaskRecipe", trained.recipe)
    longest = longest_sample(recipe, size)
    max_positions = size.max_positions if size.positions == "absolute" else None
    vocabulary_size = len(tokenizer.vocabulary)

    def made_up(lengths: Lengths, random: torch.Generator) -> tuple[Tensor, ...]:
        shape = batch, length = lengths["batch"], lengths["length"]
        ids = torch.randint(0, vocabulary_size, shape, generator=random)
        segments = (torch.arange(length) >= length // 2).long().expand(shape).contiguous()
        # The first sample has no padding, and each later one has more.
        ends = (length - torch.arange(batch)).clamp_min(2)
        mask = (torch.arange(length)[None] < ends[:, None]).long()
        return ids * mask, segments * mask, mask

    def port(name: str, meaning: str) -> Port:
        return Port(name=name, dtype=torch.int64, shape=("batch", "length"), meaning=meaning)

    return Exportable(
        network=network,
        inputs=[
            port("input_ids", "word pieces: [CLS] first [SEP] second [SEP]"),
            port("segment_ids", "1 for the second text and the [SEP] after it, else 0"),
            port("input_mask", "1 for a token, 0 for padding at the end"),
        ],
        outputs=outputs,
        axes={
            "batch": BATCH,
            "length": Axis(
                usual=longest, other=max(2, longest // 2), min_length=2, max_length=max_positions
            ),
        },
        made_up=made_up,
        facts={
            "preprocessing": {
                "longest_sample": longest,
                "do_lower_case": tokenizer.rules.words.lower_case,
                "pad_token_id": tokenizer.vocabulary.id_of("[PAD]"),
            },
            **facts,
        },
        files=tokenizer_files(tokenizer, longest),
        entrance=_bert,
    )


def generator(trained: Trained) -> Exportable:
    """Return the network from latent vectors to images."""
    recipe = cast(GenerationRecipe, trained.recipe)
    network = cast(BigGan, trained.model).generator
    latent, truncation = recipe.model.latent, recipe.loss.truncation
    side = recipe.data.image_size
    return Exportable(
        network=network,
        part="generator",
        inputs=[
            Port(
                name="latent",
                shape=("batch", latent),
                meaning=f"drawn from a normal distribution truncated at {truncation:g}",
            )
        ],
        outputs=[Port(name="image", shape=("batch", 3, side, side), meaning="RGB, -1 to 1")],
        axes={"batch": BATCH},
        made_up=lambda lengths, _: (
            numbered_latents(0, lengths["batch"], latent, seed=SEED, truncation=truncation),
        ),
        facts={
            "preprocessing": {"truncation": truncation},
            "postprocessing": "levels are 127.5 * (image + 1), rounded",
        },
        drawn="latent vectors drawn as by `jumar generate`",
        prepared=_folded,
    )


def _folded(network: nn.Module) -> None:
    """Fold spectral norms into the weights, and compute attention as two plain products."""
    for _, layer in spectral_layers(network):
        layer.fold()
    for module in network.modules():
        if isinstance(module, SelfAttention):
            module.fused = False


def _front_end(task: Task) -> nn.Module:
    return next(module for module in task.objectives[0].modules() if isinstance(module, Mfcc))


def _bert(task: Task) -> nn.Module:
    return encoder_of(task.model)
