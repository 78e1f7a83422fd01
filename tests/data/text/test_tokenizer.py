"""Word pieces of texts, their places, and the files that tokenizers come in."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.text import tokenizer as tokenizer_module
from jumar.data.text.basic_words import BasicWords
from jumar.data.text.tokenizer import Token, Tokenizer, TokenizerRules, open_tokenizer
from jumar.data.text.vocabulary import Vocabulary
from jumar.ground.errors import UserError
from tests.data.text.vocabularies import PIECES, write_vocabulary

TOKENIZER = Tokenizer(Vocabulary(PIECES))


def longest_first(word: str) -> list[str]:
    """The definition: from the left, always the longest piece there is."""
    pieces: list[str] = []
    start = 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = "##" * (start > 0) + word[start:end]
            if piece in PIECES:
                pieces.append(piece)
                start = end
                break
        else:
            return ["[UNK]"]
    return pieces


@given(st.text(st.sampled_from("abcthesruningwd 中文!é\u0301Σ☃")))
def test_word_is_split_into_its_longest_pieces(text: str) -> None:
    expected = [piece for word in BasicWords()(text) for piece in longest_first(word)]
    assert [TOKENIZER.vocabulary.pieces[number] for number in TOKENIZER.ids(text)] == expected
    assert [token.piece for token in TOKENIZER.tokens(text)] == expected


@given(st.text(st.sampled_from("abcthesruningwd 中文!é\u0301☃")))
def test_token_covers_its_source_characters(text: str) -> None:
    before = 0
    for token in TOKENIZER.tokens(text):
        assert before <= token.start < token.end <= len(text)
        before = token.end
        covered = "".join(BasicWords()(text[token.start : token.end]))
        assert token.piece == "[UNK]" or covered == token.piece.removeprefix("##")


def test_offsets_survive_accents_case_and_blanks() -> None:
    text = "  The\u3000CÁT runs!"
    assert [(token.piece, text[token.start : token.end]) for token in TOKENIZER.tokens(text)] == [
        ("the", "The"),
        ("cat", "CÁT"),
        ("run", "run"),
        ("##s", "s"),
        ("!", "!"),
    ]


def test_unpaired_surrogate_is_an_unknown_word() -> None:
    assert TOKENIZER.ids("a \ud800") == [PIECES.index("a"), PIECES.index("[UNK]")]


@pytest.mark.parametrize(("length", "known"), [(100, True), (101, False)])
def test_longer_words_are_unknown(length: int, known: bool) -> None:
    tokenizer = Tokenizer(Vocabulary(PIECES), TokenizerRules(longest_word=100))
    assert (len(tokenizer.ids("a" * length)) == length) == known


def test_pickled_tokenizer_omits_its_cache() -> None:
    tokenizer = Tokenizer(Vocabulary(PIECES))
    few = len(pickle.dumps(tokenizer))
    before = tokenizer.ids("the cats ran")
    data = pickle.dumps(tokenizer)
    assert len(data) == few
    assert pickle.loads(data).ids("the cats ran") == before


def write_folder(folder: Path, **config: Any) -> Path:
    folder.mkdir()
    write_vocabulary(folder / "vocab.txt")
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def write_tokenizer_json(
    folder: Path, *, model: dict[str, Any], normalizer: dict[str, Any]
) -> Path:
    folder.mkdir()
    vocab = {piece: number for number, piece in enumerate(PIECES)}
    content = {
        "model": {"type": "WordPiece", "vocab": vocab, **model},
        "normalizer": {"type": "BertNormalizer", "lowercase": True, **normalizer},
    }
    (folder / "tokenizer.json").write_text(json.dumps(content))
    return folder


def test_vocab_file_is_lower_case_by_default(tmp_path: Path) -> None:
    path = write_vocabulary(tmp_path / "vocab.txt")
    assert open_tokenizer(path).rules.words == BasicWords(True, True)
    assert open_tokenizer(path, lower_case=False).rules.words == BasicWords(False, False)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, BasicWords(True, True)),
        ({"do_lower_case": False}, BasicWords(False, False)),
        ({"do_lower_case": True, "strip_accents": False}, BasicWords(True, False)),
        ({"tokenize_chinese_chars": False}, BasicWords(True, True, False)),
    ],
)
def test_folder_configures_the_tokenizer(
    tmp_path: Path, config: dict[str, Any], words: BasicWords
) -> None:
    assert open_tokenizer(write_folder(tmp_path / "bert", **config)).rules.words == words


def test_tokenizer_json_is_sufficient(tmp_path: Path) -> None:
    folder = write_tokenizer_json(
        tmp_path / "bert",
        model={"max_input_chars_per_word": 100},
        normalizer={"lowercase": False, "strip_accents": None},
    )
    tokenizer = open_tokenizer(folder)
    assert tokenizer.rules == TokenizerRules(words=BasicWords(False, False), longest_word=100)
    assert list(tokenizer.vocabulary.pieces) == list(PIECES)
    assert open_tokenizer(folder, lower_case=True).rules.words == BasicWords(True, True)


@pytest.mark.parametrize(
    ("model", "normalizer", "what"),
    [
        ({"type": "BPE"}, {}, "BPE"),
        ({}, {"type": "Lowercase"}, "Lowercase"),
        ({"vocab": {"[PAD]": 3}}, {}, "ids of its vocabulary"),
        ({}, {"lowercase": "yes"}, "not true or false"),
    ],
)
def test_another_kind_of_tokenizer_is_refused(
    tmp_path: Path, model: dict[str, Any], normalizer: dict[str, Any], what: str
) -> None:
    folder = write_tokenizer_json(tmp_path / "other", model=model, normalizer=normalizer)
    with pytest.raises(UserError, match=what):
        open_tokenizer(folder)


def test_folder_without_a_tokenizer_and_missing_path_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="neither"):
        open_tokenizer(tmp_path)
    with pytest.raises(UserError, match="no such vocabulary"):
        open_tokenizer(tmp_path / "none")
    (tmp_path / "tokenizer.json").write_text("[1")
    with pytest.raises(UserError, match="not JSON"):
        open_tokenizer(tmp_path)


def test_tokens_have_piece_id_and_offset() -> None:
    number = PIECES.index
    assert TOKENIZER.tokens(" cats \u2603\u2603, wantx") == [
        Token("cat", number("cat"), 1, 4),
        Token("##s", number("##s"), 4, 5),
        Token("[UNK]", number("[UNK]"), 6, 8),
        Token(",", number(","), 8, 9),
        *(
            Token(piece, number(piece), place, place + 1)
            for place, piece in enumerate(("w", "##a", "##n", "##t", "##x"), start=10)
        ),
    ]
    assert list(TOKENIZER.lines("cats\n\n\u2603 the")) == [
        [number("cat"), number("##s")],
        [],
        [number("[UNK]"), number("the")],
    ]


def test_word_cache_is_cleared_when_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_module, "_MAX_WORDS", 3)
    tokenizer = Tokenizer(Vocabulary(PIECES))
    counts: list[int] = []
    for text in ("the cat sat", "the dog", "ran"):
        tokenizer.ids(text)
        counts.append(len(tokenizer.words))
    assert counts == [3, 4, 1]
    assert list(tokenizer.lines("a b c d\ne\nf")) == [
        TOKENIZER.ids(line) for line in ("a b c d", "e", "f")
    ]
    assert set(tokenizer.words) == {"e", "f"}


def test_word_may_have_200_characters_by_default(tmp_path: Path) -> None:
    path = write_vocabulary(tmp_path / "vocab.txt")
    tokenizer = open_tokenizer(path)
    assert tokenizer.rules.longest_word == TokenizerRules().longest_word == 200
    assert len(tokenizer.ids("a" * 200)) == 200
    assert tokenizer.ids("a" * 201) == [PIECES.index("[UNK]")]
    assert open_tokenizer(path, longest_word=7).rules.longest_word == 7
    folder = write_tokenizer_json(
        tmp_path / "bert", model={"max_input_chars_per_word": "many"}, normalizer={}
    )
    assert open_tokenizer(folder).rules.longest_word == 200
    assert open_tokenizer(folder, longest_word=7).rules.longest_word == 7
    (tmp_path / "other").mkdir()
    folder = write_tokenizer_json(tmp_path / "other" / "bert", model={}, normalizer={})
    assert open_tokenizer(folder).rules.longest_word == 200


@pytest.mark.parametrize(
    ("normalizer", "words"),
    [
        ({}, BasicWords(True, True, True)),
        ({"lowercase": False}, BasicWords(False, False, True)),
        ({"lowercase": False, "strip_accents": True}, BasicWords(False, True, True)),
        ({"strip_accents": False}, BasicWords(True, False, True)),
        ({"handle_chinese_chars": False}, BasicWords(True, True, False)),
        ({"lowercase": None, "handle_chinese_chars": None}, BasicWords(False, False, False)),
    ],
)
def test_normalizer_configures_word_splitting(
    tmp_path: Path, normalizer: dict[str, Any], words: BasicWords
) -> None:
    folder = write_tokenizer_json(tmp_path / "bert", model={}, normalizer=normalizer)
    assert open_tokenizer(folder).rules.words == words
    # Who asks for a case gets the accents that go with it.
    for lower in (True, False):
        asked = open_tokenizer(folder, lower_case=lower).rules.words
        assert asked == BasicWords(lower, lower, words.split_chinese)
    content = json.loads((folder / "tokenizer.json").read_text())
    config = {"do_lower_case": content["normalizer"]["lowercase"]}
    names = {"strip_accents": "strip_accents", "handle_chinese_chars": "tokenize_chinese_chars"}
    config |= {names[name]: value for name, value in normalizer.items() if name in names}
    assert open_tokenizer(write_folder(tmp_path / "older", **config)).rules.words == words


def test_tokenizer_without_lowercase_or_type_uses_the_defaults(tmp_path: Path) -> None:
    folder = write_tokenizer_json(tmp_path / "bert", model={}, normalizer={})
    content = json.loads((folder / "tokenizer.json").read_text())
    del content["normalizer"]["lowercase"], content["model"]["type"]
    (folder / "tokenizer.json").write_text(json.dumps(content))
    tokenizer = open_tokenizer(folder)
    assert tokenizer.rules == TokenizerRules()
    assert tokenizer.vocabulary.where == str(folder / "tokenizer.json")
    # The config of a folder without a file of it, too.
    write_vocabulary(tmp_path / "vocab.txt")
    assert open_tokenizer(tmp_path).rules == TokenizerRules()


@pytest.mark.parametrize(
    ("changed", "what", "todo"),
    [
        (
            {"model": {"type": "BPE"}},
            "is a tokenizer of BPE pieces after BertNormalizer, continued by '##'",
            "Use a BERT tokenizer: WordPiece after BertNormalizer, continued by '##'.",
        ),
        (
            {"model": {"continuing_subword_prefix": "@"}},
            "is a tokenizer of WordPiece pieces after BertNormalizer, continued by '@'",
            "Use a BERT tokenizer: WordPiece after BertNormalizer, continued by '##'.",
        ),
        (
            {"normalizer": {"type": None}},
            "is a tokenizer of WordPiece pieces after None, continued by '##'",
            "Use a BERT tokenizer: WordPiece after BertNormalizer, continued by '##'.",
        ),
        ({"normalizer": None}, "has no 'normalizer'", "Is it a BERT tokenizer?"),
        ({"model": None}, "has no 'model'", "Is it a BERT tokenizer?"),
        ({"model": {"vocab": [1]}}, "has no 'vocab'", "Is it a BERT tokenizer?"),
        (
            {"model": {"vocab": {"[PAD]": 1, "[UNK]": 2}}},
            "the ids of its vocabulary are not consecutive from 0",
            "Write the tokenizer again with `save_pretrained`.",
        ),
        (
            {"model": {"vocab": {"[PAD]": 0, "[UNK]": "1"}}},
            "the ids of its vocabulary are not consecutive from 0",
            "Write the tokenizer again with `save_pretrained`.",
        ),
        ({"normalizer": {"strip_accents": 1}}, "'strip_accents' is 1, not true or false", ""),
    ],
)
def test_reason_why_a_tokenizer_is_not_berts_is_reported(
    tmp_path: Path, changed: dict[str, Any], what: str, todo: str
) -> None:
    folder = write_tokenizer_json(tmp_path / "bert", model={}, normalizer={})
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    for name, part in changed.items():
        content[name] = part and {**content[name], **part}
    path.write_text(json.dumps(content))
    with pytest.raises(UserError) as error:
        open_tokenizer(folder)
    assert (error.value.where, error.value.what, error.value.todo) == (str(path), what, todo)
    path.write_text("[1]")
    with pytest.raises(UserError, match="is not a JSON object") as error:
        open_tokenizer(folder)
    assert error.value.where == str(path)
