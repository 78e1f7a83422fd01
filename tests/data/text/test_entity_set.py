"""Tagged sentences: their files and samples."""

from pathlib import Path

import numpy as np
import pytest

from jumar.data.samples import SampleKey, fingerprint_of
from jumar.data.text.entity_files import TaggedSentence, read_tagged
from jumar.data.text.entity_set import (
    UNSCORED,
    EntityData,
    EntitySets,
    TaggedSentences,
    open_entity_sets,
)
from jumar.data.text.numbered_lines import Skipping
from jumar.data.text.sequences import Frame
from jumar.data.text.tokenizer import Tokenizer, open_tokenizer
from jumar.data.text.vocabulary import Vocabulary
from jumar.ground.errors import UserError
from jumar.settings import describe
from tests.data.setting_limits import limits_of
from tests.data.text.vocabularies import PIECES

TOKENIZER = Tokenizer(Vocabulary(PIECES))


def read(path: Path, content: str, allowed: int = 0) -> list[TaggedSentence]:
    path.write_text(content, encoding="utf-8")
    return list(read_tagged(path, Skipping(allowed, lambda _: None)))


def opened(folder: Path, train: str, dev: str = "") -> tuple[EntitySets, list[str]]:
    (folder / "train.txt").write_text(train, encoding="utf-8")
    (folder / "dev.txt").write_text(dev or train, encoding="utf-8")
    lines: list[str] = []
    data = EntityData(path=str(folder), max_seq_length=6)
    return open_entity_sets(data, TOKENIZER, lines.append), lines


def test_blank_line_ends_a_sentence(tmp_path: Path) -> None:
    content = "-DOCSTART- -X- O\n\n中 B-LOC\n文\tE-LOC\r\n\n\n\u3000 O\nEU NNP I-NP S-ORG\n"
    assert read(tmp_path / "a", content) == [
        TaggedSentence(["中", "文"], ["B-LOC", "E-LOC"], 3),
        TaggedSentence(["\u3000", "EU"], ["O", "S-ORG"], 7),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("中 O\n文\n", "line 2: has one column instead of a token and its tag: 文"),
        ("中 B\n", "line 1: 'B' is not a tag"),
        ("中 X-LOC\n", "'X-LOC' is not a tag"),
    ],
)
def test_malformed_lines_are_named_or_their_sentence_skipped(
    tmp_path: Path, content: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        read(tmp_path / "a", content)
    assert len(read(tmp_path / "a", content + "\n人 O\n", allowed=1)) == 1


def test_first_piece_of_a_token_has_its_tag(tmp_path: Path) -> None:
    train = "中 B-X\nwant O\n\n\x01 O\ncat B-X\n"
    sets, lines = opened(tmp_path, train)
    assert sets.labels == ("B-X", "O")
    assert not sets.by_character
    batch = sets.train.fetch([SampleKey(0, 0), SampleKey(0, 1)]).batch
    skip = UNSCORED
    assert batch["label"].tolist() == [
        [skip, 0, 1, skip, skip, skip],
        [skip, 1, 0, skip, skip, skip],
    ]
    pieces = [[TOKENIZER.vocabulary.pieces[i] for i in row] for row in batch["input_ids"].tolist()]
    assert pieces[0] == ["[CLS]", "中", "w", "##a", "##n", "[SEP]"]
    assert pieces[1] == ["[CLS]", "[UNK]", "cat", "[SEP]", "[PAD]", "[PAD]"]
    cut = "1 cut to 6 tokens, which loses 0 tags"
    assert lines[0] == f"training: 2 sentences, 4 tokens, 2 tags, {cut}"


def test_truncated_tags_are_counted(tmp_path: Path) -> None:
    sets, lines = opened(tmp_path, "".join(f"{letter} O\n" for letter in "abcdefg") + "\na B-X\n")
    assert "1 cut to 6 tokens, which loses 3 tags" in lines[0]
    assert sets.by_character
    label = sets.train.fetch([SampleKey(0, 0)]).batch["label"]
    assert label.tolist() == [[UNSCORED, 1, 1, 1, 1, UNSCORED]]
    assert list(sets.train.kind.scored_labels()) == [[1, 1, 1, 1], [0]]


def test_scored_labels_are_one_per_token(tmp_path: Path) -> None:
    sets, _ = opened(tmp_path, "中 B-X\nwant O\n\ncat B-X\n")
    assert list(sets.train.kind.scored_labels()) == [[0, 1], [0]]


def test_tags_missing_from_training_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="line 3: the label 'B-Y' is not in the list"):
        opened(tmp_path, "a O\nb B-X\n", "a O\nb B-X\nc B-Y\n")


def test_fingerprint_depends_on_tokens_and_tags(tmp_path: Path) -> None:
    contents = ("a O\nb B-X\n", "a B-X\nb O\n", "a O\nc B-X\n", "a O\n\nb B-X\n")
    prints = {fingerprint_of(opened(tmp_path, content)[0].train) for content in contents}
    assert len(prints) == 4


