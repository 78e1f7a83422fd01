from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from jumar.data.loading.collate import Stacked
from jumar.data.loading.faults import FaultTally
from jumar.data.loading.keyed_set import KeyedSet
from jumar.data.loading.loader import train_batches
from jumar.data.samples import SampleKey
from jumar.data.speech.keyword_data import KeywordData
from jumar.data.speech.keyword_set import SpokenWords, open_keyword_sets
from jumar.data.speech.speech_commands import which_part
from jumar.data.speech.wav import write_wav
from jumar.ground.errors import UserError
from jumar.settings import checked, override, setting
from tests.data.tones import PITCHES, divided, in_folder, tone, tone_files

WORDS = ("low", "middle", "high")
DATA = KeywordData(words=WORDS, unknown_percentage=20, workers=0)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a recipe holds the settings in."""

    data: KeywordData = setting(DATA, "The clips.")


def sets(
    folder: Path, *, seed: int = 1, **changes: object
) -> tuple[KeyedSet[SpokenWords], KeyedSet[SpokenWords]]:
    data = replace(DATA, path=str(folder), **changes)
    train, evaluation = open_keyword_sets(data, seed=seed)
    assert evaluation is not None
    return train, evaluation


def everything(samples: KeyedSet[SpokenWords], epoch: int = 0) -> dict[str, torch.Tensor]:
    return dict(samples.fetch([SampleKey(epoch, index) for index in range(len(samples))]).batch)


def pitches(audio: torch.Tensor) -> list[float]:
    """The loudest frequency of each clip."""
    return torch.fft.rfft(audio).abs().argmax(dim=1).float().tolist()


def test_epoch_has_every_keyword_clip_and_the_configured_silence_and_unknown_words(
    tmp_path: Path,
) -> None:
    train, evaluation = sets(divided(tmp_path))
    assert train.kind.counts == (18, 2, 4)
    assert evaluation.kind.counts == (9, 1, 2)
    labels = everything(train)["label"].tolist()
    assert labels[18:] == [0, 0, 1, 1, 1, 1]
    assert np.bincount(labels).tolist() == [2, 4, 6, 6, 6]


def test_labels_are_silence_unknown_and_the_words_in_order(tmp_path: Path) -> None:
    _, evaluation = sets(divided(tmp_path), silence_percentage=0)
    batch = everything(evaluation)
    assert batch["audio"].shape == (11, 16_000)
    assert batch["audio"].dtype == torch.float32
    expected = {2: "low", 3: "middle", 4: "high", 1: "other"}
    for label, pitch in zip(batch["label"].tolist(), pitches(batch["audio"]), strict=True):
        assert pitch == pytest.approx(PITCHES[expected[label]], rel=0.05)


def test_evaluation_ignores_seed_and_epoch(tmp_path: Path) -> None:
    folder = divided(tmp_path)
    batches = [
        everything(sets(folder, seed=seed, speed=0.3, gain_db=9)[1], epoch)
        for seed, epoch in ((1, 0), (2, 0), (1, 5))
    ]
    for batch in batches[1:]:
        assert torch.equal(batch["audio"], batches[0]["audio"])
    silence = batches[0]["audio"][batches[0]["label"] == 0]
    assert silence.abs().max() == 0


def test_sample_depends_only_on_seed_epoch_and_index(tmp_path: Path) -> None:
    folder = divided(tmp_path)
    changes = {"speed": 0.1, "gain_db": 3.0, "background_snr_db": (5.0, 20.0)}
    one = everything(sets(folder, **changes)[0], 3)
    other, _ = sets(folder, **changes)
    for index in reversed(range(len(other))):
        alone = other.fetch([SampleKey(3, index)]).batch
        assert torch.equal(alone["audio"][0], one["audio"][index])
        assert alone["label"][0] == one["label"][index]
    assert not torch.equal(everything(sets(folder, seed=2, **changes)[0], 3)["audio"], one["audio"])


def test_unknown_words_are_redrawn_for_each_epoch(tmp_path: Path) -> None:
    train, _ = sets(divided(tmp_path, train=20), background_frequency=0.0, time_shift_ms=0.0)
    drawn = [
        frozenset(pitches(everything(train, epoch)["audio"][-train.kind.counts[2] :]))
        for epoch in range(20)
    ]
    assert all(len(result) == train.kind.counts[2] for result in drawn)
    assert len(set(drawn)) > 10
    assert len(frozenset().union(*drawn)) == 20


def test_workers_give_the_batches_of_the_main_process(tmp_path: Path) -> None:
    folder = divided(tmp_path)

    def batches(workers: int) -> list[torch.Tensor]:
        loader = train_batches(
            sets(folder)[0],
            seed=1,
            first_step=0,
            last_step=6,
            batch_per_rank=8,
            workers=workers,
            tally=FaultTally(),
        )
        return [batch["audio"].clone() for batch in loader]

    for one, other in zip(batches(0), batches(2), strict=True):
        assert torch.equal(one, other)


def damaged(folder: Path, names: Sequence[str]) -> Path:
    for name in names:
        path = next(folder.glob(name))
        path.write_bytes(path.read_bytes()[:1000])
    return folder


def test_unreadable_clip_is_replaced_in_training_and_skipped_in_evaluation(
    tmp_path: Path,
) -> None:
    names = ("train/low/00000003_*.wav", "val/high/*.wav")
    train, evaluation = sets(damaged(divided(tmp_path), names))
    fetched = train.fetch([SampleKey(0, index) for index in range(len(train))])
    assert len(fetched.batch["label"]) == len(train)
    (fault,) = fetched.faults
    assert fault.origin.endswith("train/low/00000003_nohash_0.wav")
    assert "truncated" in fault.reason
    scored = evaluation.fetch([SampleKey(0, index) for index in range(len(evaluation))])
    assert (len(scored.faults), len(scored.batch["label"])) == (1, len(evaluation) - 1)


def test_noise_folder_is_used(tmp_path: Path) -> None:
    folder = divided(tmp_path)
    in_folder(folder, {"_background_noise_/hum.wav": tone("hum", 0, seconds=0.3)})
    train, _ = sets(folder, background_frequency=1.0)
    batch = everything(train)
    silence = batch["audio"][batch["label"] == 0]
    assert len(silence) == 2
    # A hum shorter than a clip is repeated.
    assert all(590 < pitch < 610 for pitch in pitches(silence))


def test_mismatched_settings_and_data_are_refused(tmp_path: Path) -> None:
    folder = divided(tmp_path)
    with pytest.raises(UserError, match="no clips of lov"):
        sets(folder, words=("lov", "high"))
    for wrong in ("data.words=", "data.words=a,a", "data.words=Low", "data.words=_silence_"):
        with pytest.raises(UserError, match=r"data\.words"):
            override(Recipe(), [wrong])
    with pytest.raises(UserError, match="background_snr_db"):
        checked(replace(DATA, background_snr_db=(9.0, 1.0)))


def test_evaluation_may_use_another_path(tmp_path: Path) -> None:
    folder = divided(tmp_path / "a")
    other = in_folder(tmp_path / "b", tone_files(WORDS, 5))
    data = replace(DATA, path=str(folder), eval_path=str(other))
    _, evaluation = open_keyword_sets(data, seed=1)
    assert evaluation is not None
    assert evaluation.kind.counts == (15, 2, 0)
    assert open_keyword_sets(replace(data, eval_path="none"), seed=1)[1] is None


def test_real_arabic_commands_open(shared: Path) -> None:
    words = ["yes", "no", "up", "down", "left", "right", "start", "stop", "enable", "disable"]
    data = KeywordData(path=str(shared / "data" / "keywords-ar"), words=tuple(words))
    messages: list[str] = []
    train, evaluation = open_keyword_sets(data, seed=1, notice=messages.append)
    assert evaluation is not None
    assert (train.kind.counts, evaluation.kind.counts) == ((720, 72, 72), (180, 18, 18))
    fetched = train.fetch([SampleKey(0, index) for index in range(0, 864, 9)])
    assert not fetched.faults
    spoken = fetched.batch["audio"][fetched.batch["label"] > 0]
    assert spoken.abs().amax(dim=1).min() > 0.01
    assert "generating white and pink noise" in messages[0]


def test_folds_share_no_speaker_and_together_hold_out_every_clip(tmp_path: Path) -> None:
    in_folder(tmp_path, tone_files([*WORDS, "other"], 30))
    lines: list[str] = []
    total = 0
    for fold in range(3):
        data = replace(DATA, path=str(tmp_path), folds=3, fold=fold)
        train, held_out = open_keyword_sets(data, seed=1, notice=lines.append)
        assert held_out is not None
        speakers = [
            {name.rpartition("/")[2][:8] for name in side.kind.clips._speech.names}
            for side in (train, held_out)
        ]
        assert speakers[0]
        assert speakers[1]
        assert not speakers[0] & speakers[1]
        wanted, _, _ = held_out.kind.counts
        total += wanted
    training = open_keyword_sets(replace(DATA, path=str(tmp_path), eval_path="none"), seed=1)[0]
    assert total == training.kind.counts[0]
    assert any(" speakers, split seed" in line for line in lines)


def test_clips_without_speakers_in_their_names_are_divided_by_word(tmp_path: Path) -> None:
    files = {f"{word}/{word}_{take}.wav": tone(word, take) for word in WORDS for take in range(8)}
    in_folder(tmp_path, {f"train/{name}": clip for name, clip in files.items()})
    in_folder(tmp_path, {"val/low/low_9.wav": tone("low", 9)})
    lines: list[str] = []
    data = replace(DATA, path=str(tmp_path), val_fraction=0.25)
    train, held_out = open_keyword_sets(data, seed=1, notice=lines.append)
    assert held_out is not None
    assert (train.kind.counts[0], held_out.kind.counts[0]) == (18, 6)
    assert any("of each word" in line for line in lines)


def test_shares_are_rounded_up_and_unknown_words_limited_to_the_available(tmp_path: Path) -> None:
    """18 and 9 wanted clips, 6 and 3 of other words."""
    folder = divided(tmp_path)
    for silence, unknown, counts in (
        (0.0, 0.0, ((18, 0, 0), (9, 0, 0))),
        (5.0, 5.6, ((18, 1, 2), (9, 1, 1))),
        (100.0, 33.4, ((18, 18, 6), (9, 9, 3))),
        (50.0, 900.0, ((18, 9, 6), (9, 5, 3))),
    ):
        train, evaluation = sets(folder, silence_percentage=silence, unknown_percentage=unknown)
        assert (train.kind.counts, evaluation.kind.counts) == counts
        assert (len(train), len(evaluation)) == tuple(map(sum, counts))
        _, silences, unknowns = train.kind.counts
        assert train.kind.label_counts().tolist() == [silences, unknowns, 6, 6, 6]


def test_sets_are_reported_with_their_counts(tmp_path: Path) -> None:
    messages: list[str] = []
    data = replace(DATA, path=str(divided(tmp_path)))
    open_keyword_sets(data, seed=1, notice=messages.append)
    assert messages == [
        "no background noise folder: generating white and pink noise",
        "training: 18 clips of 3 words, 2 of silence, 4 of unknown words",
        "validation: 9 clips of 3 words, 1 of silence, 2 of unknown words",
    ]
    for quiet in ({"background_frequency": 0.0}, {"background_volume": 0.0}):
        more: list[str] = []
        open_keyword_sets(replace(data, **quiet), seed=1, notice=more.append)
        assert more == messages[1:]
    one: list[str] = []
    open_keyword_sets(replace(data, words=("low",), eval_path="none"), seed=1, notice=one.append)
    assert one[1] == "training: 6 clips of 1 word, 1 of silence, 2 of unknown words"


def test_evaluation_takes_the_same_unknown_words_for_every_seed(tmp_path: Path) -> None:
    """A permutation by the original's random seed, 59185, and 3 that no other use has."""
    _, evaluation = sets(divided(tmp_path, val=9), silence_percentage=0)
    order = np.random.default_rng((3, 59185, 0)).permutation(9)[:6]
    paths = [str(name) for name in evaluation.kind.clips._speech.names]
    others = [path for path in paths if path.startswith("unknown/")]
    opened = [evaluation.kind.open(27 + place, SampleKey(7, 0))[1] for place in range(6)]
    for clip, place in zip(opened, order.tolist(), strict=True):
        assert clip is not None
        index = paths.index(others[place])
        np.testing.assert_array_equal(clip, evaluation.kind.clips[index])


