"""Splits texts into word pieces: basic tokenization, then the longest pieces of the vocabulary.

`tokenizers` splits words into pieces. It could also split texts into words, but differently from
the original: it drops private-use characters, splits at other Chinese characters, and ignores final
sigmas. Words are often repeated, so each is split once and cached, which is faster than splitting
whole texts with the library.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers.models import WordPiece

from jumar.data.text.basic_words import BasicWords
from jumar.data.text.vocabulary import CONTINUES, Vocabulary, read_vocabulary
from jumar.ground.errors import UserError
from jumar.ground.json_text import parse_json
from jumar.ground.paths import expanded, is_file, is_folder, missing, read_text

MAX_WORD_LENGTH = 200
"""Maximum length of a known word in google-research/bert and NEZHA. Ascend's Bert-base and
Nezha-large use 100."""
_MAX_WORDS = 300_000
"""Maximum number of cached words with their pieces, about 100 MB."""


class Token(NamedTuple):
    """A word piece and the characters of the text that it covers."""

    piece: str
    number: int
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class TokenizerRules:
    """How to split a text into words, and words into pieces.

    Attributes:
        words: Splits a text into words.
        longest_word: Maximum length; longer words are unknown.
        unknown: The piece for words that cannot be composed of pieces.
    """

    words: BasicWords = field(default_factory=BasicWords)
    longest_word: int = MAX_WORD_LENGTH
    unknown: str = "[UNK]"


class Tokenizer:
    """Splits texts into word pieces of a vocabulary.

    Attributes:
        vocabulary: The pieces.
        rules: How to split texts.
    """

    def __init__(self, vocabulary: Vocabulary, rules: TokenizerRules | None = None) -> None:
        self.vocabulary = vocabulary
        self.rules = rules or TokenizerRules()
        self.words = _PieceCache(vocabulary, self.rules)

    def __reduce__(self) -> tuple[type["Tokenizer"], tuple[Vocabulary, TokenizerRules]]:
        # Without the cached words, which differ between processes.
        return Tokenizer, (Vocabulary(self.vocabulary.pieces, self.vocabulary.where), self.rules)

    def ids(self, text: str) -> list[int]:
        """Return the ids of a text's word pieces."""
        self.words.bound()
        return list(chain.from_iterable(map(self.words.__getitem__, self.rules.words(text))))

    def lines(self, text: str) -> Iterator[list[int]]:
        """Yield the ids of each line of a text, several times faster than line by line."""
        for line in self.rules.words.lines(text):
            self.words.bound()
            yield list(chain.from_iterable(map(self.words.__getitem__, line.split())))

    def tokens(self, text: str) -> list[Token]:
        """Return the word pieces of a text with the characters that they cover."""
        tokens: list[Token] = []
        for word, positions in self.rules.words.placed(text):
            numbers = self.words[word]
            start = 0
            for number in numbers:
                piece = self.vocabulary.pieces[number]
                length = len(word) if numbers == self.words.unknown else len(piece)
                end = min(start + length - len(CONTINUES) * (start > 0), len(word))
                tokens.append(Token(piece, number, positions[start], positions[end - 1] + 1))
                start = end
        return tokens


class _PieceCache(dict[str, tuple[int, ...]]):
    """The pieces of each word, computed on first use."""

    def __init__(self, vocabulary: Vocabulary, rules: TokenizerRules) -> None:
        super().__init__()
        self._model = WordPiece(
            vocab=vocabulary.ids,
            unk_token=rules.unknown,
            max_input_chars_per_word=rules.longest_word,
            continuing_subword_prefix=CONTINUES,
        )
        self.unknown = (vocabulary.ids[rules.unknown],)

    def __missing__(self, word: str) -> tuple[int, ...]:
        try:
            pieces = tuple(token.id for token in self._model.tokenize(word))
        except UnicodeEncodeError:  # an unpaired surrogate, which is in no vocabulary
            pieces = self.unknown
        self[word] = pieces
        return pieces

    def bound(self) -> None:
        """Clear the cache if it has too many words."""
        if len(self) > _MAX_WORDS:
            self.clear()


