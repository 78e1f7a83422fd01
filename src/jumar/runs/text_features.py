"""Vectors of texts from layers of a run's BERT or NEZHA: `jumar predict --features`.

The JSON lines have the format of `extract_features.py` of google-research/bert.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jumar.data.samples import SampleKey
from jumar.data.text.sentence_files import PLAIN, Sentence, read_plain
from jumar.data.text.sentence_set import Sentences
from jumar.data.text.sequences import frame_of
from jumar.ground.errors import UserError
from jumar.models.bert.network import Bert
from jumar.recipes.bert import PretrainingRecipe
from jumar.recipes.bert_model import encoder_of
from jumar.recipes.bert_tasks import BertTaskRecipe
from jumar.recipes.trained import Trained
from jumar.runs.open_trained import TrainedRequest, open_trained, placed_recipe

_BATCH_SIZE = 32


def text_features(
    request: TrainedRequest,
    layers: Sequence[int],
    *,
    files: Sequence[Path] = (),
    texts: Sequence[str] = (),
    pair: str | None = None,
    say: Callable[[str], None],
) -> Iterator[str]:
    """Yield a JSON line for each text: its word pieces and their vectors in the chosen layers.

    Args:
        request: The run and its weights.
        layers: Indices of layers: 0 is the first, -1 the last.
        files: Files with one text per line; a tab separates the texts of a pair.
        texts: Texts of the command line.
        pair: The second text of each of `texts`.
        say: Prints a line about a vocabulary that moved and texts that were cut.

    Raises:
        UserError: There is no such run or layer, its network is not BERT or NEZHA, or a file
            cannot be read or is not a `.txt`.
    """
    sentences = [Sentence(text, pair, "", "--text") for text in texts]
    for path in files:
        if path.suffix != PLAIN:
            raise UserError(
                "features need files with one text per line",
                where=str(path),
                todo=f"Give a {PLAIN} file; a tab separates the texts of a pair.",
            )
        sentences += read_plain(path)
    trained = open_trained(request)
    with closing(trained.policy):
        recipe = placed_recipe(trained, request, say)
        if isinstance(recipe, BertTaskRecipe):
            tokenizer, longest = recipe.tokenizer(), recipe.data.max_seq_length
        elif isinstance(recipe, PretrainingRecipe):
            tokenizer, longest = recipe.tokenizer(), recipe.model.max_positions
        else:
            raise UserError("the input of the run's network is not text", where="--features")
        encoder = encoder_of(trained.model)
        _check_layers(layers, encoder.size.num_layers)
        number = 0
        # An empty second text is encoded differently from a missing one.
        for _, group in groupby(sentences, key=lambda sentence: sentence.second is not None):
            group_sentences = list(group)
            samples = Sentences(
                group_sentences,
                [0] * len(group_sentences),
                tokenizer=tokenizer,
                frame=frame_of(tokenizer.vocabulary, longest),
            )
            if samples.truncated:
                say(f"{samples.truncated} of {len(samples)} cut to {longest} tokens")
            for ids, vectors in _vectors(encoder, trained, samples, layers):
                tokens = [tokenizer.vocabulary.pieces[piece_id] for piece_id in ids]
                yield _line(number, tokens, layers, vectors)
                number += 1


def _vectors(
    encoder: Bert, trained: Trained, samples: Sentences, layers: Sequence[int]
) -> Iterator[tuple[list[int], list[Tensor]]]:
    """Yield the word pieces of each text, and a tensor [pieces, hidden_size] per layer."""
    for first in range(0, len(samples), _BATCH_SIZE):
        indices = range(first, min(first + _BATCH_SIZE, len(samples)))
        arrays = [samples.map(index, index, SampleKey(0, index)) for index in indices]
        ids, segments, mask = (
            torch.from_numpy(np.stack([sample[name] for sample in arrays])).to(trained.device.torch)
            for name in ("input_ids", "segment_ids", "input_mask")
        )
        with torch.inference_mode(), trained.policy.forward():
            encoded = encoder(ids, segments, mask, all_layers=True)
        # The first entry is the output of the embeddings, which the original does not count.
        layer_vectors = [
            encoded.packing.unpack(encoded.layers[1:][layer]).float().cpu() for layer in layers
        ]
        for row, length in enumerate(encoded.packing.mask.sum(dim=1).tolist()):
            yield ids[row, :length].tolist(), [layer[row, :length] for layer in layer_vectors]


def _line(
    number: int, tokens: Sequence[str], layers: Sequence[int], vectors: Sequence[Tensor]
) -> str:
    features: list[dict[str, Any]] = [
        {
            "token": token,
            "layers": [
                {"index": layer, "values": [round(value, 6) for value in values[position].tolist()]}
                for layer, values in zip(layers, vectors, strict=True)
            ],
        }
        for position, token in enumerate(tokens)
    ]
    return json.dumps({"linex_index": number, "features": features}, ensure_ascii=False)


def _check_layers(layers: Sequence[int], count: int) -> None:
    for layer in layers:
        if not -count <= layer < count:
            raise UserError(
                f"the network has no layer {layer}",
                where="--features",
                todo=f"Its layers are 0 to {count - 1}, or {-count} to -1.",
            )
