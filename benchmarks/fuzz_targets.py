"""What `fuzz_readers.py` feeds: each reader of foreign files, with real files for it."""

import io
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from jumar.data.images.class_folders import DiskTree
from jumar.data.images.sources import open_source
from jumar.data.pixels.decode import DecodeError, decode_image
from jumar.data.polygons.label_files import read_labels
from jumar.data.records.example import decode_example
from jumar.data.records.tfrecord import index_records
from jumar.data.speech.wav import read_wav
from jumar.data.text.entity_files import read_tagged
from jumar.data.text.numbered_lines import Skipping
from jumar.data.text.reading_files import read_questions
from jumar.data.text.sentence_files import SentenceData, read_sentences
from jumar.data.text.tokenizer import open_tokenizer
from jumar.data.text.vocabulary import read_vocabulary
from jumar.experiments.run_reading import read_run
from jumar.experiments.sweep_plan import read_plan
from jumar.failures.reading.job import read_job
from jumar.failures.table import fault_table
from jumar.ground.errors import UserError
from jumar.launching.ranktables.reading import read_rank_table
from jumar.porting.edits import TreeReport
from jumar.porting.lint.linting import lint_tree
from jumar.porting.options import PortOptions
from jumar.porting.report.json_report import read_report, to_json
from jumar.porting.tree.porting import port_tree
from jumar.precision.dumps.cann_results import read_results
from jumar.precision.dumps.opening import open_dumps
from jumar.precision.dumps.tensor_files import read_npy
from jumar.precision.mixlist import load_mixlist
from jumar.profiling.reading import read
from jumar.training.checkpoint import read_checkpoint
from jumar.weights.tensor_files import open_tensors

LARGEST_SEED = 200_000


@dataclass(frozen=True, kw_only=True)
class Target:
    """A reader and real files for it.

    Attributes:
        read: Reads the file or, where a set of files belongs together, the folder.
        seeds: Sets of files: names and contents. One file of a set is damaged at a time.
        whole: Whether `read` gets the folder.
    """

    read: Callable[[Path], object]
    seeds: Sequence[Mapping[str, bytes]]
    whole: bool = False


def targets(data: Path) -> dict[str, Target]:
    """The readers, and what they are fed with.

    Args:
        data: The folder of reference data.
    """
    return {**_pictures(data), **_texts(data), **_tensors(data), **_profiles(data), **_ours()}


def _pictures(data: Path) -> dict[str, Target]:
    pixels = np.random.default_rng(0).integers(0, 256, (24, 30, 3), dtype=np.uint8)
    kinds = ("png", "jpeg", "bmp", "gif", "tiff", "webp")
    pictures = {f"{kind}.{kind}": _saved(Image.fromarray(pixels), kind) for kind in kinds}
    imagenet = "parity/formats/imagenet"
    return {
        "images": Target(
            read=lambda path: _refusing(
                DecodeError, lambda: decode_image(path.read_bytes(), fast=False)
            ),
            seeds=[{name: encoded} for name, encoded in pictures.items()],
        ),
        "zips": Target(read=_read_images, seeds=[{"a.zip": _zipped(pictures)}]),
        "TFRecord": Target(read=index_records, seeds=_files(data, "parity/formats/tfrecord/*")),
        "tf.Example": Target(
            read=lambda path: _refusing(ValueError, lambda: decode_example(path.read_bytes())),
            seeds=[{"example": _payload(next(iter(_folder(data / imagenet).values())))}],
        ),
        "image shards": Target(read=_read_images, seeds=[_folder(data / imagenet)], whole=True),
        "WAV": Target(
            read=lambda path: read_wav(path.read_bytes(), str(path)),
            seeds=_files(data, "pretrained/ml-kws/samples/*.wav"),
        ),
        "outlines": Target(
            read=lambda path: read_labels(
                DiskTree(path), sorted(inner.name for inner in path.iterdir())
            ),
            seeds=_LABELS,
            whole=True,
        ),
    }


def _texts(data: Path) -> dict[str, Target]:
    return {
        "vocabularies": Target(read=read_vocabulary, seeds=[{"vocab.txt": _VOCABULARY}]),
        "tokenizers": Target(
            read=open_tokenizer,
            seeds=[
                {
                    "vocab.txt": _VOCABULARY,
                    "tokenizer_config.json": b'{"do_lower_case": true, "model_max_length": 512}',
                }
            ],
            whole=True,
        ),
        "sentences": Target(
            read=lambda path: list(read_sentences(path, SentenceData(), _skipping())),
            seeds=_SENTENCES,
        ),
        "entities": Target(
            read=lambda path: list(read_tagged(path, _skipping())), seeds=[{"a.txt": _ENTITIES}]
        ),
        "questions": Target(
            read=lambda path: read_questions(path, _skipping()), seeds=[{"a.json": _QUESTIONS}]
        ),
        "logs": Target(
            read=lambda path: read_job([str(path)], fault_table()),
            seeds=_files(data, "logs/*/*", most=20),
        ),
        "scripts": Target(
            read=lambda path: port_tree(path, PortOptions(), jobs=1), seeds=[{"train.py": _SCRIPT}]
        ),
        "linted scripts": Target(read=lint_tree, seeds=[{"train.py": _SCRIPT}]),
    }


