"""The recipes of fine-tuned BERT: the originals' settings, and what a run stores about its data."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from jumar.ground.errors import UserError
from jumar.models.bert.heads import BertForPretraining
from jumar.models.bert.network import BertSize
from jumar.recipes.bert_tasks import BertTaskRecipe, ClassifyRecipe, EntityRecipe
from jumar.recipes.registry import create_recipe
from jumar.settings import override
from jumar.training.optimizers import AdamW
from jumar.training.schedules import learning_rate
from tests.cli.in_process import here
from tests.cli.small_text_runs import fine_tune
from tests.data.text.vocabularies import PIECES
from tests.recipes.small_data import write_texts

NAMES = ("bert-classify", "bert-ner", "bert-reading")


def recipe(name: str, *changes: str) -> BertTaskRecipe:
    made = create_recipe(name)
    assert isinstance(made, BertTaskRecipe)
    return override(made, changes)


@pytest.mark.parametrize(
    ("name", "length", "duration", "lower"),
    [
        ("bert-classify", 128, "3ep", True),
        ("bert-ner", 256, "5ep", True),
        ("bert-reading", 384, "2ep", False),
    ],
)
def test_defaults_match_the_originals(name: str, length: int, duration: str, lower: bool) -> None:
    made = recipe(name)
    assert (made.data.max_seq_length, made.training.duration) == (length, duration)
    assert (made.data.batch_size, made.data.do_lower_case) == (32, lower)
    assert made.optimizer == AdamW(
        learning_rate=1e-5, weight_decay=0.01, epsilon=1e-6, bias_correction="none"
    )
    assert (made.training.clip, made.training.clip_limit) == ("global_norm", 1.0)
    rates = [
        learning_rate(made.schedule, 1.0, step, steps_per_epoch=50, total_steps=100)
        for step in (0, 5, 10, 55, 99)
    ]
    assert rates == pytest.approx([0.0, 0.5, 0.9, 0.45, 0.01])


def test_run_keeps_labels_and_sizes_of_its_data(tmp_path: Path) -> None:
    write_texts(tmp_path)
    fields = [f"model.vocabulary={tmp_path / 'vocab.txt'}", "model.size=bert-tiny"]
    fields += ["data.max_seq_length=12"]
    made = recipe("bert-classify", *fields, f"data.path={tmp_path / 'sentences'}")
    settled = made.settled(made.build_task(lambda _: None))
    assert isinstance(settled, ClassifyRecipe)
    assert settled.data.labels == ("0", "1")
    assert settled.model.vocab_size == len(PIECES)
    assert settled.build_model().classifier.weight.shape == (2, 128)
    tags = recipe("bert-ner", *fields, f"data.path={tmp_path / 'tags'}")
    settled = tags.settled(tags.build_task(lambda _: None))
    assert isinstance(settled, EntityRecipe)
    assert settled.data.labels == ("B-X", "I-X", "O")
    assert settled.data.new_texts == "characters"


SENTENCES = {"IOB2": "a B-X\nb I-X\n", "IOBES": "a B-X\nb E-X\n\nc S-X\nd I-X\n"}
"""Two follow IOBES, and one does not."""


@pytest.mark.parametrize(
    ("scoring", "scheme", "counted"),
    [("strict-iob2", "IOB2", "0 of 1"), ("strict-iobes", "IOBES", "1 of 3")],
)
def test_strict_scores_name_their_scheme_and_what_does_not_follow_it(
    tmp_path: Path, scoring: str, scheme: str, counted: str
) -> None:
    made = tagged(tmp_path, SENTENCES[scheme], f"data.scoring={scoring}")
    lines: list[str] = []
    task = made.build_task(lines.append)
    assert lines[2:] == [
        f"evaluation: strict scores by {scheme}; {counted} labelled entities do not follow it and "
        "do not count"
    ]
    sums = {"entities": torch.zeros(1, 3)}
    assert task.score_tables(sums)[0].title == f"entities (strict, {scheme})"
    other = {"strict-iob2": "strict-iobes", "strict-iobes": "strict-iob2"}[scoring]
    with pytest.raises(UserError, match=r"is not one of IOB2|no entity .* follows IOBES"):
        override(made, [f"data.scoring={other}"]).build_task(lines.append)
    # Without evaluation nothing is scored.
    override(made, [f"data.scoring={other}", "data.eval_path=none"]).build_task(lines.append)


def tagged(folder: Path, sentences: str, *changes: str) -> BertTaskRecipe:
    write_texts(folder)
    for part in ("train", "dev"):
        (folder / "tags" / f"{part}.txt").write_text(sentences)
    fields = [f"model.vocabulary={folder / 'vocab.txt'}", "model.size=bert-tiny"]
    return recipe("bert-ner", *fields, f"data.path={folder / 'tags'}", *changes)


def test_run_that_names_no_scoring_counts_all_entities(tmp_path: Path) -> None:
    write_texts(tmp_path)
    fine_tune(tmp_path, "bert-ner", steps=2)
    path = tmp_path / "bert-ner" / "recipe.json"
    stored = json.loads(path.read_text())
    assert stored["settings"]["data"].pop("scoring") == "conll"
    path.write_text(json.dumps(stored))
    evaluation = ("evaluate", "bert-ner", "--device", "cpu")
    assert "\nentities:" in here(*evaluation, cwd=tmp_path).out
    chosen = ("--set", "data.scoring=strict-iob2")
    assert "\nentities (strict, IOB2):" in here(*evaluation, *chosen, cwd=tmp_path).out
    refused = ("--set", "data.scoring=strict-iobes")
    message = here(*evaluation, *refused, cwd=tmp_path, code=2).message
    assert "data.scoring: no entity of the evaluation data follows IOBES" in message
    assert "or conll, which needs none." in message


def test_imported_weights_determine_the_number_of_labels() -> None:
    shapes = {
        "bert.embeddings.word_embeddings.weight": (30, 128),
        "classifier.weight": (3, 128),
    }
    made = recipe("bert-classify", "model.size=bert-tiny").fitted_to(shapes)
    assert isinstance(made, ClassifyRecipe)
    assert made.data.labels == ("0", "1", "2")
    assert made.model.vocab_size == 30
    named = recipe("bert-ner", "data.labels=O,B-X").fitted_to({"output_weights": (11, 8)})
    assert isinstance(named, EntityRecipe)
    assert named.data.labels == ("O", "B-X")


def test_missing_inputs_are_named() -> None:
    with pytest.raises(UserError, match="the labels are not known without the data"):
        recipe("bert-classify", "model.vocab_size=30").build_model()
    with pytest.raises(UserError, match="the vocabulary is not set"):
        recipe("bert-ner").build_task(lambda _: None)
    long = recipe("bert-reading", "data.max_seq_length=600", "model.vocab_size=30")
    with pytest.raises(UserError, match="longer than the 512 positions"):
        long.build_model()
    nezha = replace(long, model=replace(long.model, size="nezha-tiny"))
    assert nezha.build_model().bert.embeddings.position_embeddings is None


@pytest.mark.parametrize(
    ("name", "form"),
    [*((name, "file") for name in NAMES), ("bert-classify", "folder")],
)
def test_fine_tuning_starts_from_pretrained_weights(name: str, form: str, tmp_path: Path) -> None:
    write_texts(tmp_path)
    size = BertSize(
        vocab_size=len(PIECES), hidden_size=128, num_layers=2, num_heads=2, intermediate_size=512
    )
    torch.manual_seed(5)
    pretrained = BertForPretraining(size)
    start_from = "bert.safetensors"
    if form == "folder":
        start_from = "bert"
        (tmp_path / "bert").mkdir()
        (tmp_path / "bert" / "config.json").write_text("{}")
        old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
        tensors = {
            next((key.replace(new, name) for new, name in old.items() if new in key), key): value
            for key, value in pretrained.state_dict().items()
        }
        save_file(tensors, tmp_path / "bert" / "model.safetensors")
    else:
        save_file(pretrained.state_dict(), tmp_path / start_from)
    folder = {"bert-classify": "sentences", "bert-ner": "tags", "bert-reading": "questions"}[name]
    settings = [
        "model.size=bert-tiny",
        "model.vocabulary=vocab.txt",
        f"data.path={folder}",
        "data.max_seq_length=12",
        *(["data.max_query_length=2"] if folder == "questions" else []),
        "data.batch_size=4",
        "data.workers=0",
        "optimizer.learning_rate=0",
        "training.duration=2it",
        f"transfer.start_from={start_from}",
    ]
    fields = [text for setting in settings for text in ("--set", setting)]
    run = tmp_path / "run"
    done = here("train", name, "--device", "cpu", "--run-dir", run, *fields, cwd=tmp_path)
    assert "39 loaded" in done.out
    assert "only in the file (7): cls.predictions.bias" in done.out
    head = "qa_outputs" if folder == "questions" else "classifier"
    assert f"initialised (2): {head}.weight, {head}.bias" in done.out
    stored = load_file(run / "checkpoints" / "step-00000002" / "model.safetensors")
    for key, value in pretrained.bert.state_dict().items():
        assert torch.equal(stored[f"bert.{key}"], value), key
    known = json.loads((run / "resolved.json").read_text())
    assert known["places"]["model.vocabulary"] == str(tmp_path / "vocab.txt")
