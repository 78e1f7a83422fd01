"""Words, numbers and characters that are written, and which of them are for the test part alone."""

import re
from collections import Counter

import numpy as np
import pytest

from jumar.data.polygons.vocabulary import CHINESE, LATIN, WORDS, drawn_word

FORMS = {
    r"\d+": (1, 0, 0),
    r"\$\d+\.\d+": (1, 1, 0),
    r"\d+%": (0, 1, 0),
    r"\d+/\d+": (0, 1, 1),
    r"#\d+": (1, 0, 0),
    r"\+\d+-\d+": (1, 2, 0),
    r"\(\d+\)": (0, 1, 0),
    r"No\.\d+": (1, 0, 0),
}


def test_every_character_is_listed_once_in_order() -> None:
    assert list(LATIN) == sorted(set(LATIN))
    assert set("".join(WORDS)) | set("0123456789$%&.,:;!?-+/()@#") == set(LATIN)
    assert list(CHINESE) == sorted(set(CHINESE))
    assert (len(WORDS), min(map(len, WORDS))) == (101, 2)


@pytest.mark.parametrize("test", [False, True])
def test_three_quarters_are_words_in_four_cases_and_the_rest_numbers(test: bool) -> None:
    random = np.random.default_rng(1)
    words = [drawn_word(False, random, test=test) for _ in range(6000)]
    known = {word.lower(): place for place, word in enumerate(WORDS)}
    letters = [word for word in words if word.lower() in known]
    assert len(letters) / len(words) == pytest.approx(0.75, abs=0.02)
    places = {known[word.lower()] % 4 for word in letters}
    assert places == ({3} if test else {0, 1, 2})
    ours = [place for place in range(len(WORDS)) if (place % 4 == 3) == test]
    assert {known[word.lower()] for word in letters} == set(ours)
    # A word that is not all capitals comes as it is, in capitals, capitalised and in small letters.
    place = next(place for place in ours if WORDS[place].islower())
    spelt = Counter(word for word in letters if known[word.lower()] == place)
    total = spelt.total()
    assert spelt[WORDS[place].upper()] / total == pytest.approx(0.25, abs=0.2)
    assert spelt[WORDS[place].capitalize()] / total == pytest.approx(0.25, abs=0.2)
    assert spelt[WORDS[place]] / total == pytest.approx(0.5, abs=0.2)

    counts: Counter[str] = Counter()
    numbers: dict[str, set[int]] = {form: set() for form in FORMS}
    for word in words:
        if word.lower() not in known:
            (form,) = (form for form in FORMS if re.fullmatch(form, word))
            counts[form] += 1
            numbers[form].update(map(int, re.findall(r"\d+", word)))
    for form in FORMS:
        assert counts[form] / counts.total() == pytest.approx(1 / 8, abs=0.03)
    assert {number % 4 for number in numbers[r"#\d+"]} == ({3} if test else {0, 1, 2})
    assert {number % 4 for number in numbers[r"\d+%"]} == ({3} if test else {0, 1, 2})
    assert max(numbers[r"\d+"] | numbers[r"#\d+"] | numbers[r"No\.\d+"]) in range(960, 1000)
    hundreds = numbers[r"\d+%"] | numbers[r"\(\d+\)"]
    assert hundreds == {number for number in range(100) if (number % 4 == 3) == test}


def test_parts_of_a_date_and_of_an_address_run_from_one_to_twelve() -> None:
    random = np.random.default_rng(1)
    words = [drawn_word(False, random, test=False) for _ in range(12_000)]
    dates = [word.split("/") for word in words if re.fullmatch(r"\d+/\d+", word)]
    assert {int(month) for _, month in dates} == set(range(1, 13))


@pytest.mark.parametrize("test", [False, True])
def test_one_to_six_chinese_characters_are_drawn_from_the_parts_own(test: bool) -> None:
    random = np.random.default_rng(2)
    words = [drawn_word(True, random, test=test) for _ in range(3000)]
    lengths = Counter(map(len, words))
    assert sorted(lengths) == [1, 2, 3, 4, 5, 6]
    assert min(lengths.values()) > 400
    ours = {character for place, character in enumerate(CHINESE) if (place % 4 == 3) == test}
    assert {character for word in words for character in word} == ours
