"""What the settings are if nobody sets them, and their limits."""

from dataclasses import replace
from pathlib import Path

import pytest

from jumar.data.speech import espeak_keywords, keyword_data
from jumar.ground.errors import UserError
from tests.data.setting_limits import limits_of


def test_keyword_settings_have_their_defaults_and_limits() -> None:
    words = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")
    assert limits_of(keyword_data.KeywordData()) == {
        "path": ("", None, None, False),
        "eval_path": ("", None, None, True),
        "eval_part": ("validation", None, None, False),
        "words": (words, None, None, False),
        "silence_percentage": (10.0, 0, None, False),
        "unknown_percentage": (10.0, 0, None, False),
        "sample_rate": (16_000, 1_000, 96_000, False),
        "clip_ms": (1_000, 10, 60_000, False),
        "time_shift_ms": (100.0, 0, None, False),
        "background_frequency": (0.8, 0, 1, False),
        "background_volume": (0.1, 0, 1, False),
        "background_snr_db": ((), None, None, False),
        "gain_db": (0.0, 0, None, False),
        "speed": (0.0, 0, 1, False),
        "batch_size": (100, 1, None, False),
        "cache_mb": (2_000, 0, None, False),
    }
    assert keyword_data.KeywordData().labels == ("_silence_", "_unknown_", *words)


def test_clip_samples_follow_from_milliseconds_and_rate() -> None:
    data = keyword_data.KeywordData(sample_rate=22_050, clip_ms=730)
    assert data.clip_samples == 16_096  # 22,050 times 0.73 are 16,096.5


def test_espeak_set_has_default_sizes() -> None:
    assert espeak_keywords.KeywordsRequest(folder=Path("x")) == espeak_keywords.KeywordsRequest(
        folder=Path("x"),
        words=("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"),
        clips=6_000,
        eval_clips=1_000,
        seed=1,
        workers=1,
    )


DISTINCT = "is not a list of distinct lower-case words\n  For instance: data.words=yes,no,stop"
RESERVED = "_silence_ and _unknown_ are reserved labels\n  List only the keywords."


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"words": ()}, f"data.words: '' {DISTINCT}"),
        ({"words": ("a", "b", "a")}, f"data.words: 'a,b,a' {DISTINCT}"),
        ({"words": ("a", "B")}, f"data.words: 'a,B' {DISTINCT}"),
        ({"words": ("a", "_unknown_")}, f"data.words: {RESERVED}"),
        ({"words": ("_silence_",)}, f"data.words: {RESERVED}"),
        (
            {"background_snr_db": (3.0,)},
            "data.background_snr_db: must be a lower and a higher ratio, not (3.0,)",
        ),
        (
            {"background_snr_db": (3.0, 2.5)},
            "data.background_snr_db: must be a lower and a higher ratio, not (3.0, 2.5)",
        ),
        (
            {"background_snr_db": (1.0, 2.0, 3.0)},
            "data.background_snr_db: must be a lower and a higher ratio, not (1.0, 2.0, 3.0)",
        ),
    ],
)
def test_impossible_words_and_ratios_have_the_full_message(
    changes: dict[str, tuple[str, ...]], message: str
) -> None:
    with pytest.raises(UserError) as caught:
        replace(keyword_data.KeywordData(path="x"), **changes).check()
    assert str(caught.value) == message


def test_one_word_and_a_single_ratio_are_accepted() -> None:
    keyword_data.KeywordData(path="x", words=("a",), background_snr_db=(2.0, 2.0)).check()
