"""The estimate before pre-training data are written covers all files."""

import re
from pathlib import Path

import pytest

from jumar.data.text.original_writer import write_original
from jumar.data.text.pretraining_files import PretrainingRequest
from jumar.data.text.pretraining_options import PretrainingOptions
from jumar.data.text.streaming_writer import write_streaming
from jumar.data.text.tokenizer import Tokenizer
from jumar.data.text.vocabulary import Vocabulary

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"]


def _request(folder: Path, notices: list[str]) -> PretrainingRequest:
    """One file with long documents of long lines, and one with many of a short line each."""
    texts = {
        "long.txt": (("a b c d " * 30 + "\n") * 40 + "\n") * 30,
        "short.txt": "e f g h e f\ng h\n\n" * 30_000,
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return PretrainingRequest(
        files=[folder / name for name in texts],
        tokenizer=Tokenizer(Vocabulary(PIECES, "vocab.txt")),
        options=PretrainingOptions(dupe_factor=2),
        destination=folder / "data",
        notice=notices.append,
    )


@pytest.mark.parametrize("write", [write_original, write_streaming])
def test_files_of_different_kinds_are_all_in_the_estimate(
    tmp_path: Path, write: type[write_original]
) -> None:
    notices: list[str] = []
    written = write(_request(tmp_path, notices))
    match = re.match(r"about ([\d,]+) instances", notices[0])
    assert match
    assert int(match[1].replace(",", "")) == pytest.approx(written.instances, rel=0.15)