def test_real_data_is_read_whole(shared: Path) -> None:
    texts = shared / "data" / "nlp-zh"
    tokenizer = open_tokenizer(texts / "vocab.txt")
    for name, train, dev in (("ner-weibo", 1270, 262), ("ner-resume", 3814, 462)):
        sets = open_entity_sets(EntityData(path=str(texts / name)), tokenizer)
        assert sets.evaluation is not None
        assert (len(sets.train), len(sets.evaluation), len(sets.labels)) == (train, dev, 17)
        assert sets.by_character


def test_settings_have_their_defaults_and_limits() -> None:
    rows = {row.path: (row.value, row.unit, row.allowed) for row in describe(EntityData())}
    assert (
        rows
        | {
            "do_lower_case": (True, "", ""),
            "max_seq_length": (256, "", "4 to 2048"),
            "new_texts": ("auto", "", "auto, characters, words"),
            "scoring": ("conll", "", "conll, strict-iob2, strict-iobes"),
            "batch_size": (32, "samples per rank", "1 or more"),
        }
        == rows
    )
    assert limits_of(EntityData())["scoring"] == ("conll", None, None, True)


def test_nearly_all_tokens_are_characters_above_nine_tenths(tmp_path: Path) -> None:
    for letters, by_character in ((9, False), (10, True)):
        sets, _ = opened(tmp_path, "a O\n" * letters + "cat O\n")
        assert sets.by_character is by_character


def test_both_parts_use_the_labels_of_training(tmp_path: Path) -> None:
    train = "a B-X\nb O\n\na O\n"
    sets, lines = opened(tmp_path, train, "c O\ncats O\n\nwant O\nrun O\na B-X\n")
    assert sets.evaluation is not None
    assert (sets.train.training, sets.evaluation.training) == (True, False)
    assert lines == [
        "training: 2 sentences, 3 tokens, 2 tags, 0 cut to 6 tokens",
        "evaluation: 2 sentences, 5 tokens, 2 tags, 1 cut to 6 tokens, which loses 2 tags",
    ]
    kind = sets.evaluation.kind
    assert (len(kind), kind.truncated, kind.lost) == (2, 1, 2)
    sample = kind.map(kind.open(0, SampleKey(0, 1)), 1, SampleKey(0, 1))
    ids = TOKENIZER.vocabulary.ids
    assert sample["input_ids"].tolist() == [
        ids[piece] for piece in ("[CLS]", "c", "cat", "##s", "[SEP]", "[PAD]")
    ]
    assert sample["label"].tolist() == [-1, 1, 1, -1, -1, -1]
    assert sample["input_mask"].tolist() == [1, 1, 1, 1, 1, 0]
    assert sample["label"].dtype == np.int64
    none = EntityData(path=str(tmp_path), eval_path="none", labels=("O", "B-X", "B-Y"))
    alone = open_entity_sets(none, TOKENIZER)
    assert alone.evaluation is None
    assert alone.labels == ("O", "B-X", "B-Y")


def test_file_with_no_remaining_samples_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a\n")
    data = EntityData(path=str(tmp_path), eval_path="none", skip_corrupt=1)
    lines: list[str] = []
    with pytest.raises(UserError, match="there is no usable sentence") as error:
        open_entity_sets(data, TOKENIZER, lines.append)
    assert error.value.where == str(tmp_path / "train.txt")
    assert lines == [
        f"skipped: {tmp_path / 'train.txt'}, line 1: has one column instead of a token and its "
        "tag: a"
    ]


def test_malformed_sentence_is_reported_once_with_its_line_and_the_tag_format(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a"
    path.write_text("a O\n\nb  O\tx\tB-P Q\nc X\nd\n\n \te M-Y \n-DOCSTART- O\nf S-Z")
    lines: list[str] = []
    assert list(read_tagged(path, Skipping(1, lines.append))) == [
        TaggedSentence(["a"], ["O"], 1),
        TaggedSentence(["e"], ["M-Y"], 7),
        TaggedSentence(["f"], ["S-Z"], 9),
    ]
    assert lines == [f"skipped: {path}, line 3: 'Q' is not a tag"]
    with pytest.raises(UserError) as error:
        list(read_tagged(path, Skipping(0, print)))
    assert error.value.todo.startswith(
        "A tag is O, or B-, I-, M-, E- or S- and a type, such as B-PER."
    )


def test_every_token_has_a_tag() -> None:
    sentence = TaggedSentence(["a", "b"], ["O"], 1)
    with pytest.raises(ValueError, match="shorter"):
        TaggedSentences([sentence], {"O": 0}, tokenizer=TOKENIZER, frame=Frame(0, 1, 2, 8))
