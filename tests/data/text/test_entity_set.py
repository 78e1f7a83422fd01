"""Tagged sentences: their files and samples."""

from pathlib import Path

import pytest

from jumar.data.samples import SampleKey, fingerprint_of
from jumar.data.text.entity_files import TaggedSentence, read_tagged
from jumar.data.text.entity_set import UNSCORED, EntityData, EntitySets, open_entity_sets
from jumar.data.text.numbered_lines import Skipping
from jumar.data.text.tokenizer import Tokenizer, open_tokenizer
from jumar.data.text.vocabulary import Vocabulary
from jumar.ground.errors import UserError
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


def test_a_blank_line_ends_a_sentence(tmp_path: Path) -> None:
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


def test_the_first_piece_of_a_token_has_its_tag(tmp_path: Path) -> None:
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


def test_tags_that_are_cut_off_are_counted(tmp_path: Path) -> None:
    sets, lines = opened(tmp_path, "".join(f"{letter} O\n" for letter in "abcdefg") + "\na B-X\n")
    assert "1 cut to 6 tokens, which loses 3 tags" in lines[0]
    assert sets.by_character
    label = sets.train.fetch([SampleKey(0, 0)]).batch["label"]
    assert label.tolist() == [[UNSCORED, 1, 1, 1, 1, UNSCORED]]


def test_tags_that_training_lacks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="line 3: the label 'B-Y' is not in the list"):
        opened(tmp_path, "a O\nb B-X\n", "a O\nb B-X\nc B-Y\n")


def test_the_fingerprint_follows_tokens_and_tags(tmp_path: Path) -> None:
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
