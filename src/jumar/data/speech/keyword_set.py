"""Spoken words as samples: clips, silence and unknown words, augmented as in the original.

Original: `AudioProcessor` in ARM-software/ML-KWS-for-MCU (input_data.py), which is TensorFlow's
speech-commands example. Differences:

- The original draws each training sample with replacement. Here, an epoch has every clip of a
  keyword once, and unknown words are redrawn for each epoch; the original draws them once for the
  whole run.
- Without a folder of background noise, the original trains without noise, and its silence is
  zeros; here, white and pink noise are generated instead.

In evaluation, clips are not changed, and silence is zeros, as in the original.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from jumar.data.loading.collate import Stacked
from jumar.data.loading.division import divided, is_divided, report_division
from jumar.data.loading.keyed_set import KeyedSet
from jumar.data.loading.sampler import sample_random
from jumar.data.samples import Arrays, CorruptRecord, SampleKey, fingerprint, fingerprint_of
from jumar.data.speech.clip_changes import changed_clip, made_noises
from jumar.data.speech.decoded_clips import Clip, DecodedClips
from jumar.data.speech.keyword_data import KeywordData
from jumar.data.speech.speech_commands import Part, Speech, open_speech, speaker_groups
from jumar.data.speech.wav import read_wav, resample, to_int16
from jumar.ground.errors import UserError, did_you_mean
from jumar.ground.text import counted

_UNKNOWN_CHOICE = 3
"""First entropy word; the sampler uses 1 and 2, generated noise 4."""
_EVALUATION_SEED = 59185


class SpokenWords:
    """Clips, silence and unknown words of one part.

    Args:
        speech: The clips of the part.
        data: The settings.
        seed: Together with a key, determines all random choices.
        training: Whether clips are augmented and unknown words redrawn for each epoch.
        noises: Background noises, each longer than a clip; for training.
    """

    def __init__(
        self,
        speech: Speech,
        data: KeywordData,
        *,
        seed: int,
        training: bool,
        noises: Sequence[Clip] = (),
    ) -> None:
        self.data, self.seed, self.training, self.noises = data, seed, training, noises
        self._files = fingerprint_of(speech.source)
        self.clips = DecodedClips(
            speech,
            rate=data.sample_rate,
            samples=data.clip_samples,
            keep_bytes=data.cache_mb * 1_000_000,
        )
        labels = {word: label for label, word in enumerate(data.labels)}
        word_labels = np.array([labels.get(word, 1) for word in speech.words], dtype=np.int64)
        self._labels = word_labels[speech.word_of]
        self._keyword_clips = np.flatnonzero(self._labels > 1)
        self._unknown_clips = np.flatnonzero(self._labels == 1)
        self._silence_count = math.ceil(len(self._keyword_clips) * data.silence_percentage / 100)
        unknown = math.ceil(len(self._keyword_clips) * data.unknown_percentage / 100)
        self._unknown_count = min(unknown, len(self._unknown_clips))

    @property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of samples per epoch of keywords, silence and unknown words."""
        return len(self._keyword_clips), self._silence_count, self._unknown_count

    def __len__(self) -> int:
        return sum(self.counts)

    def label_counts(self) -> NDArray[np.int64]:
        """Return the number of samples of each label per epoch, [labels]."""
        counts = np.bincount(self._labels[self._keyword_clips], minlength=len(self.data.labels))
        counts[:2] = self._silence_count, self._unknown_count
        return counts

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the clips of the part and their words; see `Fingerprinted`."""
        return fingerprint(self._files.encode(), self._labels.tobytes())

    def open(self, item: int, key: SampleKey) -> tuple[int, Clip | None]:
        """Return label and clip of a sample, None for silence; see `SampleKind.open`."""
        clip_index = self._clip_of(SampleKey(key.epoch, item))
        if clip_index is None:
            return 0, None
        return int(self._labels[clip_index]), self.clips[clip_index]

    def map(self, opened: tuple[int, Clip | None], item: int, key: SampleKey) -> Arrays:
        """Return the network's input and label; see `SampleKind.map`."""
        label, clip = opened
        if self.training:
            random = sample_random(self.seed, SampleKey(key.epoch, item))
            audio = changed_clip(clip, self.noises, self.data, random)
        elif clip is None:
            audio = np.zeros(self.data.clip_samples, dtype=np.float32)
        else:
            audio = clip * np.float32(2.0**-15)
        return {"audio": audio, "label": np.asarray(label, dtype=np.int64)}

    def _clip_of(self, key: SampleKey) -> int | None:
        """Return the index of a sample's clip; None for silence."""
        keyword_count, silences, _ = self.counts
        if key.index < keyword_count:
            return int(self._keyword_clips[key.index])
        if key.index < keyword_count + silences:
            return None
        seed, epoch = (self.seed, key.epoch) if self.training else (_EVALUATION_SEED, 0)
        order = _unknown_order(seed, epoch, len(self._unknown_clips))
        return int(self._unknown_clips[order[key.index - keyword_count - silences]])


