"""The six originals that `port check` was first measured on."""

import json
import re
import wave
from pathlib import Path

import numpy as np

from checked_originals.case import Case, Generator, picture

SAMPLE_RATE_HZ = 16000


def biggan_data(tree: Path, generator: Generator) -> None:
    for index in range(4):
        picture(tree / "dataset" / "tiny" / f"{index}.jpg", 128, generator)


def nlrn_data(tree: Path, generator: Generator) -> None:
    names = [f"data/{index}.png" for index in range(4)]
    for name in names:
        picture(tree / name, 48, generator, mode="L")
    (tree / "data" / "train.flist").write_text("".join(f"{name}\n" for name in names))


def videnn_data(tree: Path, generator: Generator) -> None:
    data = tree / "Spatial-CNN" / "data"
    (data / "train").mkdir(parents=True)
    clean = generator.integers(0, 256, (12, 16, 16, 3), dtype=np.uint8)
    noisy = np.clip(clean + generator.normal(0, 20, clean.shape), 0, 255).astype(np.uint8)
    np.save(data / "train" / "img_clean_pats.npy", clean)
    np.save(data / "train" / "img_noisy_pats.npy", noisy)
    for name in ("noisy", "original"):
        picture(data / "test" / name / "0.png", 24, generator)


def kws_data(tree: Path, generator: Generator) -> None:
    speech = tree / "speech"
    for number, word in enumerate(("yes", "no", "up", "bed")):
        for speaker in range(8):
            time = np.arange(SAMPLE_RATE_HZ) / SAMPLE_RATE_HZ
            tone = 8000 * np.sin(2 * np.pi * (200 + 150 * number + 40 * speaker) * time)
            sound = tone + generator.normal(0, 500, SAMPLE_RATE_HZ)
            clip(speech / word / f"{speaker:08x}_nohash_0.wav", sound)
    clip(speech / "_background_noise_" / "noise.wav", generator.normal(0, 500, 2 * SAMPLE_RATE_HZ))


def nmt_data(_tree: Path, _generator: Generator) -> None:
    """Nothing: sentences and vocabularies of its own tests are in the repository."""


def bert_data(tree: Path, _generator: Generator) -> None:
    text = (tree / "sample_text.txt").read_text(encoding="utf-8").lower()
    words = sorted(set(re.findall(r"[a-z]+|[^\sa-z]", text)))[:3000]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (tree / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    config = {
        "attention_probs_dropout_prob": 0.1,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": 16,
        "initializer_range": 0.02,
        "intermediate_size": 32,
        "max_position_embeddings": 64,
        "num_attention_heads": 2,
        "num_hidden_layers": 2,
        "type_vocab_size": 2,
        "vocab_size": len(vocabulary),
    }
    (tree / "config.json").write_text(json.dumps(config))


def clip(path: Path, sound: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE_HZ)
        file.writeframes(sound.astype("<i2").tobytes())


CASES = {
    "biggan": Case(
        make_data=biggan_data,
        command="main.py --phase train --dataset tiny --img_size 128 --batch_size 2 --ch 8 "
        "--epoch 1 --iteration 10",
        steps=4,
    ),
    "nlrn": Case(
        make_data=nlrn_data,
        command="trainer.py --dataset denoise --train-flist data/train.flist "
        "--eval-flist data/train.flist --model nlrn --job-dir job --train-batch-size 1 "
        "--train-patch-size 20 --num-steps 2 --train-steps 10",
        steps=5,
    ),
    "videnn": Case(
        make_data=videnn_data,
        command="Spatial-CNN/main_spatialCNN.py --use_gpu 1 --batch_size 2 --epoch 1",
        steps=5,
    ),
    "kws": Case(
        make_data=kws_data,
        command="train.py --data_url= --data_dir=speech --wanted_words yes,no,up "
        "--model_architecture ds_cnn --model_size_info 2 16 10 4 2 2 16 3 3 1 1 "
        "--dct_coefficient_count 10 --window_size_ms 40 --window_stride_ms 20 "
        "--learning_rate 0.0005 --how_many_training_steps 20 --batch_size 4 "
        "--summaries_dir work/logs --train_dir work/training "
        "--testing_percentage 0 --validation_percentage 0",
        steps=5,
    ),
    "nmt": Case(
        make_data=nmt_data,
        command="-m nmt.nmt --src=vi --tgt=en --vocab_prefix=nmt/testdata/iwslt15.vocab.100 "
        "--train_prefix=nmt/testdata/iwslt15.tst2013.100 "
        "--dev_prefix=nmt/testdata/iwslt15.tst2013.100 "
        "--test_prefix=nmt/testdata/iwslt15.tst2013.100 --out_dir=out --num_train_steps=20 "
        "--steps_per_stats=5 --num_layers=1 --num_units=16 --batch_size=4 --dropout=0.2",
        steps=5,
    ),
    "bert": Case(
        make_data=bert_data,
        prepare="create_pretraining_data.py --input_file=sample_text.txt "
        "--output_file=data.tfrecord --vocab_file=vocab.txt --max_seq_length=32 "
        "--max_predictions_per_seq=5 --random_seed=1 --dupe_factor=2",
        command="run_pretraining.py --input_file=data.tfrecord --output_dir=out --do_train=True "
        "--bert_config_file=config.json --train_batch_size=2 --max_seq_length=32 "
        "--max_predictions_per_seq=5 --num_train_steps=20 --num_warmup_steps=2 "
        "--learning_rate=2e-3",
        steps=5,
    ),
}
