"""Runs of BERT and NEZHA that take a second each, in a folder of `write_texts`."""

from pathlib import Path

from tests.cli.in_process import here

FINE_TUNED = {"bert-classify": "sentences", "bert-ner": "tags", "bert-reading": "questions"}
"""Recipes and their data."""


def fine_tune(folder: Path, name: str, *more: str, steps: int = 60) -> None:
    """Train a recipe into a run of its name."""
    data = FINE_TUNED[name]
    reading = ("data.max_query_length=2", "data.doc_stride=2")
    settings = (
        f"data.path={data}",
        "data.max_seq_length=12",
        *(reading if data == "questions" else ()),
        "optimizer.learning_rate=0.0005",
    )
    _train(folder, name, (*settings, *more), steps)


def pretrain(folder: Path, name: str, *more: str, steps: int = 3) -> None:
    """Pre-train a recipe on `documents.txt` into a run of its name."""
    arguments = ("--vocab", "vocab.txt", "--to", "instances", "--shards", "1", "--workers", "1")
    if not (folder / "instances").exists():
        short = ("--max-seq-length", "16", "--max-predictions-per-seq", "3")
        here("data", "pretraining", "documents.txt", *arguments, *short, cwd=folder)
    _train(folder, name, ("data.path=instances", "model.max_positions=16", *more), steps)


def _train(folder: Path, name: str, more: tuple[str, ...], steps: int) -> None:
    settings = (
        "model.size=bert-tiny",
        "model.vocabulary=vocab.txt",
        "model.hidden_dropout=0",
        "model.attention_dropout=0",
        "data.batch_size=8",
        "data.workers=0",
        f"training.duration={steps}it",
        "training.evaluate_every=",
        *more,
    )
    fields = [text for setting in settings for text in ("--set", setting)]
    here("train", name, "--device", "cpu", "--run-dir", name, *fields, cwd=folder)