@lru_cache(maxsize=4)
def _unknown_order(seed: int, epoch: int, size: int) -> NDArray[np.int64]:
    """Return the order in which an epoch uses unknown clips."""
    return np.random.default_rng((_UNKNOWN_CHOICE, seed, epoch)).permutation(size)


def _noises_of(speech: Speech, data: KeywordData, notice: Callable[[str], None]) -> list[Clip]:
    if not speech.noises:
        if data.background_frequency and data.background_volume:
            notice("no background noise folder: generating white and pink noise")
        return made_noises(data.sample_rate)
    noises: list[Clip] = []
    for number in range(speech.noises):
        try:
            record = speech.read_noise(number)
            wave = read_wav(record.encoded, record.origin)
        except CorruptRecord as error:
            raise UserError(error.fault.reason, where=error.fault.origin) from error
        noise = to_int16(resample(wave, data.sample_rate))
        if not len(noise):
            raise UserError("it has no audio samples", where=record.origin)
        repeats = math.ceil((data.clip_samples + 1) / len(noise))
        noises.append(np.tile(noise, repeats))
    return noises


def keyword_set(words: SpokenWords) -> KeyedSet[SpokenWords]:
    """Spoken words as batches: `audio`, float32 [N, clip_samples] in -1..1, and `label`, int64
    [N]: 0 is silence, 1 an unknown word.
    """
    collate = Stacked(
        what="clips", fields="data.batch_size", sample_bytes=4 * words.data.clip_samples
    )
    return KeyedSet(kind=words, collate=collate, training=words.training)


def open_keyword_sets(
    data: KeywordData, *, seed: int, notice: Callable[[str], None] = lambda _: None
) -> tuple[KeyedSet[SpokenWords], KeyedSet[SpokenWords] | None]:
    """Open the training and the evaluation set, which is None if `eval_path` is `none`.

    Raises:
        UserError: There is no data at the path, or it lacks a keyword.
    """
    speech = open_speech(data.path, "training", notice=notice)
    _check_words(speech, data, data.path)
    eval_speech: Speech | None = None
    if is_divided(data, data.eval_path):
        speech, eval_speech = _divided_speech(speech, data, notice)
    elif data.eval_path != "none":
        path = data.eval_path or data.path
        part: Part = "testing" if data.eval_part == "testing" else "validation"
        eval_speech = open_speech(path, part, whole=bool(data.eval_path), notice=notice)
        _check_words(eval_speech, data, path)
    noises = _noises_of(speech, data, notice)
    train = keyword_set(SpokenWords(speech, data, seed=seed, training=True, noises=noises))
    evaluation = None
    if eval_speech is not None:
        evaluation = keyword_set(SpokenWords(eval_speech, data, seed=seed, training=False))
    for name, samples in (("training", train), (data.eval_part, evaluation)):
        if samples is not None:
            keyword_count, silences, unknowns = samples.kind.counts
            notice(
                f"{name}: {counted(keyword_count, 'clip')} of {counted(len(data.words), 'word')}, "
                f"{silences} of silence, "
                f"{unknowns} of unknown words"
            )
    return train, evaluation


def _divided_speech(
    speech: Speech, data: KeywordData, notice: Callable[[str], None]
) -> tuple[Speech, Speech]:
    """Divide clips into training and held-out ones, by speaker if the names identify speakers."""
    keys = [name.encode("utf-8", "surrogateescape") for name in speech.names]
    speakers = speaker_groups(speech.names)
    division = divided(data, keys, speech.word_of, groups=speakers)
    by = "of each word" if speakers is None else f"by {counted(len(set(speakers)), 'speaker')}"
    report_division(division, data, speech.word_of, notice, by=by)
    notice(f"{data.path}: its own parts for validation and testing are not used")
    held_out = speech.chosen(division.held_out, division.fingerprint)
    return speech.chosen(division.train), held_out


def _check_words(speech: Speech, data: KeywordData, where: str) -> None:
    available = {speech.words[int(index)] for index in np.unique(speech.word_of)}
    missing_words = [word for word in data.words if word not in available]
    if missing_words:
        raise UserError(
            f"there are no clips of {', '.join(missing_words)}",
            where=where,
            todo=f"{did_you_mean(missing_words[0], available)}Its words: "
            f"{', '.join(sorted(available))}. Choose some: data.words=...",
        )
