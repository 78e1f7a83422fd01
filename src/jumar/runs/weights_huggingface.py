"""Export a run of BERT or NEZHA as a Hugging Face folder: `jumar weights export --to huggingface`.

Based on transformers' BertConfig and NezhaConfig (up to release 4) and their tokenizers' files.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save
from tokenizers import Tokenizer as FastTokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors
from torch import Tensor

from jumar.data.text.tokenizer import Tokenizer
from jumar.data.text.vocabulary import CONTINUES, SPECIAL
from jumar.ground.errors import UserError
from jumar.ground.files import folder_beside, write_bytes, write_text
from jumar.ground.paths import exists
from jumar.ground.text import counted
from jumar.models.bert.network import BertSize
from jumar.models.bert.relative import MAX_DISTANCE
from jumar.recipes.bert import PretrainingRecipe
from jumar.recipes.bert_model import encoder_of
from jumar.recipes.bert_tasks import BertTaskRecipe, ClassifyRecipe, EntityRecipe, ReadingRecipe
from jumar.runs.open_trained import TrainedRequest, open_trained, placed_recipe

_HEADS: Mapping[type, str] = {
    PretrainingRecipe: "ForPreTraining",
    ClassifyRecipe: "ForSequenceClassification",
    EntityRecipe: "ForTokenClassification",
    ReadingRecipe: "ForQuestionAnswering",
}
_WITHOUT_POOLER = (EntityRecipe, ReadingRecipe)
"""Recipes whose Hugging Face class has no pooler, and would warn about unknown weights."""
_ROLES = ("pad", "unk", "cls", "sep", "mask")
_GELU = {"tanh": "gelu_new", "none": "gelu"}
_DEFAULT_MAX_LENGTH = 512
"""Maximum number of tokens if neither positions nor the run's data limit it."""


def export_huggingface(
    request: TrainedRequest, out: Path | None, say: Callable[[str], None]
) -> list[str]:
    """Write weights, configuration and tokenizer for `from_pretrained`.

    Args:
        request: The run and its weights.
        out: The folder; None for `huggingface-STEP` in the run.
        say: Prints a line about a vocabulary that moved.

    Returns:
        The lines of a summary.

    Raises:
        UserError: There is no such run or checkpoint, its network is not BERT or NEZHA, the
            vocabulary is missing, or the folder exists or cannot be written.
    """
    trained = open_trained(request)
    trained.policy.close()
    recipe = placed_recipe(trained, request, say)
    if not isinstance(recipe, PretrainingRecipe | BertTaskRecipe):
        raise UserError(
            f"Hugging Face has no class for '{trained.name}', the recipe of '{request.run_dir}'",
            where="--to huggingface",
            todo="Runs of BERT and NEZHA can be exported.",
        )
    out = out or request.run_dir / f"huggingface-{trained.checkpoint.step}"
    if exists(out):
        raise UserError("already exists", where=str(out), todo="Choose another folder with --out.")
    tokenizer = recipe.tokenizer()
    size = encoder_of(trained.model).size
    config = configuration(recipe, size, tokenizer)
    weights = _named(trained.model.state_dict(), recipe, config["model_type"])
    with folder_beside(out) as beside:
        # Not `save_file`, which creates files with owner-only permissions regardless of the umask.
        write_bytes(beside / "model.safetensors", save(weights, metadata={"format": "pt"}))
        write_text(beside / "config.json", _json(config))
        for name, text in tokenizer_files(tokenizer, longest_sample(recipe, size)).items():
            write_text(beside / name, text)
    lines = [
        f"{counted(len(weights), 'weight')} of {trained.name}, step {trained.checkpoint.step}, "
        f"for {config['architectures'][0]}"
    ]
    if trained.weights == "ema":
        lines.append("  the averages of the weights, as `jumar predict` uses them")
    if size.positions == "relative":
        lines.append("  transformers supports NEZHA up to release 4, no longer in release 5")
    return [*lines, f"written: {out}"]