def open_tokenizer(
    path: Path | str, *, lower_case: bool | None = None, longest_word: int | None = None
) -> Tokenizer:
    """Open the tokenizer of a `vocab.txt`, or of a Hugging Face tokenizer's folder.

    Args:
        path: The file or folder.
        lower_case: Whether to convert words to lower case and remove accents; None for the folder's
            setting, or yes for a file.
        longest_word: Maximum length of a known word; None for the folder's setting, or 200.

    Raises:
        UserError: The files cannot be read, or it is not a BERT tokenizer.
    """
    path = expanded(path)
    if is_file(path):
        vocabulary = read_vocabulary(path)
        config = _TokenizerConfig()
    elif is_folder(path):
        vocabulary, config = _read_folder(path)
    else:
        raise missing(path, "vocabulary", more="`jumar data vocab` creates one.")
    lower = config.lower_case if lower_case is None else lower_case
    accents = lower if lower_case is not None or config.accents is None else config.accents
    return Tokenizer(
        vocabulary,
        TokenizerRules(
            words=BasicWords(lower, accents, config.chinese),
            longest_word=longest_word or config.longest_word,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class _TokenizerConfig:
    """Settings from a Hugging Face folder; `accents` is None to strip them with lower case only."""

    lower_case: bool = True
    accents: bool | None = None
    chinese: bool = True
    longest_word: int = MAX_WORD_LENGTH


def _read_folder(folder: Path) -> tuple[Vocabulary, _TokenizerConfig]:
    """Read `tokenizer.json` if it exists; otherwise `vocab.txt` and `tokenizer_config.json`."""
    tokenizer_file = folder / "tokenizer.json"
    if is_file(tokenizer_file):
        return _read_tokenizer_json(tokenizer_file)
    vocabulary_file, config_file = folder / "vocab.txt", folder / "tokenizer_config.json"
    if not is_file(vocabulary_file):
        raise UserError(
            "there is neither a tokenizer.json nor a vocab.txt",
            where=str(folder),
            todo="Specify a vocab.txt or the folder of a BERT tokenizer.",
        )
    vocabulary = read_vocabulary(vocabulary_file)
    config = _json(config_file) if is_file(config_file) else {}
    return vocabulary, _TokenizerConfig(
        lower_case=_choice(config, "do_lower_case", True, config_file) is True,
        accents=_choice(config, "strip_accents", None, config_file),
        chinese=_choice(config, "tokenize_chinese_chars", True, config_file) is True,
    )


def _read_tokenizer_json(path: Path) -> tuple[Vocabulary, _TokenizerConfig]:
    content = _json(path)
    model, normalizer = _part(content, "model", path), _part(content, "normalizer", path)
    kinds = (model.get("type", "WordPiece"), normalizer.get("type"))
    prefix = model.get("continuing_subword_prefix", CONTINUES)
    if kinds != ("WordPiece", "BertNormalizer") or prefix != CONTINUES:
        raise UserError(
            f"is a tokenizer of {kinds[0]} pieces after {kinds[1]}, continued by '{prefix}'",
            where=str(path),
            todo="Use a BERT tokenizer: WordPiece after BertNormalizer, continued by '##'.",
        )
    ids = _part(model, "vocab", path)
    numbers = sorted(number for number in ids.values() if isinstance(number, int))
    if numbers != list(range(len(ids))):
        raise UserError(
            "the ids of its vocabulary are not consecutive from 0",
            where=str(path),
            todo="Write the tokenizer again with `save_pretrained`.",
        )
    pieces = sorted(ids, key=lambda piece: ids[piece])
    longest_word = model.get("max_input_chars_per_word", MAX_WORD_LENGTH)
    return Vocabulary(pieces, str(path)), _TokenizerConfig(
        lower_case=_choice(normalizer, "lowercase", True, path) is True,
        accents=_choice(normalizer, "strip_accents", None, path),
        chinese=_choice(normalizer, "handle_chinese_chars", True, path) is True,
        longest_word=longest_word if isinstance(longest_word, int) else MAX_WORD_LENGTH,
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        content = parse_json(read_text(path))
    except ValueError as error:
        raise UserError(f"is not JSON: {error}", where=str(path)) from error
    if not isinstance(content, dict):
        raise UserError("is not a JSON object", where=str(path))
    return content


def _part(content: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    part = content.get(name)
    if not isinstance(part, dict):
        raise UserError(f"has no '{name}'", where=str(path), todo="Is it a BERT tokenizer?")
    return part


def _choice(content: dict[str, Any], name: str, default: bool | None, path: Path) -> bool | None:
    value = content.get(name, default)
    if value is not None and not isinstance(value, bool):
        raise UserError(f"'{name}' is {value!r}, not true or false", where=str(path))
    return value
