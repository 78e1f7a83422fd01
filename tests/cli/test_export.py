"""`jumar export`: files that other programs run, and what is refused."""

import json
import os
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from tokenizers import Tokenizer as FastTokenizer

from jumar.ground.errors import UserError
from jumar.runs.exporting.targets import kind_of
from jumar.runs.open_trained import TrainedRequest, open_trained
from tests.cli.in_process import here, settings
from tests.cli.small_text_runs import fine_tune
from tests.recipes.small_data import write_signs, write_texts

OWN = ("--import", "tests.cli.exported_recipes")
DETECTOR = settings(
    model__backbone="resnet18",
    model__backbone_width=4,
    model__width=4,
    data__path="signs",
    data__image_size=32,
    data__batch_size=2,
    data__workers=0,
    training__duration="1it",
    training__evaluate_every="",
)
CODES = settings(model__width=8, training__duration="1it", training__evaluate_every="")
SMALL_BERT = ("model.hidden_size=16", "model.num_layers=1", "model.num_heads=2")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of a text head, a detector and a VQ-VAE."""
    folder = tmp_path_factory.mktemp("exported")
    write_texts(folder)
    write_signs(folder / "signs")
    fine_tune(folder, "bert-classify", *SMALL_BERT, "training.ema_decay=0.5", steps=12)
    where = ("--device", "cpu", "--run-dir")
    here("train", "psenet-small", *where, "signs-run", *DETECTOR, cwd=folder)
    here("train", "vqvae-mnist", *where, "codes", *CODES, cwd=folder)
    return folder


def session(path: Path) -> Any:
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def test_exported_text_head_predicts_without_jumar_at_any_length(place: Path) -> None:
    done = here("export", "bert-classify", "--to", "text.onnx", cwd=place)
    assert "on inputs of the run's data" in done.out
    assert "logits 3x2" in done.out
    assert "logits 1x2" in done.out
    tokenizer = FastTokenizer.from_file(str(place / "text.onnx.tokenizer" / "tokenizer.json"))
    tokenizer.enable_padding(pad_id=0)
    texts = ["a b c d e f x", "g", "c c a y"]
    encoded = tokenizer.encode_batch(texts)
    network = session(place / "text.onnx")
    facts = network.get_modelmeta().custom_metadata_map
    labels = json.loads(facts["labels"])
    (logits,) = network.run(
        None,
        {
            "input_ids": np.array([each.ids for each in encoded]),
            "segment_ids": np.array([each.type_ids for each in encoded]),
            "input_mask": np.array([each.attention_mask for each in encoded]),
        },
    )
    weights = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    given = [text for each in texts for text in ("--text", each)]
    predicted = here("predict", "bert-classify", *given, "--device", "cpu", "--json", cwd=place)
    for result, row in zip(json.loads(predicted.out)["results"], weights, strict=True):
        assert result["probabilities"] == pytest.approx(
            dict(zip(labels, row.tolist(), strict=True)), abs=1e-5
        )


def test_onnx_file_reveals_nothing_about_the_machine_and_suits_atc(place: Path) -> None:
    if not (place / "text.onnx").exists():
        here("export", "bert-classify", "--to", "text.onnx", cwd=place)
    content = (place / "text.onnx").read_bytes()
    for word in (str(Path.home()), "site-packages", "jumar/", ".py"):
        assert word.encode() not in content
    model = onnx.load_from_string(content)
    assert (model.ir_version, model.opset_import[0].version) == (8, 18)
    shape = [dim.dim_param for dim in model.graph.input[0].type.tensor_type.shape.dim]
    assert shape == ["batch", "length"]


def test_detector_with_fixed_sides_gives_equal_maps_for_any_batch_size(place: Path) -> None:
    sides = ("--fix", "height=64", "--fix", "width=64")
    to = ("--to", "signs.onnx", "--soc-version", "Ascend310P3")
    done = here("export", "signs-run", *to, *sides, cwd=place)
    assert "kernels 2x6x16x16" in done.out  # there are two images to score
    network = session(place / "signs.onnx")
    assert network.get_inputs()[0].shape == ["batch", 3, 64, 64]
    assert network.get_outputs()[0].shape == ["batch", 6, 16, 16]
    trained = open_trained(TrainedRequest(run_dir=place / "signs-run", device="cpu"))
    trained.policy.close()
    images = 255 * torch.rand(5, 3, 64, 64, generator=torch.Generator().manual_seed(4))
    with torch.no_grad():
        expected = trained.model(images).numpy()
    (given,) = network.run(None, {"image": images.numpy()})
    np.testing.assert_allclose(given, expected, rtol=0, atol=1e-3)
    facts = json.loads((place / "signs.onnx.json").read_text())
    assert facts["postprocessing"]["threshold"] == trained.recipe.reading.threshold
    assert facts["checked"]["inputs"] == "inputs of the run's data"


@pytest.mark.parametrize("run", ["bert-classify", "signs-run", "codes --part encoder"])
def test_exported_file_is_checked_on_training_data_if_there_is_no_evaluation_data(
    place: Path, run: str
) -> None:
    to = ("--to", f"{run.split()[0]}-trained.onnx", *settings(data__eval_path="none"))
    done = here("export", *run.split(), *to, cwd=place)
    assert "on inputs of the run's data" in done.out
    assert " 3x" in done.out or " 2x" in done.out  # as many samples as a batch of the data has


def test_pt2_file_needs_only_torch_and_contains_no_pickle(place: Path) -> None:
    done = here("export", "codes", "--part", "decoder", "--to", "codes.pt2", cwd=place)
    assert "image 1x1x24x24" in done.out
    with zipfile.ZipFile(place / "codes.pt2") as archive:
        names = archive.namelist()
        contents = b"".join(archive.read(name) for name in names)
    assert not [name for name in names if name.endswith((".pkl", ".pickle"))]
    for word in (str(Path.home()), "site-packages", ".py"):
        assert word.encode() not in contents
    program = torch.export.load(str(place / "codes.pt2"))
    assert not [name for name in program.state_dict if "encoder" in name]
    image = program.module()(torch.zeros(2, 4, 5, dtype=torch.int64))
    assert image.shape == (2, 1, 32, 40)


def test_averaged_weights_are_exported_unless_raw_ones_are_requested(place: Path) -> None:
    here("export", "bert-classify", "--to", "averages.safetensors", cwd=place)
    here("export", "bert-classify", "--to", "weights.safetensors", "--no-ema", cwd=place)
    checkpoint = max((place / "bert-classify" / "checkpoints").iterdir())
    for name, stored in (("averages", "ema"), ("weights", "model")):
        given = load_file(place / f"{name}.safetensors")
        expected = load_file(checkpoint / f"{stored}.safetensors")
        assert given.keys() == expected.keys()
        assert all(torch.equal(given[key], expected[key]) for key in given)
    with safe_open(place / "averages.safetensors", "pt") as file:  # pyright: ignore
        metadata = file.metadata()
    assert metadata["recipe"] == "bert-classify"
    assert (metadata["step"], metadata["weights"]) == ("12", "averages")
    assert json.loads(metadata["labels"]) == ["0", "1"]


def test_tensorflow_and_hugging_face_are_written_as_by_weights_export(place: Path) -> None:
    assert "written: codes/tf1/model.ckpt-1" in here("export", "codes", "--to", "tf", cwd=place).out
    names = here("weights", "show", "codes/tf1", cwd=place).out
    assert "train/params/dec/tconv2d_1/b" in names
    here("export", "bert-classify", "--to", "folder", cwd=place)
    config = json.loads((place / "folder" / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("codes --to x.onnx", "Write --part encoder or --part decoder."),
        ("codes --to x.onnx --part generator", "has no part 'generator'"),
        ("codes --to x.pt2 --part decoder --fix depth=3", "unknown axis 'depth'"),
        (
            "codes --to x.pt2 --part decoder --fix height",
            "'height' is not the length of an axis",
        ),
        ("signs-run --to x.onnx --fix height=100", "height cannot be 100 The network accepts at"),
        ("bert-classify --to x.onnx --fix length=600", "length cannot be 600"),
        ("codes --to folder2", "Possible for it: FILE.onnx, FILE.pt2, FILE.safetensors, tf."),
        ("codes --to tf --no-ema", "--no-ema"),
        ("codes --to tf --overwrite", "--overwrite: is not for --to tf"),
        ("codes --to x.pt2 --part decoder --soc-version Ascend910B1", "--soc-version"),
        ("nowhere --to x.onnx", "there is no such run directory"),
        ("signs --to x.onnx", "is not a run directory"),
        ("codes --to vocab.txt/x.safetensors", "is not a folder"),
        ("codes --to x.onnx --part decoder --checkpoint 7", "7"),
    ],
)
def test_impossible_exports_are_refused_and_leave_no_files(
    place: Path, arguments: str, message: str
) -> None:
    before = sorted(place.rglob("*"))
    done = here("export", *arguments.split(), cwd=place, code=2)
    assert message in done.message
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.om", "--to a.onnx"),
        ("a.pb", "jumar weights export run --to frozen --like GRAPH.pb --out a.pb"),
        ("a.pth", "--to a.pt2"),
        ("a.txt", "Possible: FILE.onnx"),
    ],
)
def test_other_file_types_are_refused_with_the_supported_ones(name: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        kind_of(Path(name), Path("run"))
    assert message in str(caught.value)


def test_exported_file_with_wrong_outputs_is_not_kept(place: Path) -> None:
    here("train", "wavering", *OWN, "--device", "cpu", "--run-dir", "wavering", cwd=place)
    before = sorted(place.rglob("*"))
    done = here("export", "wavering", *OWN, "--to", "new/x.onnx", cwd=place, code=2)
    assert "does not compute the same as the network" in done.message
    assert "largest difference 0.01" in done.message
    assert sorted(place.rglob("*")) == before


def test_network_that_cannot_be_traced_is_refused(place: Path) -> None:
    here("train", "undecided", *OWN, "--device", "cpu", "--run-dir", "undecided", cwd=place)
    done = here("export", "undecided", *OWN, "--to", "x.onnx", cwd=place, code=2)
    assert "cannot export this network" in done.message
    assert "--to FILE.safetensors" in done.message


def test_files_are_replaced_only_on_request(place: Path) -> None:
    (place / "taken.onnx.json").write_text("mine")
    command = ("export", "codes", "--part", "encoder", "--to", "taken.onnx")
    assert "taken.onnx.json: already exists" in here(*command, cwd=place, code=2).message
    assert not (place / "taken.onnx").exists()
    here(*command, "--overwrite", cwd=place)
    assert json.loads((place / "taken.onnx.json").read_text())["part"] == "encoder"


def test_run_with_missing_data_is_checked_on_random_inputs(place: Path, tmp_path: Path) -> None:
    gone = ("--set", f"data.path={tmp_path / 'gone'}")
    done = here("export", "codes", "--part", "encoder", "--to", "gone.onnx", *gone, cwd=place)
    assert "made-up inputs, as the run's data cannot be used" in done.out
    assert "codes 1x3x3: 0 % of the codes differ" in done.out


def test_script_passes_its_options_to_atc(place: Path, tmp_path: Path) -> None:
    if not (place / "text.atc.sh").exists():
        here("export", "bert-classify", "--to", "text.onnx", cwd=place)
    atc = tmp_path / "atc"
    atc.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    atc.chmod(0o755)
    chosen = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SOC_VERSION": "Ascend910B1"}
    done = subprocess.run(
        ["sh", place / "text.atc.sh"],
        env={**os.environ, **chosen, "LENGTH": "10"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "--framework=5",
        "--model=text.onnx",
        "--output=text",
        "--input_shape=input_ids:1,10;segment_ids:1,10;input_mask:1,10",
        "--soc_version=Ascend910B1",
        "--precision_mode_v2=origin",
    ]