def _tensors(data: Path) -> dict[str, Target]:
    forms = data / "parity" / "formats" / "checkpoints"
    values = {"a": np.arange(6.0).reshape(2, 3), "b": np.arange(3)}
    return {
        "TensorFlow checkpoints": Target(
            read=_read_checkpoints,
            seeds=[_folder(forms / name) for name in ("single", "sharded", "partitioned")],
            whole=True,
        ),
        "frozen graphs": Target(
            read=_read_tensors, seeds=_files(data, "pretrained/ml-kws/DS_CNN_S.pb")
        ),
        "safetensors": Target(
            read=_read_tensors, seeds=[{"a.safetensors": safetensors_bytes(values)}]
        ),
        "npy": Target(read=read_npy, seeds=_files(data, "dumps/**/*.npy")),
        "dumps": Target(
            read=open_dumps,
            seeds=[_folder(data / "dumps" / "own" / name) for name in ("conv_L0", "nan_L1")],
            whole=True,
        ),
        "CANN results": Target(
            read=lambda path: read_results(next(path.iterdir())),
            seeds=_files(data, "dumps/**/result_*.csv"),
            whole=True,
        ),
    }


def _profiles(data: Path) -> dict[str, Target]:
    return {
        "profile tables": Target(read=read, seeds=_files(data, "msprof/**/*.csv", most=14)),
        "profile JSON": Target(read=read, seeds=_files(data, "msprof/**/*.json", most=14)),
        "profile databases": Target(read=read, seeds=_files(data, "msprof/**/*.db")),
        "profile folders": Target(
            read=read, seeds=[_folder(data / "msprof" / "mindspore_r1_2021")], whole=True
        ),
    }


def _ours() -> dict[str, Target]:
    run = _small_run()
    report = json.dumps(to_json(_ported())).encode()
    return {
        "op lists": Target(read=load_mixlist, seeds=[{"ops_info.json": _OP_LIST}]),
        "rank tables": Target(read=read_rank_table, seeds=[{"hccl.json": _RANK_TABLE}]),
        "port reports": Target(read=read_report, seeds=[{"port.json": report}]),
        "runs": Target(read=read_run, seeds=[run], whole=True),
        "checkpoints": Target(
            read=lambda path: read_checkpoint(next((path / "checkpoints").iterdir())),
            seeds=[{name: text for name, text in run.items() if name.startswith("checkpoints/")}],
            whole=True,
        ),
        "sweeps": Target(read=read_plan, seeds=[{"sweep.json": _SWEEP}], whole=True),
    }


def _skipping() -> Skipping:
    return Skipping(10**9, lambda _: None)


def _refusing(expected: type[Exception], read_it: Callable[[], object]) -> None:
    """Read, where a caller turns an error of the reader's own into a user's."""
    try:
        read_it()
    except expected as error:
        raise UserError(str(error)) from error


def _read_images(path: Path) -> None:
    source = open_source(str(path), "train")
    for index in range(len(source)):
        source.read(index)


def _read_tensors(path: Path) -> None:
    tensors = open_tensors(path)
    for name in tensors.names()[:50]:
        tensors.entry(name)
        tensors.read(name)


def _read_checkpoints(folder: Path) -> None:
    for index in sorted(folder.glob("*.index")):
        _read_tensors(index.with_suffix(""))


