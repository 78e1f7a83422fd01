"""Sentences and pairs as samples."""

from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from jumar.data.samples import SampleKey, fingerprint_of
from jumar.data.text.sentence_files import SentenceData
from jumar.data.text.sentence_set import SentenceSets, open_sentence_sets, text_collate
from jumar.data.text.sequences import Frame
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


def test_samples_have_pieces_and_a_label_index(tmp_path: Path) -> None:
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


def test_pairs_share_the_available_length(tmp_path: Path) -> None:
    train = "text_a\ttext_b\tlabel\na b\tc d\t1\na\tb c d\t0\n"
    sets, lines = opened(tmp_path, train)
    batch = sets.train.fetch([SampleKey(0, 0), SampleKey(0, 1)]).batch
    pieces = [[TOKENIZER.vocabulary.pieces[i] for i in row] for row in batch["input_ids"].tolist()]
    assert pieces[0] == ["[CLS]", "a", "b", "[SEP]", "c", "[SEP]"]
    assert pieces[1] == ["[CLS]", "a", "[SEP]", "b", "c", "[SEP]"]
    assert batch["segment_ids"].tolist() == [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1]]
    assert lines[0] == "training: 2 pairs of 2 labels, 2 cut to 6 tokens"


def test_fingerprint_depends_on_texts_and_labels(tmp_path: Path) -> None:
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
        ("-\ta\n", "", "there is no usable row"),
    ],
)
def test_unlearnable_labels_are_refused(tmp_path: Path, train: str, dev: str, message: str) -> None:
    header = "label\ttext_a\n"
    with pytest.raises(UserError, match=message):
        opened(tmp_path, header + train, header + dev if dev else "")


def test_list_of_labels_decides_their_order(tmp_path: Path) -> None:
    train = "label\ttext_a\nyes\ta\nno\tb\n"
    sets, _ = opened(tmp_path, train, "", ("labels", ("yes", "no", "maybe")))
    assert sets.labels == ("yes", "no", "maybe")
    assert sets.train.fetch([SampleKey(0, 0)]).batch["label"].tolist() == [0]
    with pytest.raises(UserError, match="line 3: the label 'no' is not in the list"):
        opened(tmp_path, train, "", ("labels", ("yes", "nope")))


def test_pairs_are_not_scored_with_single_sentences(tmp_path: Path) -> None:
    pairs = "text_a\ttext_b\tlabel\na\tb\t1\nc\td\t0\n"
    with pytest.raises(UserError, match="one file has pairs"):
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