def test_training_draws_its_unknown_words_from_seed_and_epoch(tmp_path: Path) -> None:
    train, _ = sets(divided(tmp_path), seed=8)
    for epoch in (0, 3):
        order = np.random.default_rng((3, 8, epoch)).permutation(6)[:4]
        paths = [str(name) for name in train.kind.clips._speech.names]
        others = [path for path in paths if path.startswith("unknown/")]
        for number, place in enumerate(order.tolist()):
            label, clip = train.kind.open(20 + number, SampleKey(epoch, 0))
            assert label == 1
            np.testing.assert_array_equal(clip, train.kind.clips[paths.index(others[place])])
        assert train.kind.open(18, SampleKey(epoch, 0)) == (0, None)
        assert train.kind.open(19, SampleKey(epoch, 0)) == (0, None)


def test_evaluation_gives_the_unchanged_clip_between_minus_one_and_one(tmp_path: Path) -> None:
    _, evaluation = sets(divided(tmp_path))
    label, clip = evaluation.kind.open(0, SampleKey(0, 0))
    assert clip is not None
    sample = evaluation.kind.map((label, clip), 0, SampleKey(0, 0))
    np.testing.assert_array_equal(sample["audio"], clip / 32768)
    assert (sample["label"].dtype, int(sample["label"])) == (np.int64, label)
    silent = evaluation.kind.map((0, None), 9, SampleKey(0, 0))["audio"]
    assert (silent.shape, silent.dtype, silent.any()) == ((16_000,), np.float32, False)


