"""Chinese words for whole-word masking."""

import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.text.original_order import Draws, Masking
from jumar.data.text.pretraining_options import PretrainingOptions
from jumar.data.text.segmenting import CONTINUES_WORD, marked_lines, open_segmenter
from jumar.data.text.tokenizer import Tokenizer
from jumar.data.text.vocabulary import Vocabulary
from jumar.ground.errors import UserError
from tests.data.text.vocabularies import PIECES

VOCABULARY = Vocabulary(PIECES)
TOKENIZER = Tokenizer(VOCABULARY)


def spaces() -> Callable[[str], list[str]]:
    segmenter = open_segmenter("spaces")
    assert segmenter is not None
    return segmenter


def spelt(ids: list[int]) -> list[str]:
    """Pieces, with a + before those that continue a word though their text does not say so."""
    return ["+" * (each >= CONTINUES_WORD) + PIECES[each & (CONTINUES_WORD - 1)] for each in ids]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("今天 天气很 好", ["今", "+天", "天", "+气", "+很", "好"]),
        ("今天,天气 ran 天气", ["今", "+天", ",", "天", "+气", "ran", "天", "+气"]),
        ("running今天cat天", ["run", "##n", "##ing", "今", "+天", "cat", "天"]),
        ("  今天", ["今", "+天"]),
        ("今\u200b天", ["今", "天"]),
        ("", []),
    ],
)
def test_characters_of_a_run_form_one_word(line: str, expected: list[str]) -> None:
    (ids,) = marked_lines(TOKENIZER, spaces(), line)
    assert spelt(ids) == expected


def test_segmenter_decides_word_starts_regardless_of_latin_text() -> None:
    def pairs(line: str) -> list[str]:
        return [line[start : start + 2] for start in range(0, len(line), 2)]

    (ids,) = marked_lines(TOKENIZER, pairs, "今天天气running")
    assert spelt(ids) == ["今", "+天", "天", "+气", "run", "##n", "##ing"]


@given(st.text(st.sampled_from("今天气 abthe\t.\u3000é")))
def test_marks_change_no_ids_and_segments_rebuild_the_line(line: str) -> None:
    assert "".join(spaces()(line)) == line
    (ids,) = marked_lines(TOKENIZER, spaces(), line)
    assert [each & (CONTINUES_WORD - 1) for each in ids] == TOKENIZER.ids(line)


def test_marked_words_are_masked_whole_and_marks_removed() -> None:
    (marked,) = marked_lines(TOKENIZER, spaces(), "今天天气 很好 我们")
    ids = [PIECES.index("[CLS]"), *marked, PIECES.index("[SEP]")]
    options = PretrainingOptions(
        whole_word_mask=True, segmenter="spaces", masked_lm_prob=0.4, max_predictions_per_seq=4
    )
    chosen = set()
    for seed in range(30):
        masked, positions, labels = Masking(VOCABULARY, options)(ids, Draws(seed))
        assert max(masked + labels) < len(PIECES)
        chosen.add(tuple(positions))
    assert chosen <= {(1, 2, 3, 4), (5, 6, 7, 8)}
    assert len(chosen) == 2


def test_missing_segmenter_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jieba", None)
    with pytest.raises(UserError, match="jieba is not installed"):
        open_segmenter("jieba")
    assert open_segmenter("none") is None