def test_share_of_the_training_texts_is_held_out_and_equal_texts_stay_together(
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


def test_labels_only_in_the_list_are_dropped_or_refused(tmp_path: Path) -> None:
    train = "label\ttext_a\nyes\ta\nperhaps\tb\nno\tc\n"
    sets, lines = opened(
        tmp_path, train, "label\ttext_a\nno\tb\n", ("labels", ("yes", "no")), ("skip_corrupt", 1)
    )
    assert sets.train.kind.labels.tolist() == [0, 1]
    assert sets.evaluation is not None
    assert (sets.train.training, sets.evaluation.training) == (True, False)
    assert sets.evaluation.kind.labels.tolist() == [1]
    assert lines == [
        f"skipped: {tmp_path / 'train.tsv'}, line 3: the label 'perhaps' is not in the list",
        "training: 2 sentences of 2 labels, 0 cut to 6 tokens",
        "evaluation: 1 sentence of 2 labels, 0 cut to 6 tokens",
    ]
    assert sets.train.epoch_keys is None


def test_single_label_and_unscorable_data_is_reported_with_its_files(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        opened(tmp_path, "label\ttext_a\n1\ta\n1\tb\n")
    assert str(error.value) == (
        f"{tmp_path / 'train.tsv'}: all rows have the label '1'\n"
        "  Classification needs at least two labels."
    )
    with pytest.raises(UserError) as error:
        opened(tmp_path, "text_a\ttext_b\tlabel\na\tb\t1\nc\td\t0\n", "text_a\tlabel\na\t1\n")
    assert str(error.value) == (
        f"{tmp_path / 'train.tsv'} and {tmp_path / 'dev.tsv'}: one file has pairs and the "
        "other single sentences\n  To ignore the second text: data.text_b=none"
    )
    settings = SentenceData(path=str(tmp_path / "train.tsv"), eval_path="none")
    assert open_sentence_sets(settings, TOKENIZER).evaluation is None


def test_text_is_truncated_to_the_sample_length(tmp_path: Path) -> None:
    single = "label\ttext_a\n0\ta b c d\n1\ta b c d e\n"
    sets, _ = opened(tmp_path, single)
    assert sets.train.kind.truncated == 1
    assert sets.train.kind.first.lengths().tolist() == [4, 4]
    assert sets.train.kind.second is None
    pairs = "label\ttext_a\ttext_b\n0\ta b\tc\n1\ta\tb c d\n1\ta b c d\t\n"
    sets, _ = opened(tmp_path, pairs)
    kind = sets.train.kind
    assert kind.truncated == 2
    assert kind.second is not None
    assert kind.first.lengths().tolist() == [2, 1, 3]
    assert kind.second.lengths().tolist() == [1, 2, 0]
    sample = kind.map(kind.open(2, SampleKey(0, 0)), 0, SampleKey(0, 0))
    ids = TOKENIZER.vocabulary.ids
    assert sample["input_ids"].tolist() == [
        ids[piece] for piece in ("[CLS]", "a", "b", "c", "[SEP]", "[SEP]")
    ]
    assert sample["segment_ids"].tolist() == [0, 0, 0, 0, 0, 1]
    assert int(sample["label"]) == 1


def test_pairs_with_another_second_text_have_another_fingerprint(tmp_path: Path) -> None:
    header = "label\ttext_a\ttext_b\n"
    prints = {
        fingerprint_of(opened(tmp_path, header + rows)[0].train)
        for rows in ("0\ta\tb\n1\ta\tc\n", "0\ta\tc\n1\ta\tc\n", "0\ta\tb\n1\tb\tc\n")
    }
    assert len(prints) == 3


def test_folds_of_pairs_keep_equal_pairs_together_and_are_reported(tmp_path: Path) -> None:
    rows = [f"{n % 2}\t{a}\t{b}\n" for n, (a, b) in enumerate(product("abcdef", "abc"))]
    (tmp_path / "train.tsv").write_text("label\ttext_a\ttext_b\n" + "".join(rows * 2))
    held: list[int] = []
    for fold in range(3):
        lines: list[str] = []
        data = SentenceData(path=str(tmp_path), max_seq_length=8, folds=3, fold=fold)
        sets = open_sentence_sets(data, TOKENIZER, lines.append)
        assert sets.evaluation is not None
        parts = [sets.evaluation.kind, sets.train.kind]
        texts = [
            Counter(
                (part.first[i].tobytes(), part.second[i].tobytes(), int(part.labels[i]))
                for i in range(len(part))
                if part.second is not None
            )
            for part in parts
        ]
        assert not texts[0].keys() & texts[1].keys()
        assert set(texts[0].values()) == {2}
        held.append(len(parts[0]))
        assert lines[0].startswith(
            f"evaluation: {held[-1]} of the 36 training samples (fold {fold} of 3, of each label, "
            "split seed 0, hash "
        )
        assert [line.partition(":")[0] for line in lines] == [
            "evaluation",
            "training",
            "evaluation",
        ]
    assert sum(held) == 36


def test_batch_exceeding_memory_names_both_settings() -> None:
    collate = text_collate(Frame(0, 1, 2, length=2**40))
    with pytest.raises(UserError, match=r"^data.batch_size or data.max_seq_length: 3 samples of"):
        collate(iter(()), 3)
    # Three arrays of eight bytes a number.
    assert text_collate(Frame(0, 1, 2, length=10)).sample_bytes == 240