def test_missing_words_are_reported_with_the_available_ones(tmp_path: Path) -> None:
    folder = divided(tmp_path / "a")
    path = str(folder)
    for words, hint in ((("lov", "high"), "Did you mean 'low'? "), (("xyz", "qqq"), "")):
        with pytest.raises(UserError) as caught:
            sets(folder, words=words)
        missing = ", ".join(word for word in words if word != "high")
        assert str(caught.value) == (
            f"{path}: there are no clips of {missing}\n"
            f"  {hint}Its words: high, low, middle, unknown. Choose some: data.words=..."
        )
    with pytest.raises(UserError, match="there are no clips of xyz"):
        sets(folder, words=("xyz", "high"), eval_path="none")
    other = in_folder(tmp_path / "b", tone_files(("low", "high"), 2))
    with pytest.raises(UserError) as caught:
        sets(folder, eval_path=str(other))
    assert str(caught.value) == (
        f"{other}: there are no clips of middle\n"
        "  Did you mean 'middle'? Its words: high, low. Choose some: data.words=..."
    ).replace("Did you mean 'middle'? ", "")


def test_noises_are_repeated_until_a_clip_fits_with_one_sample_to_spare(tmp_path: Path) -> None:
    folder = divided(tmp_path)
    for seconds, length in ((1.0, 32_000), (16_001 / 16_000, 16_001), (0.3, 19_200), (2.0, 32_000)):
        in_folder(folder, {"_background_noise_/hum.wav": tone("hum", 0, seconds=seconds)})
        train, _ = sets(folder)
        assert [len(noise) for noise in train.kind.noises] == [length]
    in_folder(folder, {"_background_noise_/hum.wav": write_wav(np.zeros(0, np.int16), 16_000)})
    with pytest.raises(UserError) as caught:
        sets(folder)
    assert str(caught.value) == f"{folder}/_background_noise_/hum.wav: it has no audio samples"
    in_folder(folder, {"_background_noise_/hum.wav": b""})
    with pytest.raises(UserError) as caught:
        sets(folder)
    assert str(caught.value) == f"{folder}/_background_noise_/hum.wav: the file is empty"