def _files(data: Path, pattern: str, *, most: int = 6) -> list[dict[str, bytes]]:
    """Small files, each a set of its own."""
    paths = [path for path in sorted(data.glob(pattern)) if path.is_file()]
    small = [path for path in paths if 0 < path.stat().st_size <= LARGEST_SEED]
    if not small:
        raise FileNotFoundError(f"no small file below {data} is like {pattern}")
    return [{path.name: path.read_bytes()} for path in small[:: len(small) // most + 1]]


def _folder(folder: Path) -> dict[str, bytes]:
    """The small files of a folder as one set."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in paths
        if path.stat().st_size <= LARGEST_SEED
    }


def _saved(image: Image.Image, kind: str) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind)
    return stream.getvalue()


def _zipped(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(f"train/cat/{name}", data)
    return stream.getvalue()


def _payload(shard: bytes) -> bytes:
    """The first record of a TFRecord file."""
    return shard[12 : 12 + int.from_bytes(shard[:8], "little")]


def safetensors_bytes(
    values: Mapping[str, "np.ndarray[tuple[int, ...], np.dtype[np.generic]]"],
) -> bytes:
    """Arrays in the form of safetensors."""
    from safetensors.numpy import save

    return save(dict(values))


def _ported() -> TreeReport:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "train.py"
        script.write_bytes(_SCRIPT)
        return port_tree(script, PortOptions(), jobs=1)


def _small_run() -> dict[str, bytes]:
    """The small files of a run of two steps."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = ["-m", "jumar", "train", "alexnet-demo", "--device", "cpu", "--run-dir", str(run)]
        settings = ["training.duration=2it", "data.workers=0"]
        options = [word for setting in settings for word in ("--set", setting)]
        subprocess.run([sys.executable, *command, *options], check=True, capture_output=True)
        return _folder(run)


_LABELS = (
    {
        "gt_1.txt": b"1,2,30,2,30,20,1,20,word\n5,5,9,5,9,9,5,9,###\n",
        "gt_2.txt": b"0,0,30,2,30,20,1,20,other words\n",
    },
    {
        "a.json": json.dumps(
            {
                "gt_1": [
                    {
                        "points": [[1, 2], [30, 2], [30, 20]],
                        "illegibility": False,
                        "transcription": "word",
                    }
                ]
            }
        ).encode()
    },
    {
        "poly_gt_1.txt": b"x: [[115 503 494 115]], y: [[322 346 426 404]], ornt: [u'm'], "
        b"transcriptions: [u'nauGHTY']\n"
    },
)
_VOCABULARY = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n的\n张\nhouse\n##s\n".encode()
_SENTENCES = (
    {"train.tsv": "label\ttext_a\n1\t房间很好\n0\t太失望了\n".encode() * 2},
    {"train.json": '{"sentence1": "好", "sentence2": "不错", "label": "1"}\n'.encode() * 4},
)
_ENTITIES = "张 B-NAME\n伟 E-NAME\n， O\n\n男 O\n".encode() * 3
_QUESTIONS = json.dumps(
    {
        "version": "v1",
        "data": [
            {
                "title": "t",
                "paragraphs": [
                    {
                        "id": "P",
                        "context": "范廷颂枢机，圣名保禄",
                        "qas": [
                            {
                                "question": "圣名？",
                                "id": "Q",
                                "answers": [{"text": "保禄", "answer_start": 8}],
                            }
                        ],
                    }
                ],
            }
        ],
    }
).encode()
_OP_LIST = json.dumps(
    {"black-list": {"to-add": ["Softmax"]}, "white-list": {"to-remove": ["Add"]}}
).encode()
_RANK_TABLE = json.dumps(
    {
        "version": "1.0",
        "server_count": "1",
        "status": "completed",
        "server_list": [
            {
                "server_id": "10.0.0.1",
                "device": [
                    {"device_id": "0", "device_ip": "192.168.1.1", "rank_id": "0"},
                    {"device_id": "1", "device_ip": "192.168.1.2", "rank_id": "1"},
                ],
            }
        ],
    }
).encode()
_SWEEP = json.dumps(
    {
        "recipe": "alexnet-demo",
        "vary": ["seed=1,2"],
        "common": [],
        "baseline": [],
        "repeats": 1,
        "runs": [{"name": "seed=1", "settings": ["seed=1"], "group": ["seed=1"], "repeat": 0}],
    }
).encode()
_SCRIPT = b"""import argparse
import tensorflow as tf
import horovod.tensorflow as hvd

flags = tf.app.flags
flags.DEFINE_integer("batch", 32, "batch")
FLAGS = flags.FLAGS


def model(x, training):
    x = tf.layers.dense(x, 10, activation=tf.nn.relu)
    x = tf.nn.dropout(x, keep_prob=0.8 if training else 1.0)
    return tf.layers.dense(x, 2)


def main(_):
    hvd.init()
    data = tf.data.Dataset.from_tensor_slices((xs, ys)).shard(hvd.size(), hvd.rank())
    x, y = data.batch(FLAGS.batch).make_one_shot_iterator().get_next()
    loss = tf.losses.sparse_softmax_cross_entropy(y, model(x, True))
    optimizer = hvd.DistributedOptimizer(tf.train.AdamOptimizer(1e-3))
    step = optimizer.minimize(loss)
    config = tf.ConfigProto(allow_soft_placement=True)
    config.gpu_options.allow_growth = True
    with tf.Session(config=config) as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(100):
            _, value = sess.run([step, loss])
            print(i, value)


if __name__ == "__main__":
    tf.app.run()
"""
