"""Makes instances with the random stream of google-research/bert's create_pretraining_data.

One generator draws everything, in the original's order: documents, lengths, next segments,
truncation, masks, and the order of the instances. So the same files and seed lead to the same
instances as the original, but all work is sequential.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from jumar.data.text.documents import Document
from jumar.data.text.pretraining_options import OTHER_DOCUMENT_TRIES, PretrainingOptions
from jumar.data.text.segmenting import CONTINUES_WORD
from jumar.data.text.vocabulary import Vocabulary

_MASK_PROBABILITY, _UNCHANGED_PROBABILITY = 0.8, 0.5
Item = TypeVar("Item")


class Instance(NamedTuple):
    """A masked pair of segments.

    Attributes:
        ids: [CLS], the first segment, [SEP], the second, [SEP]; some pieces are masked.
        first: Number of pieces of the first segment.
        is_random_next: Whether the second is from another document.
        positions: Positions of masked pieces, ascending.
        labels: Their true ids.
    """

    ids: list[int]
    first: int
    is_random_next: bool
    positions: list[int]
    labels: list[int]


class Draws:
    """Draws the same numbers as Python's `random.Random`, in half the time.

    Args:
        seed: The seed, as for `random.Random`.
    """

    def __init__(self, seed: int) -> None:
        generator = random.Random(seed)
        self.random = generator.random
        self._bits: Callable[[int], int] = generator.getrandbits

    def below(self, limit: int) -> int:
        """Draw a number from 0 to limit - 1, like `randrange(limit)`."""
        bits, size = self._bits, limit.bit_length()
        number = bits(size)
        while number >= limit:
            number = bits(size)
        return number

    def between(self, minimum: int, maximum: int) -> int:
        """Draw a number between both limits, inclusive, like `randint`."""
        return minimum + self.below(maximum - minimum + 1)

    def shuffle(self, items: list[Item]) -> None:
        """Shuffle a list in place, like `random.Random.shuffle`."""
        bits = self._bits
        for last in range(len(items) - 1, 0, -1):
            size = (last + 1).bit_length()
            index = bits(size)
            while index > last:
                index = bits(size)
            items[last], items[index] = items[index], items[last]


def original_instances(
    documents: list[Document], vocabulary: Vocabulary, options: PretrainingOptions, draws: Draws
) -> Iterator[Instance]:
    """Yield all instances, before they are shuffled.

    Args:
        documents: At least one document, none of them empty; they are shuffled here.
        vocabulary: Source of random words.
        options: The options of the original.
        draws: The random stream; the caller draws the order of the instances from it afterwards.
    """
    draws.shuffle(documents)
    masking = Masking(vocabulary, options)
    for _ in range(options.dupe_factor):
        for number in range(len(documents)):
            yield from _of_document(documents, number, options, masking, draws)


class Masking:
    """Masks instances.

    Args:
        vocabulary: Source of random words.
        options: Number of masked pieces, and whether to mask whole words.
    """

    def __init__(self, vocabulary: Vocabulary, options: PretrainingOptions) -> None:
        self.start, self.end = vocabulary.id_of("[CLS]"), vocabulary.id_of("[SEP]")
        self._mask = vocabulary.id_of("[MASK]")
        self._words = len(vocabulary)
        self._continuing = vocabulary.continuing
        self._options = options

    def __call__(self, ids: list[int], draws: Draws) -> tuple[list[int], list[int], list[int]]:
        """Return the masked ids, the masked positions in ascending order, and their true ids."""
        sets = self._candidates(ids)
        draws.shuffle(sets)
        if self._options.segmenter != "none":
            ids = [number & ~CONTINUES_WORD for number in ids]
        masked_count = self._options.predictions(len(ids))
        masked = ids.copy()
        positions: list[int] = []
        for positions_of_word in sets:
            if len(positions) >= masked_count:
                break
            if len(positions) + len(positions_of_word) > masked_count:
                continue
            for position in positions_of_word:
                positions.append(position)
                if draws.random() < _MASK_PROBABILITY:
                    masked[position] = self._mask
                elif draws.random() >= _UNCHANGED_PROBABILITY:
                    masked[position] = draws.below(self._words)
        positions.sort()
        return masked, positions, [ids[position] for position in positions]

    def _candidates(self, ids: Sequence[int]) -> list[Sequence[int]]:
        """Return the positions to mask together; a continuing piece joins the previous one."""
        special = (self.start, self.end)
        if not self._options.whole_word_mask:
            return [(position,) for position, number in enumerate(ids) if number not in special]
        sets: list[list[int]] = []
        for position, number in enumerate(ids):
            if number in special:
                continue
            if sets and (number in self._continuing or number & CONTINUES_WORD):
                sets[-1].append(position)
            else:
                sets.append([position])
        return list(sets)


def _of_document(
    documents: list[Document],
    number: int,
    options: PretrainingOptions,
    masking: Masking,
    draws: Draws,
) -> Iterator[Instance]:
    document, max_pieces = documents[number], options.max_pieces
    target = draws.between(2, max_pieces) if draws.random() < options.short_seq_prob else max_pieces
    begin = 0
    while begin < len(document):
        end, length = begin, 0
        while end < len(document) and length < target:
            length += len(document[end])
            end += 1
        count = end - begin
        first_count = draws.between(1, count - 1) if count > 1 else 1
        first = _joined(document[begin : begin + first_count])
        is_random = count == 1 or draws.random() < 0.5
        if is_random:
            # The replaced segment is used for the next instance.
            end = begin + first_count
            second = _from_another(documents, number, target - len(first), draws)
        else:
            second = _joined(document[begin + first_count : end])
        truncate(first, second, max_pieces, draws)
        ids = [masking.start, *first, masking.end, *second, masking.end]
        masked, positions, labels = masking(ids, draws)
        yield Instance(masked, len(first), is_random, positions, labels)
        begin = end


def _from_another(documents: list[Document], number: int, length: int, draws: Draws) -> list[int]:
    """Return pieces of consecutive sentences of a random document, from a random one on."""
    other_number = number
    for _ in range(OTHER_DOCUMENT_TRIES):
        other_number = draws.below(len(documents))
        if other_number != number:
            break
    sentences = documents[other_number]
    pieces: list[int] = []
    for sentence in sentences[draws.below(len(sentences)) :]:
        pieces += sentence
        if len(pieces) >= length:
            break
    return pieces


def truncate(first: list[Item], second: list[Item], max_pieces: int, draws: Draws) -> None:
    """Remove pieces from a random end of the longer segment until both fit."""
    for _ in range(len(first) + len(second) - max_pieces):
        longer = first if len(first) > len(second) else second
        if draws.random() < 0.5:
            del longer[0]
        else:
            longer.pop()


def _joined(sentences: list[list[int]]) -> list[int]:
    return [piece for sentence in sentences for piece in sentence]
