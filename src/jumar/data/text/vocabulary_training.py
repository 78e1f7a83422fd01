"""Vocabularies made from texts.

`tokenizers` repeatedly merges the most frequent pair of pieces: byte-pair encoding, whose pieces
are then used as word pieces. Google never published how its own were made. Texts are split into
words as in training, so every piece can occur.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.trainers import WordPieceTrainer

from jumar.data.text.basic_words import BasicWords
from jumar.data.text.documents import decoded
from jumar.data.text.vocabulary import CONTINUES, SPECIAL
from jumar.ground.errors import UserError
from jumar.ground.paths import open_to_read, unreadable

LONGEST_WORD = 100
"""Characters above which a word is left out: longer ones are not words of any language."""
SMALLEST = 2 * len(SPECIAL)
LARGEST = 1 << 20
_READ_BYTES = 2**20
_AT_ONCE = 4096


def train_vocabulary(
    files: Sequence[Path],
    *,
    size: int,
    words: BasicWords,
    min_frequency: int = 2,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[str]:
    """The word pieces of a vocabulary: special pieces, characters, and frequent pieces.

    At most half of the pieces are characters, the most frequent ones. Memory depends on the number
    of different words.

    Args:
        files: Texts in UTF-8.
        size: Maximum number of pieces.
        words: How texts are split into words.
        min_frequency: How often a pair must occur to be merged.
        progress: Receives the bytes read and the total.

    Raises:
        UserError: A file cannot be read or is not UTF-8, there is no text, or the size is out of
            range.
    """
    if not SMALLEST <= size <= LARGEST:
        raise UserError(f"{size}", where="--size", todo=f"Allowed: {SMALLEST} to {LARGEST}.")
    if min_frequency < 1:
        raise UserError(f"{min_frequency}", where="--min-frequency", todo="1 or more.")
    words_of = _counted_words(files, words, progress)
    if not words_of:
        raise UserError("there is no text", where=", ".join(map(str, files[:3])))
    letters = _frequent_letters(words_of, (size - len(SPECIAL)) // 2)
    trainer = WordPieceTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        show_progress=False,
        # The trainer adds letters that it is not given, and drops some, in a random order.
        special_tokens=[*SPECIAL, *letters],
        continuing_subword_prefix=CONTINUES,
    )
    tokenizer = Tokenizer(WordPiece())
    tokenizer.pre_tokenizer = WhitespaceSplit()  # type: ignore[assignment]
    tokenizer.train_from_iterator(_repeated(words_of, frozenset(letters)), trainer)
    pieces = tokenizer.get_vocab(with_added_tokens=True)
    return sorted(pieces, key=lambda piece: pieces[piece])


def _frequent_letters(words_of: Counter[str], most: int) -> list[str]:
    """The most frequent characters, each at the start of words and inside them, by code point."""
    counts: Counter[str] = Counter()
    for word, count in words_of.items():
        for letter in _letters(word):
            counts[letter] += count
    most_frequent = sorted(counts, key=lambda letter: (-counts[letter], letter))[:most]
    return sorted(most_frequent, key=lambda letter: (letter.startswith(CONTINUES), letter))


def _letters(word: str) -> list[str]:
    return [word[0], *(CONTINUES + letter for letter in word[1:])]


def _repeated(words_of: Counter[str], letters: frozenset[str]) -> Iterator[str]:
    """Each word as often as it occurs, except words with rare characters, which get no piece."""
    for word in words_of:
        if letters.issuperset(_letters(word)):
            for done in range(0, words_of[word], _AT_ONCE):
                yield f"{word} " * min(_AT_ONCE, words_of[word] - done)


def _counted_words(
    files: Sequence[Path], words: BasicWords, progress: Callable[[int, int], None]
) -> Counter[str]:
    """How often each word occurs."""
    words_of: Counter[str] = Counter()
    total, done = sum(path.stat().st_size for path in files), 0
    for path in files:
        try:
            with open_to_read(path) as file:
                size, begin = os.fstat(file.fileno()).st_size, 0
                while begin < size:
                    data = b"".join(file.readlines(_READ_BYTES))
                    for line in words.lines(decoded(data, path, begin)):
                        words_of.update(line.split())
                    begin += len(data)
                    progress(done + begin, total)
                done += size
        except OSError as error:
            raise unreadable(path, error) from error
    for word in [word for word in words_of if len(word) > LONGEST_WORD]:
        del words_of[word]
    return words_of
