from dataclasses import fields
from string import Formatter

from jumar.porting.report.words import CHINESE, ENGLISH, Words, words

SAME = {"tag", "colon"}


def flat(said: Words) -> dict[str, str]:
    """Every word by the name of its field."""
    found: dict[str, str] = {}
    for field in fields(said):
        value = getattr(said, field.name)
        if isinstance(value, dict):
            found |= {f"{field.name}.{key}": text for key, text in value.items()}
        else:
            found[field.name] = value
    return found


def test_every_text_exists_in_both_languages() -> None:
    english, chinese = flat(words("en")), flat(words("zh"))
    assert english.keys() == chinese.keys()
    for name in english.keys() - SAME:
        assert english[name].isascii(), name
        assert any("\u4e00" <= letter <= "\u9fff" for letter in chinese[name]) or (
            name == "title" and "迁移" in chinese[name]
        ), name


def test_both_languages_fill_in_the_same_values() -> None:
    for name, text in flat(ENGLISH).items():
        wished = [field for _, field, _, _ in Formatter().parse(text) if field is not None]
        given = [
            field for _, field, _, _ in Formatter().parse(flat(CHINESE)[name]) if field is not None
        ]
        assert wished == given, name


def test_counts_agree_with_their_nouns() -> None:
    assert ENGLISH.count(ENGLISH.edits, 1234) == "edits: 1,234"
    assert CHINESE.count(CHINESE.edits, 7) == "修改：7"
