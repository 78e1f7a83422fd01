"""Originals that also have a port made by hand in Ascend/ModelZoo-TensorFlow.

No rule of `jumar port` was written for them before their ports were scored (docs/results.md).
"""

import json
from pathlib import Path

import numpy as np

from checked_originals.case import Case, Generator, picture

WORDS = ("river", "stone", "light", "under", "seven", "walks", "green", "old", "house", "bird")


def sentences(number: int, generator: Generator) -> list[str]:
    lengths = generator.integers(3, 7, number)
    return [" ".join(generator.choice(WORDS, length)) for length in lengths]


def am3_data(tree: Path, generator: Generator) -> None:
    folder = tree / "mini-imagenet"
    folder.mkdir()
    classes, shots = 6, 8
    images = generator.integers(0, 256, (classes * shots, 84, 84, 3), dtype=np.uint8)
    targets = np.repeat(np.arange(classes), shots)
    np.savez(folder / "few-shot-train.npz", features=images, targets=targets)
    words = generator.normal(size=(classes, 300)).astype(np.float32)
    np.savez(folder / "few-shot-wordemb-train.npz", features=words)


def albert_data(tree: Path, generator: Generator) -> None:
    documents = ["\n".join(sentences(20, generator)) for _ in range(6)]
    (tree / "text.txt").write_text("\n\n".join(documents) + "\n")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (tree / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    config = {
        "attention_probs_dropout_prob": 0.1,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "embedding_size": 8,
        "hidden_size": 16,
        "initializer_range": 0.02,
        "intermediate_size": 32,
        "max_position_embeddings": 64,
        "num_attention_heads": 2,
        "num_hidden_layers": 2,
        "num_hidden_groups": 1,
        "net_structure_type": 0,
        "gap_size": 0,
        "num_memory_blocks": 0,
        "inner_group_num": 1,
        "down_scale_factor": 1,
        "type_vocab_size": 2,
        "vocab_size": len(vocabulary),
    }
    (tree / "config.json").write_text(json.dumps(config))


def pixelcnn_data(tree: Path, generator: Generator) -> None:
    for part, number in (("train", 24), ("valid", 4)):
        for index in range(number):
            folder = tree / "pictures" / "small_imagenet" / f"{part}_32x32"
            picture(folder / f"{index}.png", 32, generator)


def thumt_data(tree: Path, generator: Generator) -> None:
    for language in ("source", "target"):
        lines = sentences(40, generator)
        (tree / f"{language}.txt").write_text("\n".join(lines) + "\n")
        (tree / f"{language}.vocab").write_text("\n".join(("<pad>", "<eos>", "<unk>", *WORDS)))


def insightface_data(tree: Path, generator: Generator) -> None:
    for person in range(4):
        for index in range(4):
            picture(tree / "faces" / f"{person}" / f"{index}.png", 32, generator)
    config = {
        "backbone_type": "resnet_v2_m_50",
        "loss_type": "arcface",
        "out_type": "E",
        "image_size": 32,
        "embd_size": 16,
        "class_num": 4,
        "bn_decay": 0.9,
        "keep_prob": 0.4,
        "weight_decay": 5e-4,
        "logits_scale": 64.0,
        "logits_margin": 0.5,
        "momentum": 0.9,
        "val_bn_train": False,
        "augment_flag": True,
        "augment_margin": 4,
        "gpu_num": 1,
        "batch_size": 4,
        "epoch_num": 1,
        "step_per_epoch": 20,
        "val_freq": 1000,
        "lr_steps": [40, 60, 80],
        "lr_values": [0.004, 0.002, 0.0012, 0.0004],
        "pretrained_model": "",
        "train_data": ["faces.tfrecord"],
        "val_data": {},
        "output_dir": "./output",
    }
    # The original reads YAML, of which JSON is a part.
    (tree / "configs" / "tiny.yaml").write_text(json.dumps(config))


def faceboxes_data(tree: Path, generator: Generator) -> None:
    (tree / "data").mkdir()
    (tree / "annotations").mkdir()
    for index in range(4):
        name = f"{index}.jpg"
        picture(tree / "pictures" / name, 256, generator)
        corner = 20 + 10 * index
        box = {"xmin": corner, "ymin": corner, "xmax": corner + 96, "ymax": corner + 96}
        annotation = {
            "object": [{"bndbox": box, "name": "face"}],
            "filename": name,
            "size": {"depth": 3, "width": 256, "height": 256},
        }
        (tree / "annotations" / f"{index}.json").write_text(json.dumps(annotation))
    config = json.loads((tree / "config.json").read_text())
    config["input_pipeline_params"] |= {
        "image_size": [256, 256],
        "batch_size": 2,
        "train_dataset": "data/shards/",
        "val_dataset": "data/shards/",
        "num_steps": 20,
    }
    (tree / "config.json").write_text(json.dumps(config))


CASES = {
    "am3": Case(
        make_data=am3_data,
        command="AM3_TADAM.py --data_dir mini-imagenet --num_filters 1 --block_size_growth 8 "
        "--num_units_in_block 1 --train_batch_size 4 --num_shots_train 1 --num_classes_train 5 "
        "--num_tasks_per_batch 1 "
        "--number_of_steps 20 --eval_interval_steps 0 --eval_interval_fine_steps 0 --log_dir logs",
        steps=5,
    ),
    "albert": Case(
        make_data=albert_data,
        package="albert",
        prepare="-m albert.create_pretraining_data --input_file=text.txt "
        "--output_file=data.tfrecord --vocab_file=vocab.txt --max_seq_length=32 "
        "--max_predictions_per_seq=5 --random_seed=1 --dupe_factor=2",
        command="-m albert.run_pretraining --input_file=data.tfrecord --output_dir=out "
        "--do_train=True --albert_config_file=config.json --train_batch_size=2 "
        "--max_seq_length=32 --max_predictions_per_seq=5 --num_train_steps=20 "
        "--num_warmup_steps=2 --learning_rate=2e-3",
        steps=5,
    ),
    "pixelcnn": Case(
        make_data=pixelcnn_data,
        command="train.py --data_set imagenet --data_dir pictures --save_dir save --nr_gpu 1 "
        "--nr_resnet 1 --nr_filters 8 --nr_logistic_mix 2 --batch_size 2 --init_batch_size 4",
        steps=5,
    ),
    "thumt": Case(
        make_data=thumt_data,
        command="-m thumt.bin.trainer --input source.txt target.txt "
        "--vocabulary source.vocab target.vocab --output out --model transformer "
        "--parameters=batch_size=64,hidden_size=16,filter_size=32,num_heads=2,"
        "num_encoder_layers=1,num_decoder_layers=1,train_steps=20,warmup_steps=4",
        steps=5,
    ),
    "insightface": Case(
        make_data=insightface_data,
        prepare="data/generateTFRecord.py --mode folders --image_size 32 --read_dir faces "
        "--save_path faces.tfrecord",
        command="train_softmax.py --config_path configs/tiny.yaml",
        steps=5,
    ),
    "faceboxes": Case(
        make_data=faceboxes_data,
        prepare="create_tfrecords.py --image_dir pictures --annotations_dir annotations "
        "--output data/shards --num_shards 1",
        command="train.py",
        steps=5,
    ),
}
