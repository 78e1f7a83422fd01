"""Handmade data of every kind that a recipe learns from, as small as it may be."""

import json
import wave
from pathlib import Path

import numpy as np
from PIL import Image

from tests.data.text.vocabularies import write_vocabulary


def write_pictures(folder: Path, *, side: int = 64, train: int = 6, val: int = 2) -> None:
    """Parts `train` and `val` with smooth coloured images."""
    random = np.random.default_rng(1)
    for part, count in (("train", train), ("val", val)):
        (folder / part).mkdir(parents=True)
        for number in range(count):
            coarse = random.integers(0, 256, (4, 4, 3), dtype=np.uint8)
            picture = Image.fromarray(coarse).resize((side, side), Image.Resampling.BILINEAR)
            picture.save(folder / part / f"{number}.png")


def write_frames(folder: Path, *, side: int = 48, frames: int = 6) -> None:
    """Parts `train` and `val` with one clip each, of an image that moves."""
    random = np.random.default_rng(2)
    coarse = Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8))
    scene = np.asarray(coarse.resize((side + frames, side), Image.Resampling.BILINEAR))
    for part in ("train", "val"):
        clip = folder / part / "clip"
        clip.mkdir(parents=True)
        for number in range(frames):
            Image.fromarray(scene[:, number : number + side]).save(clip / f"{number:04d}.png")


def write_words(folder: Path, words: tuple[str, ...], *, speakers: int = 12) -> None:
    """A second of a tone for each word and speaker, in Speech Commands' layout."""
    random = np.random.default_rng(3)
    time = np.arange(16000) / 16000
    for place, word in enumerate(words):
        (folder / word).mkdir(parents=True)
        for speaker in range(speakers):
            tone = np.sin(2 * np.pi * (300 + 200 * place) * time) + random.normal(0, 0.1, 16000)
            with wave.open(str(folder / word / f"{speaker:08x}_nohash_0.wav"), "wb") as file:
                file.setparams((1, 2, 16000, 16000, "NONE", ""))
                file.writeframes((6000 * tone).astype("<i2").tobytes())


def write_signs(folder: Path, *, side: int = 64) -> None:
    """Parts `train` and `val` of images with two dark words each, and ICDAR's label files."""
    random = np.random.default_rng(5)
    for part, count in (("train", 4), ("val", 2)):
        (folder / part).mkdir(parents=True)
        for number in range(count):
            pixels = random.integers(150, 250, (side, side, 3), dtype=np.uint8)
            lines: list[str] = []
            for top in (6, 36):
                left = int(random.integers(2, 12))
                pixels[top : top + 18, left : left + 44] = 20
                corners = ((left, top), (left + 44, top), (left + 44, top + 18), (left, top + 18))
                lines.append(",".join(f"{x},{y}" for x, y in corners) + ",word")
            Image.fromarray(pixels).save(folder / part / f"img_{number}.png")
            (folder / part / f"gt_img_{number}.txt").write_text("\n".join(lines))


def write_texts(folder: Path) -> None:
    """Opinions, tagged sentences and questions in folders of their own, `documents.txt`, and
    `vocab.txt`.
    """
    random = np.random.default_rng(4)
    write_vocabulary(folder / "vocab.txt")
    documents = [
        "\n".join(" ".join(map(str, random.choice(list("abcdefg"), 5))) for _ in range(4))
        for _ in range(3)
    ]
    (folder / "documents.txt").write_text("\n\n".join(documents))
    for part, count in (("train", 8), ("dev", 6)):
        for name in ("sentences", "tags", "questions"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        lines = ["label\ttext_a"]
        tagged: list[str] = []
        paragraphs: list[dict[str, object]] = []
        for number in range(count):
            words = [str(word) for word in random.choice(list("abcdefg"), 6)]
            place = int(random.integers(5))
            lines.append(f"{number % 2}\t{' '.join(words)} {'xy'[number % 2]}")
            words[2 * number % 5 : 2 * number % 5 + 2] = "a", "b"
            tags = [{"a": "B-X", "b": "I-X"}.get(word, "O") for word in words]
            tagged += [*(f"{word} {tag}" for word, tag in zip(words, tags, strict=True)), ""]
            context = " ".join(words)
            answer = {"text": context[2 * place : 2 * place + 3], "answer_start": 2 * place}
            question = {"id": f"{part} {number}", "question": "z", "answers": [answer]}
            paragraphs.append({"context": context, "qas": [question]})
        (folder / "sentences" / f"{part}.tsv").write_text("\n".join(lines))
        (folder / "tags" / f"{part}.txt").write_text("\n".join(tagged))
        content = json.dumps({"data": [{"paragraphs": paragraphs}]})
        (folder / "questions" / f"{part}.json").write_text(content)
