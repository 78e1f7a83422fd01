"""Synthesises a set of spoken words with eSpeak NG, so that nothing is downloaded.

Each clip is one word by one voice (an accent and a variant) at one speed and one pitch; the same
arguments always lead to the same samples. Parts are divided by variant, never by clip: the numbered
variants (f1 to f5, m1 to m8) are for training and the named ones for evaluation, so that evaluation
uses voices that do not occur in training. Robots, whispers, demons and the Klatt voices are
excluded.

Loudness, shifts and noise are left to training, which varies them in each epoch.
"""

import itertools
import json
import shutil
import subprocess
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from jumar.data.samples import CorruptRecord
from jumar.data.speech.keyword_data import SPEECH_COMMANDS_WORDS
from jumar.data.speech.wav import Samples, read_wav, resample, to_int16, write_wav
from jumar.ground.errors import UserError
from jumar.ground.files import write_bytes
from jumar.ground.paths import exists
from jumar.ground.processes import in_order
from jumar.ground.text import counted

UNKNOWN_WORDS = (
    "cat", "tree", "house", "seven", "happy", "wow", "marvin", "bird", "zero", "nine",
)  # fmt: skip
ACCENTS = (
    "en-us", "en-gb", "en-gb-scotland", "en-gb-x-rp", "en-gb-x-gbclan", "en-gb-x-gbcwmd", "en-029",
)  # fmt: skip
SPEEDS = (110, 130, 150, 175, 200)
PITCHES = (25, 40, 50, 60, 75)
VARIANTS: Mapping[str, Sequence[str]] = {
    "train": ("f1", "f2", "f3", "f4", "f5", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"),
    "val": (
        "Alex", "Alicia", "Andrea", "Andy", "Annie", "Denis", "Diogo", "Gene", "Hugo", "Jacky",
        "Lee", "Marco", "Mario", "Michael", "Mike", "adam", "anika", "announcer", "antonio",
        "aunty", "belinda", "benjamin", "boris", "caleb", "david", "ed", "edward", "grandma",
        "grandpa", "iven", "john", "linda", "max", "michel", "miguel", "norbert", "pablo", "paul",
        "pedro", "quincy", "rob", "robert", "sandro", "shelby", "steph", "travis", "victor", "zac",
    ),
}  # fmt: skip

RATE = 16_000
UNKNOWN_SHARE = 2
"""Number of unknown clips, as a multiple of the number per keyword; each epoch uses some of them.
"""
_AUDIBLE = 0.01
_MARGIN = RATE // 100
_DRAW = 5
"""First entropy word, which is unique to this use of a seed."""
_PROGRAM = "espeak-ng"
_REQUEST_FILE = "espeak.json"
_MAX_PENDING = 64


@dataclass(frozen=True, kw_only=True)
class KeywordsRequest:
    """A request for a set of clips.

    Attributes:
        folder: The folder, in which the parts `train` and `val` are created.
        words: The keywords.
        clips: Number of clips for training, including unknown words.
        eval_clips: Number of clips for evaluation.
        seed: Seed of the drawn voices, speeds and pitches.
        workers: Number of concurrent synthesiser processes.
    """

    folder: Path
    words: Sequence[str] = SPEECH_COMMANDS_WORDS
    clips: int = 6_000
    eval_clips: int = 1_000
    seed: int = 1
    workers: int = 1


@dataclass(frozen=True, kw_only=True)
class Utterance:
    """One clip.

    Attributes:
        part: `train` or `val`.
        word: The spoken word.
        folder: Its folder in the part: the word, or one below `unknown`.
    """

    part: str
    word: str
    folder: str
    accent: str
    variant: str
    speed: int
    pitch: int

    @property
    def path(self) -> str:
        """Its file in the set; as in Speech Commands, the text before `_nohash_` is the speaker."""
        name = f"{self.variant}_nohash_{self.accent}-s{self.speed}-p{self.pitch}.wav"
        return f"{self.part}/{self.folder}/{name}"


@dataclass(frozen=True, kw_only=True)
class WrittenPart:
    """Numbers of clips in a part.

    Attributes:
        made: Newly synthesised clips; the others already existed.
        left_out: Clips that are longer than a second or inaudible.
    """

    part: str
    clips: int
    made: int
    left_out: int


def write_espeak_keywords(
    request: KeywordsRequest, *, progress: Callable[[int, int], None] | None = None
) -> list[WrittenPart]:
    """Synthesise the missing clips; an interrupted call can simply be repeated.

    Args:
        request: What to synthesise, and its destination.
        progress: Called with the number of finished clips and the total.

    Raises:
        UserError: eSpeak NG is missing or fails, the folder has other content, or there are not
            enough different clips.
    """
    utterances = plan_utterances(request)
    program = _program()
    _claim(request)
    made_counts: Counter[str] = Counter()
    left_out_counts: Counter[str] = Counter()
    make = partial(_make, program, request.folder)
    threads = max(1, request.workers)
    with closing(in_order(make, utterances, threads=threads, ahead=_MAX_PENDING)) as outcomes:
        for done, (utterance, outcome) in enumerate(zip(utterances, outcomes, strict=True), 1):
            made_counts[utterance.part] += outcome == "made"
            left_out_counts[utterance.part] += outcome == "left out"
            if progress is not None:
                progress(done, len(utterances))
    totals = Counter(utterance.part for utterance in utterances)
    return [
        WrittenPart(
            part=part,
            clips=total - left_out_counts[part],
            made=made_counts[part],
            left_out=left_out_counts[part],
        )
        for part, total in totals.items()
    ]


def plan_utterances(request: KeywordsRequest) -> list[Utterance]:
    """Plan the clips of a set: the same number for each keyword, twice that for unknown words.

    Raises:
        UserError: A word is not a valid keyword, or there are not enough different clips.
    """
    for word in request.words:
        if not word.isalpha() or word != word.lower() or word == "unknown":
            raise UserError(
                f"'{word}' cannot be a keyword",
                where="--words",
                todo="Use words of lower-case letters, separated by commas.",
            )
    if not request.words or len(set(request.words)) < len(request.words):
        raise UserError("the words must be distinct", where="--words")
    utterances: list[Utterance] = []
    for number, (part, count) in enumerate((("train", request.clips), ("val", request.eval_clips))):
        shares = len(request.words) + UNKNOWN_SHARE
        if count < shares:
            raise UserError(
                f"{count} clips are fewer than one for each word",
                where="--clips" if part == "train" else "--eval-clips",
                todo=f"Request at least {shares}.",
            )
        clips_each = count // shares
        for word in request.words:
            grid_points = _draw(
                (request.seed, number, zlib.crc32(word.encode())), part, [word], clips_each
            )
            utterances += [_utterance(part, word, grid) for grid in grid_points]
        unknown_words = [word for word in UNKNOWN_WORDS if word not in request.words]
        rest = count - clips_each * len(request.words)
        for grid in _draw((request.seed, number), part, unknown_words, rest):
            utterances.append(_utterance(part, f"unknown/{grid[0]}", grid))
    return utterances


_GridPoint = tuple[str, str, str, int, int]


def _draw(key: Sequence[int], part: str, words: Sequence[str], count: int) -> list[_GridPoint]:
    axes = (words, ACCENTS, VARIANTS[part], SPEEDS, PITCHES)
    grid = list(itertools.product(*axes))
    if count > len(grid):
        raise UserError(
            f"{counted(count, 'clip')} of '{words[0]}' requested, but only {len(grid)} different "
            f"ones can be made for {part}",
            where="--clips" if part == "train" else "--eval-clips",
        )
    order = np.random.default_rng((_DRAW, *key)).permutation(len(grid))[:count]
    return [grid[int(index)] for index in sorted(order)]


def _utterance(part: str, folder: str, grid: _GridPoint) -> Utterance:
    word, accent, variant, speed, pitch = grid
    return Utterance(
        part=part,
        word=word,
        folder=folder,
        accent=accent,
        variant=variant,
        speed=speed,
        pitch=pitch,
    )


def _program() -> str:
    """Return the synthesiser's path, after checking that it has all variants."""
    program = shutil.which(_PROGRAM)
    if program is None:
        raise UserError(
            f"the speech synthesiser {_PROGRAM} is not installed",
            todo="Debian and Ubuntu: apt install espeak-ng; Fedora and openEuler: "
            "dnf install espeak-ng; macOS: brew install espeak-ng",
        )
    installed = subprocess.run(
        [program, "--voices=variant"], capture_output=True, text=True, check=False
    ).stdout.split()
    missing_variants = [
        variant
        for variant in itertools.chain.from_iterable(VARIANTS.values())
        if f"!v/{variant}" not in installed
    ]
    if missing_variants:
        # eSpeak silently replaces missing voices.
        raise UserError(
            f"this {_PROGRAM} lacks the voice variants {', '.join(missing_variants[:5])}",
            where=program,
            todo="Install eSpeak NG 1.51 or newer with its complete data.",
        )
    return program


def _claim(request: KeywordsRequest) -> None:
    """Record the options in the folder, which must not contain clips with other options."""
    request_file = request.folder / _REQUEST_FILE
    options = {
        "words": list(request.words),
        "clips": request.clips,
        "eval_clips": request.eval_clips,
        "seed": request.seed,
    }
    try:
        request.folder.mkdir(parents=True, exist_ok=True)
        if exists(request_file):
            if json.loads(request_file.read_text(encoding="utf-8")) != options:
                raise UserError(
                    "the folder contains clips made with different options",
                    where=str(request.folder),
                    todo=f"Choose another folder; {request_file} lists those options.",
                )
        elif any(request.folder.iterdir()):
            raise UserError(
                "the folder is not empty",
                where=str(request.folder),
                todo="Choose a new one.",
            )
        else:
            write_bytes(request_file, json.dumps(options, indent=1, ensure_ascii=False).encode())
    except (OSError, ValueError) as error:
        raise UserError(f"cannot be used: {error}", where=str(request.folder)) from error


def _make(program: str, folder: Path, utterance: Utterance) -> str:
    path = folder / utterance.path
    if exists(path):
        return "exists"
    clip = placed(_spoken(program, utterance))
    if clip is None:
        return "left out"
    write_bytes(path, write_wav(to_int16(clip), RATE))
    return "made"


def _spoken(program: str, utterance: Utterance) -> Samples:
    voice = f"{utterance.accent}+{utterance.variant}"
    options = ["-v", voice, "-s", str(utterance.speed), "-p", str(utterance.pitch), "-a", "100"]
    process = subprocess.run(
        [program, *options, "--stdout", utterance.word], capture_output=True, check=False
    )
    if process.returncode:
        errors = process.stderr.decode(errors="replace").strip().splitlines()
        raise UserError(
            f"{_PROGRAM} failed with exit code {process.returncode}: "
            f"{errors[-1] if errors else ''}",
            where=f"{utterance.word}, voice {voice}",
        )
    try:
        return resample(read_wav(process.stdout, f"{_PROGRAM} -v {voice}"), RATE)
    except CorruptRecord as error:
        raise UserError(error.fault.reason, where=error.fault.origin) from error


def placed(samples: Samples) -> Samples | None:
    """Centre the audible part of a recording in one second of silence.

    Returns:
        float32 [16000]; None if the audible part is empty or longer than a second.
    """
    audible = np.flatnonzero(np.abs(samples) > _AUDIBLE)
    if not len(audible):
        return None
    first, last = max(0, audible[0] - _MARGIN), audible[-1] + _MARGIN + 1
    word = samples[first:last]
    if len(word) > RATE:
        return None
    clip = np.zeros(RATE, dtype=np.float32)
    start = (RATE - len(word)) // 2
    clip[start : start + len(word)] = word
    return clip