def test_test_part_is_scored_on_request(tmp_path: Path) -> None:
    folder = in_folder(divided(tmp_path), tone_files([f"test/{word}" for word in WORDS], 2))
    messages: list[str] = []
    data = replace(DATA, path=str(folder), eval_part="testing")
    _, evaluation = open_keyword_sets(data, seed=1, notice=messages.append)
    assert evaluation is not None
    assert evaluation.kind.counts == (6, 1, 0)
    assert messages[-1].startswith("testing: 6 clips")


def test_fingerprint_depends_on_clips_and_words(tmp_path: Path) -> None:
    prints = [
        sets(divided(tmp_path / name, train=count), words=words)[0].kind.fingerprint
        for name, count, words in (
            ("a", 3, WORDS),
            ("b", 3, WORDS),
            ("c", 4, WORDS),
            ("d", 3, ("low", "high", "middle")),
        )
    ]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3


def test_decoded_clips_are_cached_up_to_the_configured_megabytes(tmp_path: Path) -> None:
    """A clip takes 32,000 bytes: 31 of them a million."""
    folder = divided(tmp_path, train=12)
    train, _ = sets(folder, cache_mb=1)
    assert train.kind.clips._cached_count == 31
    assert sets(folder, cache_mb=0)[0].kind.clips._cached_count == 0
    assert isinstance(train.collate, Stacked)
    assert train.collate.sample_bytes == 64_000
    assert (train.collate.what, train.collate.fields) == ("clips", "data.batch_size")


def test_division_of_clips_is_reported_with_its_method(tmp_path: Path) -> None:
    in_folder(tmp_path, tone_files([*WORDS, "other"], 30))
    messages: list[str] = []
    data = replace(DATA, path=str(tmp_path), val_fraction=0.2)
    open_keyword_sets(data, seed=1, notice=messages.append)
    assert f"{tmp_path}: its own parts for validation and testing are not used" in messages
    kept = sum(which_part(f"{speaker:08x}_nohash_0.wav") == "training" for speaker in range(30))
    assert any(f"by {kept} speakers" in line for line in messages)
