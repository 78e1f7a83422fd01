"""How many ranks share a batch."""

import pytest

from jumar.training.parallel.spare import sharing, spares_line


@pytest.mark.parametrize(
    ("ranks", "samples", "part", "expected"),
    [
        (3, 8, 1, 2),
        (4, 8, 1, 4),
        (3, 12, 1, 3),
        (3, 8, 4, 2),
        (2, 12, 4, 1),
        (7, 7, 1, 7),
        (6, 7, 1, 1),
        (9, 4, 1, 4),
    ],
)
def test_as_many_ranks_train_as_divide_the_batch_in_whole_parts(
    ranks: int, samples: int, part: int, expected: int
) -> None:
    count = sharing(ranks, samples, part)
    assert count == expected
    assert samples // count % part == 0


def test_the_line_counts_both_kinds() -> None:
    assert "3 ranks cannot share batches of 8 samples: 2 train, 1 waits as a spare" in spares_line(
        3, 2, 8
    )
    assert "1 trains, 5 wait as spares" in spares_line(6, 1, 7)
