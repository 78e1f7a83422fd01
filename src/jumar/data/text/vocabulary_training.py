"""Creates vocabularies from texts.

`tokenizers` repeatedly merges the most frequent pair of pieces (byte-pair encoding); the resulting
pieces are used as word pieces. Google never published how its vocabularies were made. Texts are
split into words as in training, so every piece can occur.
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

MAX_WORD_LENGTH = 100
"""Maximum length of a word: longer ones, which are not words of any language, are left out."""
MIN_SIZE = 2 * len(SPECIAL)
MAX_SIZE = 1 << 20
_READ_BYTES = 2**20
_BATCH_WORDS = 4096


def train_vocabulary(
    files: Sequence[Path],
    *,
    size: int,
    words: BasicWords,
    min_frequency: int = 2,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[str]:
    """Return the word pieces of a vocabulary: special pieces, characters, and frequent pieces.

    At most half of the pieces are characters, the most frequent ones. Memory depends on the number
    of different words.

    Args:
        files: Texts in UTF-8.
        size: Maximum number of pieces.
        words: Splits texts into words.
        min_frequency: Minimum frequency of a pair to be merged.
        progress: Called with the number of bytes read and the total.

    Raises:
        UserError: A file cannot be read or is not UTF-8, there is no text, or the size is out of
            range.
    """
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise UserError(f"{size}", where="--size", todo=f"Allowed: {MIN_SIZE} to {MAX_SIZE}.")
    if min_frequency < 1:
        raise UserError(f"{min_frequency}", where="--min-frequency", todo="Allowed: 1 or more.")
    word_counts = _count_words(files, words, progress)
    if not word_counts:
        raise UserError("there is no text", where=", ".join(map(str, files[:3])))
    letters = _frequent_letters(word_counts, (size - len(SPECIAL)) // 2)
    trainer = WordPieceTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        show_progress=False,
        # Given explicitly, since the trainer would add and drop letters in a random order.
        special_tokens=[*SPECIAL, *letters],
        continuing_subword_prefix=CONTINUES,
    )
    tokenizer = Tokenizer(WordPiece())
    tokenizer.pre_tokenizer = WhitespaceSplit()  # type: ignore[assignment]
    tokenizer.train_from_iterator(_repeated(word_counts, frozenset(letters)), trainer)
    pieces = tokenizer.get_vocab(with_added_tokens=True)
    return sorted(pieces, key=lambda piece: pieces[piece])


def _frequent_letters(word_counts: Counter[str], max_count: int) -> list[str]:
    """Return the most frequent characters, at the start of words and inside them, sorted."""
    counts: Counter[str] = Counter()
    for word, count in word_counts.items():
        for letter in _letters(word):
            counts[letter] += count
    most_frequent = sorted(counts, key=lambda letter: (-counts[letter], letter))[:max_count]
    return sorted(most_frequent, key=lambda letter: (letter.startswith(CONTINUES), letter))


def _letters(word: str) -> list[str]:
    return [word[0], *(CONTINUES + letter for letter in word[1:])]


def _repeated(word_counts: Counter[str], letters: frozenset[str]) -> Iterator[str]:
    """Yield each word as often as it occurs, except words with rare characters."""
    for word in word_counts:
        if letters.issuperset(_letters(word)):
            for done in range(0, word_counts[word], _BATCH_WORDS):
                yield f"{word} " * min(_BATCH_WORDS, word_counts[word] - done)


def _count_words(
    files: Sequence[Path], words: BasicWords, progress: Callable[[int, int], None]
) -> Counter[str]:
    """Count the occurrences of each word."""
    word_counts: Counter[str] = Counter()
    total, done = sum(path.stat().st_size for path in files), 0
    for path in files:
        try:
            with open_to_read(path) as file:
                size, begin = os.fstat(file.fileno()).st_size, 0
                while begin < size:
                    data = b"".join(file.readlines(_READ_BYTES))
                    for line in words.lines(decoded(data, path, begin)):
                        word_counts.update(line.split())
                    begin += len(data)
                    progress(done + begin, total)
                done += size
        except OSError as error:
            raise unreadable(path, error) from error
    for word in [word for word in word_counts if len(word) > MAX_WORD_LENGTH]:
        del word_counts[word]
    return word_counts
