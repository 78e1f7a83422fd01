"""The estimate before pre-training data are written covers all files."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jumar.data.text.documents import Document, Span
from jumar.data.text.estimate import Estimate, _rounded, announced, sample_of
from jumar.data.text.original_writer import write_original
from jumar.data.text.pretraining_files import PretrainingRequest
from jumar.data.text.pretraining_options import PretrainingOptions
from jumar.data.text.streaming_writer import write_streaming
from jumar.data.text.tokenizer import Tokenizer
from jumar.data.text.vocabulary import Vocabulary
from jumar.ground.errors import UserError

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
def test_files_of_all_kinds_enter_the_estimate(tmp_path: Path, write: type[write_original]) -> None:
    notices: list[str] = []
    written = write(_request(tmp_path, notices))
    match = re.match(r"about ([\d,]+) instances", notices[0])
    assert match
    assert int(match[1].replace(",", "")) == pytest.approx(written.instances, rel=0.15)


def test_small_text_is_its_own_sample(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a b c\nd\n\ne\n")
    (tmp_path / "empty").write_text("")
    notices: list[str] = []
    request = PretrainingRequest(
        files=[tmp_path / "a", tmp_path / "empty"],
        tokenizer=Tokenizer(Vocabulary(PIECES, "vocab.txt")),
        options=PretrainingOptions(dupe_factor=3),
        destination=tmp_path / "data",
        notice=notices.append,
    )
    seen: list[list[Document]] = []

    def records(documents: list[Document]) -> Iterator[bytes]:
        seen.append(documents)
        yield from (bytes(100), bytes(50))

    assert announced(request, records, processes=2) == Estimate(instances=6, pieces=5)
    assert seen == [[[[5, 6, 7], [8]], [[9]]]]
    # Three times two records with 16 bytes around each: 3 * (116 + 66).
    (notice,) = notices
    assert notice.rpartition(", ")[0] == "about 6 instances, 546 B (1 KiB while writing)"
    (tmp_path / "a").write_text("\n\n")
    assert announced(request, records) == Estimate(instances=0, pieces=0)
    assert len(notices) == len(seen) == 1


def test_time_is_divided_among_processes_except_for_one_off_reading(
    tmp_path: Path,
) -> None:
    """Making the records of a text sleeps, and reading it does not."""
    (tmp_path / "a").write_text("a b c\n")

    def seconds(processes: int, dupe_factor: int) -> float:
        notices: list[str] = []
        request = PretrainingRequest(
            files=[tmp_path / "a"],
            tokenizer=Tokenizer(Vocabulary(PIECES, "vocab.txt")),
            options=PretrainingOptions(dupe_factor=dupe_factor),
            destination=tmp_path / "data",
            notice=notices.append,
        )

        def records(_documents: list[Document]) -> Iterator[bytes]:
            time.sleep(0.1)
            yield b"record"

        announced(request, records, processes=processes)
        number, unit = notices[0].rpartition(", ")[2].split()
        return int(number) * {"s": 1, "min": 60}[unit]

    # 50 s if nothing else delays what sleeps.
    assert 50 <= seconds(1, 500) < 600
    assert 50 <= seconds(4, 2000) < 600


def test_sample_is_the_start_of_sixteen_files_in_proportion(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number:02}" for number in range(33)]
    for path in paths:
        path.write_text("123456789\n" * 3)
    few = sample_of(paths[:16])
    assert few == [Span(path, 0, 30) for path in paths[:16]]
    assert [span.path for span in sample_of(paths[:17])] == paths[:17:2]
    assert [span.path for span in sample_of(paths)] == paths[::3]
    # Of 2**18 bytes three quarters and one, each up to the end of a line.
    paths[0].write_text("123456789\n" * 90_000)
    paths[1].write_text("123456789\n" * 30_000)
    paths[2].write_text("")
    assert sample_of(paths[:3]) == [Span(paths[0], 0, 196_610), Span(paths[1], 0, 65_540)]
    assert sample_of([paths[2]]) == []


def test_estimate_has_two_significant_digits() -> None:
    numbers = [0.0, 9.9, 99.4, 101.0, 149.0, 1_251.0, 123_456.0]
    assert [_rounded(number) for number in numbers] == [
        *("0", "9", "99", "100", "150", "1,300", "120,000")
    ]


def test_data_exceeding_the_disk_is_refused_after_the_estimate(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a b c\n")
    notices: list[str] = []
    request = PretrainingRequest(
        files=[tmp_path / "a"],
        tokenizer=Tokenizer(Vocabulary(PIECES, "vocab.txt")),
        options=PretrainingOptions(dupe_factor=100_000),
        destination=tmp_path / "data",
        notice=notices.append,
    )
    with pytest.raises(UserError) as error:
        announced(request, lambda _: [bytes(2**20 - 16)] * 1000)
    # 100,000 times 1000 records of a mebibyte, twice.
    assert error.value.what.startswith("about 195,312.5 GiB is needed, but only ")
    assert notices[0].startswith("about 100,000,000 instances, 97,656.2 GiB (195,312.5 GiB while ")
