"""Sentences and pairs as samples."""

from pathlib import Path

import pytest

from jumar.data.samples import SampleKey, fingerprint_of
from jumar.data.text.sentence_files import SentenceData
from jumar.data.text.sentence_set import SentenceSets, open_sentence_sets
from jumar.data.text.tokenizer import Tokenizer, open_tokenizer
from jumar.data.text.vocabulary import Vocabulary
from jumar.ground.errors import UserError
from tests.data.text.vocabularies import PIECES

TOKENIZER = Tokenizer(Vocabulary(PIECES))


def opened(
    folder: Path, train: str, dev: str = "", *changes: tuple[str, object]
) -> tuple[SentenceSets, list[str]]:
    (folder / "train.tsv").write_text(train, encoding="utf-8")
    (folder / "dev.tsv").write_text(dev or train, encoding="utf-8")
    lines: list[str] = []
    settings: dict[str, object] = {"path": str(folder), "max_seq_length": 6, **dict(changes)}
    return open_sentence_sets(SentenceData(**settings), TOKENIZER, lines.append), lines  # type: ignore[arg-type]


def test_samples_hold_pieces_and_the_number_of_their_label(tmp_path: Path) -> None:
    train = "label\ttext_a\nworse\ta b\nbetter\ta b c d e\nworse\tc\n"
    sets, lines = opened(tmp_path, train, "label\ttext_a\nbetter\tz\n")
    assert sets.labels == ("better", "worse")
    batch = sets.train.fetch([SampleKey(0, 0), SampleKey(3, 1)]).batch
    first, second, mark, end, fill = (
        TOKENIZER.vocabulary.ids[piece] for piece in ("a", "b", "[CLS]", "[SEP]", "[PAD]")
    )
    assert batch["input_ids"].tolist() == [
        [mark, first, second, end, fill, fill],
        [mark, first, second, second + 1, second + 2, end],
    ]
    assert batch["input_mask"].sum(dim=1).tolist() == [4, 6]
    assert batch["label"].tolist() == [1, 0]
    assert lines == [
        "training: 3 sentences of 2 labels, 1 cut to 6 tokens",
        "evaluation: 1 sentence of 2 labels, 0 cut to 6 tokens",
    ]


def test_pairs_share_the_room(tmp_path: Path) -> None:
    train = "text_a\ttext_b\tlabel\na b\tc d\t1\na\tb c d\t0\n"
    sets, lines = opened(tmp_path, train)
    batch = sets.train.fetch([SampleKey(0, 0), SampleKey(0, 1)]).batch
    pieces = [[TOKENIZER.vocabulary.pieces[i] for i in row] for row in batch["input_ids"].tolist()]
    assert pieces[0] == ["[CLS]", "a", "b", "[SEP]", "c", "[SEP]"]
    assert pieces[1] == ["[CLS]", "a", "[SEP]", "b", "c", "[SEP]"]
    assert batch["segment_ids"].tolist() == [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1]]
    assert lines[0] == "training: 2 pairs of 2 labels, 2 cut to 6 tokens"


def test_the_fingerprint_follows_texts_and_labels(tmp_path: Path) -> None:
    header = "label\ttext_a\n"
    prints = {
        fingerprint_of(opened(tmp_path, header + rows)[0].train)
        for rows in ("1\ta\n0\tb\n", "0\ta\n1\tb\n", "1\ta\n0\tc\n", "1\ta\n0\tb\n1\tb\n")
    }
    assert len(prints) == 4
    again = fingerprint_of(opened(tmp_path, header + "1\ta\n0\tb\n")[0].train)
    assert again in prints


@pytest.mark.parametrize(
    ("train", "dev", "message"),
    [
        ("1\ta\n0\tb\n", "2\tc\n", "dev.tsv, line 2: the label '2' is not in the list"),
        ("1\ta\n1\tb\n", "", "all rows have the label '1'"),
        ("-\ta\n", "", "no row can be used"),
    ],
)
def test_labels_that_cannot_be_learned_are_refused(
    tmp_path: Path, train: str, dev: str, message: str
) -> None:
    header = "label\ttext_a\n"
    with pytest.raises(UserError, match=message):
        opened(tmp_path, header + train, header + dev if dev else "")


def test_a_list_of_labels_decides_their_order(tmp_path: Path) -> None:
    train = "label\ttext_a\nyes\ta\nno\tb\n"
    sets, _ = opened(tmp_path, train, "", ("labels", ("yes", "no", "maybe")))
    assert sets.labels == ("yes", "no", "maybe")
    assert sets.train.fetch([SampleKey(0, 0)]).batch["label"].tolist() == [0]
    with pytest.raises(UserError, match="line 3: the label 'no' is not in the list"):
        opened(tmp_path, train, "", ("labels", ("yes", "nope")))


def test_pairs_are_not_scored_with_single_sentences(tmp_path: Path) -> None:
    pairs = "text_a\ttext_b\tlabel\na\tb\t1\nc\td\t0\n"
    with pytest.raises(UserError, match="one of both files has pairs"):
        opened(tmp_path, pairs, "text_a\tlabel\na\t1\n")


def test_real_data_is_read_whole(shared: Path) -> None:
    texts = shared / "data" / "nlp-zh"
    tokenizer = open_tokenizer(texts / "vocab.txt")
    counts = {
        "ocnli-sample": (160, 160, ("contradiction", "entailment", "neutral")),
        "bustm-sample": (1772, 320, ("0", "1")),
    }
    for name, (train, dev, labels) in counts.items():
        sets = open_sentence_sets(SentenceData(path=str(texts / name)), tokenizer)
        assert sets.evaluation is not None
        assert (len(sets.train), len(sets.evaluation), sets.labels) == (train, dev, labels)


def test_a_share_of_the_training_texts_is_held_out_and_equal_texts_stay_together(
    tmp_path: Path,
) -> None:
    letters = "abcdefghijklmnopqrst"
    rows = [f"{'good' if place % 2 else 'bad'}\t{letter}\n" for place, letter in enumerate(letters)]
    (tmp_path / "train.tsv").write_text("label\ttext_a\n" + "".join(rows * 2), encoding="utf-8")
    lines: list[str] = []
    settings = SentenceData(path=str(tmp_path), max_seq_length=6, val_fraction=0.2)
    sets = open_sentence_sets(settings, TOKENIZER, lines.append)
    assert sets.evaluation is not None
    assert (len(sets.train), len(sets.evaluation)) == (32, 8)
    assert sorted(sets.evaluation.kind.labels.tolist()) == [0] * 4 + [1] * 4
    assert lines[0].startswith("evaluation: 8 of the 40 training samples (0.2, of each label")
    # Each text is there twice, so both of it are on one side.
    texts = [sets.evaluation.kind.first[index] for index in range(8)]
    assert len({tuple(text) for text in texts}) <= 4


def test_labels_can_be_sampled_equally_often(tmp_path: Path) -> None:
    train = "label\ttext_a\n" + "a\tx\n" * 9 + "b\ty\n" * 3
    sets, _ = opened(tmp_path, train, train + "b\tz\n", ("sampling", "balanced"))
    assert sets.train.epoch_keys is not None
    keys = sets.train.epoch_keys(1, 0, slice(None))
    labels = sets.train.fetch(keys).batch["label"]
    assert labels.sum().item() == 6