def configuration(
    recipe: PretrainingRecipe | BertTaskRecipe, size: BertSize, tokenizer: Tokenizer
) -> dict[str, Any]:
    """Return the content of `config.json`.

    Args:
        recipe: The recipe of the run.
        size: The shape of its network.
        tokenizer: Its tokenizer.
    """
    relative = size.positions == "relative"
    family = "Nezha" if relative else "Bert"
    config: dict[str, Any] = {
        "architectures": [family + _HEADS[type(recipe)]],
        "model_type": family.lower(),
        "vocab_size": size.vocab_size,
        "hidden_size": size.hidden_size,
        "num_hidden_layers": size.num_layers,
        "num_attention_heads": size.num_heads,
        "intermediate_size": size.intermediate_size,
        "max_position_embeddings": size.max_positions,
        "type_vocab_size": size.type_vocab_size,
        "hidden_act": _GELU[size.gelu],
        "hidden_dropout_prob": size.hidden_dropout,
        "attention_probs_dropout_prob": size.attention_dropout,
        "initializer_range": size.initializer_range,
        "layer_norm_eps": 1e-12,
        "pad_token_id": tokenizer.vocabulary.id_of("[PAD]"),
        "dtype": "float32",
        "torch_dtype": "float32",  # its name up to release 4
    }
    if relative:
        config |= {"max_relative_position": MAX_DISTANCE, "classifier_dropout": size.hidden_dropout}
    if isinstance(recipe, ClassifyRecipe | EntityRecipe):
        labels = recipe.data.labels
        config["id2label"] = {str(number): label for number, label in enumerate(labels)}
        config["label2id"] = {label: number for number, label in enumerate(labels)}
    if isinstance(recipe, ReadingRecipe):
        data = recipe.data
        overlap = max(0, data.max_seq_length - data.max_query_length - 3 - data.doc_stride)
        # The pipeline's stride is the overlap of two windows; ours is the distance between their
        # starts.
        config["task_specific_params"] = {
            "question-answering": {
                "max_seq_len": data.max_seq_length,
                "max_question_len": data.max_query_length,
                "doc_stride": overlap,
                "max_answer_len": data.max_answer_length,
                "top_k": data.n_best,
            }
        }
    return config


def fast_tokenizer(tokenizer: Tokenizer) -> FastTokenizer:
    """Convert a tokenizer to Hugging Face's `tokenizers`.

    Words are split by the library's rules, which differ from the original's for rare characters:
    see `data/text/tokenizer.py`.
    """
    vocabulary, rules = tokenizer.vocabulary, tokenizer.rules
    fast = FastTokenizer(
        models.WordPiece(
            vocab=vocabulary.ids,
            unk_token=rules.unknown,
            max_input_chars_per_word=rules.longest_word,
            continuing_subword_prefix=CONTINUES,
        )
    )
    fast.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=rules.words.split_chinese,
        strip_accents=rules.words.strip_accents,
        lowercase=rules.words.lower_case,
    )
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fast.post_processor = processors.BertProcessing(
        ("[SEP]", vocabulary.id_of("[SEP]")), ("[CLS]", vocabulary.id_of("[CLS]"))
    )
    fast.decoder = decoders.WordPiece(prefix=CONTINUES)
    fast.add_special_tokens(list(SPECIAL))
    return fast


def tokenizer_files(tokenizer: Tokenizer, longest: int) -> dict[str, str]:
    """Return the contents of a tokenizer's files for Hugging Face's libraries, by name.

    Args:
        tokenizer: The tokenizer.
        longest: Number of tokens of the longest sample.
    """
    return {
        "vocab.txt": "\n".join(tokenizer.vocabulary.pieces) + "\n",
        "tokenizer.json": fast_tokenizer(tokenizer).to_str(pretty=True) + "\n",
        "tokenizer_config.json": _json(_tokenizer_config(tokenizer, longest)),
    }


def _tokenizer_config(tokenizer: Tokenizer, longest: int) -> dict[str, Any]:
    words = tokenizer.rules.words
    return {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": words.lower_case,
        "strip_accents": words.strip_accents,
        "tokenize_chinese_chars": words.split_chinese,
        "model_max_length": longest,
        **{f"{role}_token": piece for role, piece in zip(_ROLES, SPECIAL, strict=True)},
    }


def longest_sample(recipe: PretrainingRecipe | BertTaskRecipe, size: BertSize) -> int:
    """Return the number of tokens of the longest sample that a run's network supports."""
    if isinstance(recipe, BertTaskRecipe):
        return recipe.data.max_seq_length
    return size.max_positions if size.positions == "absolute" else _DEFAULT_MAX_LENGTH


def _named(
    weights: Mapping[str, Tensor], recipe: PretrainingRecipe | BertTaskRecipe, model_type: str
) -> dict[str, Tensor]:
    """Return the weights under Hugging Face's names: its NEZHA calls the encoder `nezha`."""
    kept_weights = {
        name: tensor.contiguous()
        for name, tensor in weights.items()
        if not (isinstance(recipe, _WITHOUT_POOLER) and name.startswith("bert.pooler."))
    }
    return {
        f"{model_type}.{name.removeprefix('bert.')}" if name.startswith("bert.") else name: tensor
        for name, tensor in kept_weights.items()
    }


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
