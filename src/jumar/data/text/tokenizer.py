"""Texts as word pieces: basic tokenization, then the longest pieces of the vocabulary.

`tokenizers` splits words into pieces. It could split texts into words too, but not as the original
does: it drops private-use characters, splits at other Chinese characters, and ignores final sigmas.
Words repeat, so each is split once and cached; that is faster than splitting whole texts with the
library.
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

LONGEST_WORD = 200
"""Characters above which a word is unknown, in google-research/bert and NEZHA. Ascend's Bert-base
and Nezha-large use 100."""
_MAX_WORDS = 300_000
"""Number of cached words with their pieces, about 100 MB."""


class Token(NamedTuple):
    """A word piece and the characters of the text that it covers."""

    piece: str
    number: int
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class TokenizerRules:
    """How a text becomes words, and words become pieces.

    Attributes:
        words: How a text is split into words.
        longest_word: Characters above which a word is unknown.
        unknown: The piece for a word that cannot be composed of pieces.
    """

    words: BasicWords = field(default_factory=BasicWords)
    longest_word: int = LONGEST_WORD
    unknown: str = "[UNK]"


class Tokenizer:
    """Texts as word pieces of a vocabulary.

    Attributes:
        vocabulary: The pieces.
        rules: How texts are split.
    """

    def __init__(self, vocabulary: Vocabulary, rules: TokenizerRules | None = None) -> None:
        self.vocabulary = vocabulary
        self.rules = rules or TokenizerRules()
        self.words = _CutWords(vocabulary, self.rules)

    def __reduce__(self) -> tuple[type["Tokenizer"], tuple[Vocabulary, TokenizerRules]]:
        # Without the cached words, which differ between processes.
        return Tokenizer, (Vocabulary(self.vocabulary.pieces, self.vocabulary.where), self.rules)

    def ids(self, text: str) -> list[int]:
        """The ids of a text's word pieces."""
        self.words.bound()
        return list(chain.from_iterable(map(self.words.__getitem__, self.rules.words(text))))

    def lines(self, text: str) -> Iterator[list[int]]:
        """The ids of each line of a text; several times faster than line by line."""
        for line in self.rules.words.lines(text):
            self.words.bound()
            yield list(chain.from_iterable(map(self.words.__getitem__, line.split())))

    def tokens(self, text: str) -> list[Token]:
        """The word pieces of a text with the characters that they cover."""
        tokens: list[Token] = []
        for word, positions in self.rules.words.placed(text):
            numbers = self.words[word]
            begin = 0
            for number in numbers:
                piece = self.vocabulary.pieces[number]
                length = len(word) if numbers == self.words.unknown else len(piece)
                end = min(begin + length - len(CONTINUES) * (begin > 0), len(word))
                tokens.append(Token(piece, number, positions[begin], positions[end - 1] + 1))
                begin = end
        return tokens


class _CutWords(dict[str, tuple[int, ...]]):
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
        except UnicodeEncodeError:  # an unpaired surrogate, which no vocabulary has
            pieces = self.unknown
        self[word] = pieces
        return pieces

    def bound(self) -> None:
        """Clear the cache when it has too many words."""
        if len(self) > _MAX_WORDS:
            self.clear()


def open_tokenizer(
    path: Path | str, *, lower_case: bool | None = None, longest_word: int | None = None
) -> Tokenizer:
    """The tokenizer of a `vocab.txt`, or of a Hugging Face tokenizer's folder.

    Args:
        path: The file or folder.
        lower_case: Whether words become lower case and lose their accents; None for the folder's
            setting, or yes for a file.
        longest_word: Characters above which a word is unknown; None for the folder's setting, or
            200.

    Raises:
        UserError: The files cannot be read, or the folder's tokenizer is not BERT's.
    """
    path = expanded(path)
    if is_file(path):
        vocabulary = read_vocabulary(path)
        config = _TokenizerConfig()
    elif is_folder(path):
        vocabulary, config = _read_folder(path)
    else:
        raise missing(path, "vocabulary", more="`jumar data vocab` writes one.")
    lower = config.lower_case if lower_case is None else lower_case
    accents = lower if lower_case is not None or config.accents is None else config.accents
    return Tokenizer(
        vocabulary,
        TokenizerRules(
            words=BasicWords(lower, accents, config.chinese),
            longest_word=longest_word or config.longest,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class _TokenizerConfig:
    """Settings from a Hugging Face folder; `accents` is None if it follows the case."""

    lower_case: bool = True
    accents: bool | None = None
    chinese: bool = True
    longest: int = LONGEST_WORD


def _read_folder(folder: Path) -> tuple[Vocabulary, _TokenizerConfig]:
    """`tokenizer.json` if there is one; else `vocab.txt` and `tokenizer_config.json`."""
    tokenizer_file = folder / "tokenizer.json"
    if is_file(tokenizer_file):
        return _read_tokenizer_json(tokenizer_file)
    vocabulary_file, config_file = folder / "vocab.txt", folder / "tokenizer_config.json"
    if not is_file(vocabulary_file):
        raise UserError(
            "there is neither a tokenizer.json nor a vocab.txt",
            where=str(folder),
            todo="Give a vocab.txt or the folder of a BERT tokenizer.",
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
            todo="BERT's is needed: WordPiece after BertNormalizer, continued by '##'.",
        )
    ids = _part(model, "vocab", path)
    numbers = sorted(number for number in ids.values() if isinstance(number, int))
    if numbers != list(range(len(ids))):
        raise UserError(
            "the ids of its vocabulary are not 0 to the number of its word pieces",
            where=str(path),
            todo="Write the tokenizer again with `save_pretrained`.",
        )
    pieces = sorted(ids, key=lambda piece: ids[piece])
    longest = model.get("max_input_chars_per_word", LONGEST_WORD)
    return Vocabulary(pieces, str(path)), _TokenizerConfig(
        lower_case=_choice(normalizer, "lowercase", True, path) is True,
        accents=_choice(normalizer, "strip_accents", None, path),
        chinese=_choice(normalizer, "handle_chinese_chars", True, path) is True,
        longest=longest if isinstance(longest, int) else LONGEST_WORD,
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
