"""Frozen graphs with a run's weights: TensorFlow answers as jumar does."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from jumar.weights.frozen_graph import read_constants
from tests.cli.in_process import Done, here
from tests.tensorflow115 import run_tensorflow, tensorflow_python

ANSWERS = """
graph, *clips = sys.argv[1:]
definition = tf.GraphDef()
definition.ParseFromString(open(graph, "rb").read())
tf.import_graph_def(definition, name="")
from tensorflow.contrib.framework.python.ops import audio_ops
with tf.Session() as session:
    answer([
        session.run("labels_softmax:0", {"wav_data:0": open(clip, "rb").read()})[0].tolist()
        for clip in clips
    ])
"""


@pytest.fixture(scope="module")
def published(shared: Path) -> Path:
    return shared / "data" / "pretrained" / "ml-kws"


@pytest.fixture(scope="module")
def weights(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Those of the published network, each a little changed."""
    place = tmp_path_factory.mktemp("changed")
    graph = published / "DS_CNN_S.pb"
    here("weights", "import", "ds-cnn-s", graph, "--to", "run", cwd=place)
    (stored,) = (place / "run" / "checkpoints").glob("*/model.safetensors")
    random = torch.Generator().manual_seed(1)
    changed = {
        name: value * (1 + 0.05 * torch.rand(value.shape, generator=random))
        if value.is_floating_point()
        else value
        for name, value in load_file(stored).items()
    }
    save_file(changed, place / "changed.safetensors")
    return place / "changed.safetensors"


def export(weights: Path, like: Path, out: str, cwd: Path, *more: str, code: int = 0) -> Done:
    options = ["--to", "frozen", "--like", like, "--out", out, "--recipe", "ds-cnn-s", *more]
    return here("weights", "export", weights, *options, cwd=cwd, code=code)


def test_frozen_graph_gets_only_new_weights(weights: Path, published: Path, tmp_path: Path) -> None:
    like = published / "DS_CNN_S.pb"
    done = export(weights, like, "new.pb", tmp_path)
    assert "47 weights of ds-cnn-s in a copy of" in done.out
    before, after = read_constants(like), read_constants(tmp_path / "new.pb")
    assert list(before) == list(after)
    changed = 0
    for name in before:
        assert before.entry(name) == after.entry(name)
        changed += not np.array_equal(before[name], after[name])
    assert changed == 47
    here(*("weights", "import", "ds-cnn-s", "new.pb", "--to", "again.safetensors"), cwd=tmp_path)
    again = load_file(tmp_path / "again.safetensors")
    ours = load_file(weights)
    assert all(torch.equal(again[name], ours[name]) for name in again)


def test_published_weights_reproduce_the_published_graph(published: Path, tmp_path: Path) -> None:
    like = published / "DS_CNN_S.pb"
    here("weights", "import", "ds-cnn-s", like, "--to", "run", cwd=tmp_path)
    done = here("weights", "export", "run", "--to", "frozen", "--like", like, cwd=tmp_path)
    (written,) = (tmp_path / "run" / "tf1").iterdir()
    assert f"written: run/tf1/{written.name}" in done.out
    assert written.read_bytes() == like.read_bytes()


@pytest.mark.slow
def test_tensorflow_predicts_like_jumar(weights: Path, published: Path, tmp_path: Path) -> None:
    tensorflow_python()
    export(weights, published / "DS_CNN_S.pb", "new.pb", tmp_path)
    clips = sorted((published / "samples").glob("*.wav"))
    theirs = run_tensorflow(ANSWERS, str(tmp_path / "new.pb"), *map(str, clips))
    assert np.ptp(theirs) > 0.5

    run = tmp_path / "run"
    here("weights", "import", "ds-cnn-s", "new.pb", "--to", run, cwd=tmp_path)
    done = here("predict", run, *clips, "--json", "--top", "12", cwd=tmp_path)
    labels = (published / "labels.txt").read_text().split()
    for row, expected in zip(json.loads(done.out)["results"], theirs, strict=True):
        message: dict[str, Any] = row["probabilities"]
        assert message.keys() == set(labels)
        ours = [message[label] for label in labels]
        assert np.allclose(ours, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ("DS_CNN_M.pb", "with a different shape"),
        ("CNN_S.pb", "missing in the graph (47)"),
        ("labels.txt", "is not a frozen TensorFlow graph"),
        ("none.pb", "there is no such file"),
    ],
)
def test_graph_of_another_network_is_refused_and_nothing_is_written(
    weights: Path, published: Path, tmp_path: Path, graph: str, message: str
) -> None:
    done = export(weights, published / graph, "new.pb", tmp_path, code=2)
    assert message in done.message
    assert list(tmp_path.iterdir()) == []


def test_existing_file_is_not_overwritten(weights: Path, published: Path, tmp_path: Path) -> None:
    like = tmp_path / "like.pb"
    shutil.copy(published / "DS_CNN_S.pb", like)
    done = export(weights, like, "like.pb", tmp_path, code=2)
    assert "already exists" in done.message
    assert like.read_bytes() == (published / "DS_CNN_S.pb").read_bytes()
    assert list(tmp_path.iterdir()) == [like]


def test_unwritable_destination_is_an_error_naming_it(
    weights: Path, published: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    done = export(weights, published / "DS_CNN_S.pb", "file/new.pb", tmp_path, code=2)
    assert "file/new.pb" in done.message
    done = export(weights, published / "DS_CNN_S.pb", f"{'n' * 300}.pb", tmp_path, code=2)
    assert "File name too long" in done.message


@pytest.mark.parametrize("options", [("--to", "frozen"), ("--to", "tf1", "--like", "a.pb")])
def test_frozen_graph_export_needs_a_template_graph(
    weights: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    done = here("weights", "export", weights, *options, cwd=tmp_path, code=2)
    assert "Use --to frozen --like GRAPH.pb" in done.message
