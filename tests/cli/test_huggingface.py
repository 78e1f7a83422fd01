"""Runs as Hugging Face folders, and vectors of texts."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer as FastTokenizer

from jumar.data.text.tokenizer import open_tokenizer
from tests.cli.in_process import here, train
from tests.cli.small_text_runs import FINE_TUNED, fine_tune, pretrain
from tests.recipes.small_data import write_texts

TEXT = "a B é d，中 xz"
STEPS = 20


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of each recipe, and next to each the folder exported from it."""
    folder = tmp_path_factory.mktemp("texts")
    write_texts(folder)
    for name in FINE_TUNED:
        fine_tune(folder, name, steps=STEPS)
    pretrain(folder, "bert-tiny", steps=STEPS)
    pretrain(folder, "nezha-base", "model.size=nezha-tiny")
    for name in (*FINE_TUNED, "bert-tiny", "nezha-base"):
        out = ("--out", f"{name}-exported")
        here("weights", "export", name, "--to", "huggingface", *out, cwd=folder)
    return folder


def config(place: Path, name: str) -> dict[str, Any]:
    return json.loads((place / f"{name}-exported" / "config.json").read_text())


def vectors(place: Path, name: str, *arguments: str) -> list[dict[str, Any]]:
    done = here("predict", name, *arguments, "--device", "cpu", cwd=place)
    return [json.loads(line) for line in done.out.splitlines()]


def test_exported_configuration_has_labels_and_answer_settings(place: Path) -> None:
    assert config(place, "bert-classify")["id2label"] == {"0": "0", "1": "1"}
    assert config(place, "bert-ner")["label2id"] == {"B-X": 0, "I-X": 1, "O": 2}
    reading = config(place, "bert-reading")["task_specific_params"]["question-answering"]
    assert reading["max_seq_len"] == 12
    assert reading["max_question_len"] == 2
    assert reading["max_answer_len"] == 30
    # Windows of 12 tokens, 2 of them the question and 3 special, begin 2 apart.
    assert reading["doc_stride"] == 12 - 2 - 3 - 2


def test_exported_tokenizer_matches_ours(place: Path) -> None:
    ours = open_tokenizer(place / "vocab.txt")
    theirs = FastTokenizer.from_file(str(place / "bert-ner-exported" / "tokenizer.json"))
    ids = [ours.vocabulary.id_of("[CLS]"), *ours.ids(TEXT), ours.vocabulary.id_of("[SEP]")]
    assert theirs.encode(TEXT).ids == ids
    exported = open_tokenizer(place / "bert-ner-exported")
    assert exported.ids(TEXT) == ours.ids(TEXT)
    assert exported.rules == ours.rules


@pytest.mark.parametrize("name", ["bert-tiny", "nezha-base"])
def test_training_starts_from_an_exported_folder_with_all_of_its_weights(
    place: Path, tmp_path: Path, name: str
) -> None:
    arguments = (f"transfer.start_from={name}-exported", f"model.size={name.split('-')[0]}-tiny")
    fields = [
        *arguments,
        "model.vocabulary=vocab.txt",
        "model.max_positions=16",
        "data.path=tags",
        "data.max_seq_length=12",
        "data.workers=0",
        "data.batch_size=8",
    ]
    flags = [text for field in fields for text in ("--set", field)]
    done = here(
        "train",
        "bert-ner",
        "--dry-run",
        "--run-dir",
        tmp_path / "run",
        "--device",
        "cpu",
        *flags,
        cwd=place,
    )
    assert "classifier.weight, classifier.bias" in done.out
    assert "bert.encoder" not in done.out


def test_nezha_weights_use_the_names_of_its_transformers_class(place: Path) -> None:
    assert config(place, "nezha-base")["architectures"] == ["NezhaForPreTraining"]
    weights = load_file(place / "nezha-base-exported" / "model.safetensors")
    assert "nezha.encoder.layer.1.output.dense.weight" in weights
    assert not any(name.startswith("bert.") or "position" in name for name in weights)


