"""BERT's names, forth and back, without a network."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from jumar.models.bert.names import tf_names
from jumar.weights.bundle_writer import write_bundle
from jumar.weights.tensor_bundle import open_checkpoint
from tests.cli.in_process import here


@pytest.fixture(scope="module")
def tiny(shared: Path) -> Path:
    return shared / "data" / "pretrained" / "bert-tiny-ckpt"


def test_published_checkpoint_round_trips(tiny: Path, tmp_path: Path) -> None:
    done = here("weights", "import", "bert", tiny, "--to", "b.safetensors", cwd=tmp_path)
    assert "46 of 46 weights of bert, step 20" in done.out
    assert "not weights (93)" in done.out
    theirs, ours = open_checkpoint(tiny), load_file(tmp_path / "b.safetensors")
    assert len(ours) + 93 == len(theirs.names())
    query = theirs.read("bert/encoder/layer_1/attention/self/query/kernel")
    np.testing.assert_array_equal(
        ours["bert.encoder.layer.1.attention.self.query.weight"].numpy(), query.T
    )
    head = theirs.read("cls/seq_relationship/output_weights")
    np.testing.assert_array_equal(ours["cls.seq_relationship.weight"].numpy(), head)
    out = ("--to", "tf1", "--recipe", "bert", "--out", "tf/bert")
    here("weights", "export", "b.safetensors", *out, cwd=tmp_path)
    again = open_checkpoint(tmp_path / "tf")
    assert len(again.names()) == 47
    for name in again.names():
        if name != "global_step":
            np.testing.assert_array_equal(again.read(name), theirs.read(name), err_msg=name)


def test_bare_network_import_must_be_safetensors(tiny: Path, tmp_path: Path) -> None:
    done = here("weights", "import", "bert", tiny, "--to", "run", cwd=tmp_path, code=2)
    assert "ends in .safetensors" in done.message


def test_missing_bias_of_a_layer_is_detected(tiny: Path, tmp_path: Path) -> None:
    theirs = open_checkpoint(tiny)
    left_out = "bert/encoder/layer_0/output/dense/bias"
    write_bundle(
        tmp_path / "cut", {name: theirs.read(name) for name in theirs.names() if name != left_out}
    )
    done = here("weights", "import", "bert", "cut", "--to", "b.safetensors", cwd=tmp_path, code=2)
    assert f"missing in the file (1): {left_out} for bert.encoder.layer.0.output" in done.message


def test_nezha_has_no_position_table_and_heads_exist_if_named() -> None:
    base = ["bert/embeddings/word_embeddings", "bert/encoder/layer_11/output/dense/bias"]
    names = [v.name for v in tf_names(base).variables]
    assert not any("position" in name or "cls" in name for name in names)
    heads = ["output_weights", "cls/squad/output_bias", "bert/pooler/dense/kernel"]
    more = {v.tf_name: v.name for v in tf_names([*base, *heads]).variables}
    assert more["output_bias"] == "classifier.bias"
    assert more["cls/squad/output_weights"] == "qa_outputs.weight"
    assert more["bert/pooler/dense/bias"] == "bert.pooler.dense.bias"
    assert len(more) == len(names) + 6
    back = tf_names(variable.name for variable in tf_names([*base, *heads]).variables)
    assert {v.tf_name: v.name for v in back.variables} == more
