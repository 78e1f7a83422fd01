"""Vectors of texts from layers of a run's BERT or NEZHA: `jumar predict --features`.

Original: `extract_features.py` of google-research/bert, whose JSON lines these are.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
from jumar.recipes.bert_model import model_tokenizer
from jumar.recipes.bert_tasks import BertTaskRecipe
from jumar.recipes.resolved import with_data_in_place
from jumar.recipes.trained import Trained
from jumar.runs.open_trained import TrainedRequest, open_trained
from jumar.runs.predict_text import of_vocabulary
from jumar.training.run_directory import RunDirectory

_AT_ONCE = 32


@dataclass(frozen=True, kw_only=True)
class FeatureRequest:
    """The texts, which weights of which run, and the layers.

    Attributes:
        trained: The run.
        layers: Numbers of layers: 0 is the first, -1 the last.
        files: Files with one text per line; a tab separates the texts of a pair.
        texts: The texts themselves.
        pair: The second text of each of `texts`.
    """

    trained: TrainedRequest
    layers: Sequence[int]
    files: Sequence[Path] = ()
    texts: Sequence[str] = ()
    pair: str | None = None


def text_features(
    request: FeatureRequest, say: Callable[[str], None] = lambda _: None
) -> Iterator[str]:
    """A JSON line for each text: its word pieces, and the vectors of each in the chosen layers.

    Raises:
        UserError: There is no such run or layer, its network is not BERT or NEZHA, or a file
            cannot be read or is not a `.txt`.
    """
    sentences = [Sentence(text, request.pair, "", "--text") for text in request.texts]
    for path in request.files:
        if path.suffix != PLAIN:
            raise UserError(
                "features need files with one text per line",
                where=str(path),
                todo=f"Give a {PLAIN} file; a tab separates the texts of a pair.",
            )
        sentences += read_plain(path)
    trained = open_trained(request.trained)
    try:
        run = RunDirectory(request.trained.run_dir)
        recipe = with_data_in_place(
            trained.recipe, run, of_vocabulary(say), request.trained.assignments
        )
        if isinstance(recipe, BertTaskRecipe):
            tokenizer, longest = recipe.tokenizer(), recipe.data.max_seq_length
        elif isinstance(recipe, PretrainingRecipe):
            tokenizer, longest = model_tokenizer(recipe.model), recipe.model.max_positions
        else:
            raise UserError("the run's network takes no texts", where="--features")
        encoder = next(module for module in trained.model.modules() if isinstance(module, Bert))
        _check_layers(request.layers, encoder.size.num_layers)
        number = 0
        # A sample without a second text is encoded differently from one with an empty one.
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
            for ids, vectors in _vectors(encoder, trained, samples, request.layers):
                tokens = [tokenizer.vocabulary.pieces[piece_id] for piece_id in ids]
                yield _line(number, tokens, request.layers, vectors)
                number += 1
    finally:
        trained.policy.close()


def _vectors(
    encoder: Bert, trained: Trained, samples: Sentences, layers: Sequence[int]
) -> Iterator[tuple[list[int], list[Tensor]]]:
    """For each text its word pieces, and a tensor [pieces, hidden_size] per layer."""
    for first in range(0, len(samples), _AT_ONCE):
        numbers = range(first, min(first + _AT_ONCE, len(samples)))
        arrays = [samples.map(each, each, SampleKey(0, each)) for each in numbers]
        ids, segments, mask = (
            torch.from_numpy(np.stack([each[name] for each in arrays])).to(trained.device.torch)
            for name in ("input_ids", "segment_ids", "input_mask")
        )
        with torch.inference_mode(), trained.policy.forward():
            encoded = encoder(ids, segments, mask, all_layers=True)
        # The first of the layers is the embeddings, which the original does not count.
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
                todo=f"It has {count}: 0 to {count - 1}, or -1 for the last to {-count}.",
            )