@pytest.mark.parametrize(
    ("name", "auto"),
    [
        ("bert-tiny", "AutoModelForPreTraining"),
        ("bert-classify", "AutoModelForSequenceClassification"),
        ("bert-ner", "AutoModelForTokenClassification"),
        ("bert-reading", "AutoModelForQuestionAnswering"),
        ("nezha-base", "AutoModelForPreTraining"),
    ],
)
def test_transformers_loads_every_weight_and_computes_the_same(
    place: Path, name: str, auto: str
) -> None:
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    if name == "nezha-base" and not hasattr(transformers, "NezhaForPreTraining"):
        pytest.skip("needs transformers 4, the last release with NEZHA")
    folder = place / f"{name}-exported"
    network, report = getattr(transformers, auto).from_pretrained(folder, output_loading_info=True)
    assert not any(report.values())
    batch = transformers.AutoTokenizer.from_pretrained(folder)(TEXT, return_tensors="pt")
    with torch.no_grad():
        hidden = network.eval()(**batch, output_hidden_states=True).hidden_states
    # nezha-base trains in mixed precision, and vectors are computed as the run is.
    exact = ("--set", "precision.mode=must_keep_origin_dtype")
    (line,) = vectors(place, name, "--features", "0,-1", "--text", TEXT, *exact)
    ours = torch.tensor(
        [[layer["values"] for layer in token["layers"]] for token in line["features"]]
    )
    torch.testing.assert_close(ours[:, 0], hidden[1][0], rtol=0, atol=1e-5)
    torch.testing.assert_close(ours[:, 1], hidden[-1][0], rtol=0, atol=1e-5)


def test_embeddings_cover_every_word_piece_of_texts_and_pairs(place: Path, tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("a b\tc\n\nd\n")
    lines = vectors(place, "nezha-base", "--features=-1,0", str(path))
    assert [line["linex_index"] for line in lines] == [0, 1]
    tokens = [[token["token"] for token in line["features"]] for line in lines]
    assert tokens == [["[CLS]", "a", "b", "[SEP]", "c", "[SEP]"], ["[CLS]", "d", "[SEP]"]]
    first = lines[0]["features"][1]["layers"]
    assert [layer["index"] for layer in first] == [-1, 0]
    assert len(first[0]["values"]) == 128
    (alone,) = vectors(place, "nezha-base", "--features", "-1", "--text", "d")
    expected = lines[1]["features"][1]["layers"][0]["values"]
    assert alone["features"][1]["layers"][0]["values"] == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--features", "2", "--text", "a"], "the network has no layer 2"),
        (["--features", "-3", "--text", "a"], "the network has no layer -3"),
        (["--features", "last", "--text", "a"], "'last' is not a list of layers"),
        (["--features", "-1", "sentences/dev.tsv"], "features need files with one text per line"),
        (["--features", "-1"], "a file is missing"),
    ],
)
def test_wrong_layers_and_files_are_refused(
    place: Path, arguments: list[str], message: str
) -> None:
    done = here("predict", "bert-tiny", *arguments, "--device", "cpu", cwd=place, code=2)
    assert message in done.message


def test_unexportable_models_are_refused_and_leave_no_files(place: Path, tmp_path: Path) -> None:
    export = ("weights", "export", place / "bert-ner", "--to", "huggingface", "--out")
    done = here(*export, place / "bert-ner-exported", cwd=place, code=2)
    assert "already exists" in done.message
    done = here(*export, tmp_path / "x", "--recipe", "bert-ner", cwd=place, code=2)
    assert "--recipe: cannot be used with --to huggingface" in done.message
    vocabulary = ("--set", f"model.vocabulary={tmp_path / 'none.txt'}")
    done = here(*export, tmp_path / "x", *vocabulary, cwd=place, code=2)
    assert "there is no such vocabulary" in done.message
    train("--run-dir", tmp_path / "pictures", cwd=tmp_path)
    other = ("weights", "export", tmp_path / "pictures", "--to", "huggingface")
    imports = ("--import", "tests.cli.small_recipe")
    done = here(*other, *imports, cwd=tmp_path, code=2)
    assert "Hugging Face has no class for" in done.message
    assert not list(tmp_path.glob("*x*"))
