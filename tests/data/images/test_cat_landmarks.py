from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from jumar.data.images.cat_landmarks import CatHeads, head_box, parse_landmarks
from jumar.data.images.picture_set import PictureData, open_generator_sets
from jumar.data.images.picture_tree import open_pictures
from jumar.data.samples import CorruptRecord, SampleKey
from jumar.ground.errors import UserError

POINTS = "9 60 50 80 50 70 62 50 40 52 30 58 38 82 38 88 30 90 40 \n"


def cat_folder(folder: Path) -> Path:
    """The layout of the Kaggle CAT set, with one picture: red but for a green head."""
    place = folder / "CAT_00"
    place.mkdir(parents=True)
    picture = Image.new("RGB", (120, 90), (200, 0, 0))
    picture.paste((0, 200, 0), (44, 20, 96, 72))
    picture.save(place / "00000001_000.jpg", quality=95)
    (place / "00000001_000.jpg.cat").write_text(POINTS)
    return folder


def test_the_head_is_what_is_shown_and_landmark_files_are_no_pictures(tmp_path: Path) -> None:
    data = PictureData(path=str(cat_folder(tmp_path)), frame="head", eval_path="none")
    train, _ = open_generator_sets(data, seed=1)
    assert len(train) == 1
    pixels = train.fetch([SampleKey(0, 0)]).batch["image"][0].float()
    red, green, _ = pixels.mean((1, 2)).tolist()
    assert green > 190
    assert red < 10


def test_a_picture_without_landmarks_or_with_damaged_ones_is_a_fault(tmp_path: Path) -> None:
    place = cat_folder(tmp_path) / "CAT_00" / "00000001_000.jpg.cat"
    heads = CatHeads(open_pictures(str(tmp_path), "train"), tmp_path)
    for text, reason in (
        ("9 1 2", "announced"),
        ("meow", "expected integers"),
        ("", "expected integers"),
    ):
        place.write_text(text)
        with pytest.raises(CorruptRecord, match=reason):
            heads.read(0)
    place.unlink()
    with pytest.raises(CorruptRecord, match="no landmarks"):
        heads.read(0)


def test_landmarks_need_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="folder of pictures only"):
        CatHeads(open_pictures(str(cat_folder(tmp_path)), "train"), tmp_path / "cats.zip")


def test_the_points_are_read_in_pairs() -> None:
    points = parse_landmarks(POINTS)
    assert len(points) == 9
    assert points[:2] == [(60, 50), (80, 50)]


@given(
    points=st.lists(st.tuples(st.integers(-500, 900), st.integers(-500, 900)), min_size=3),
    width=st.integers(1, 600),
    height=st.integers(1, 600),
)
def test_the_box_is_a_square_within_the_picture(
    points: list[tuple[int, int]], width: int, height: int
) -> None:
    top, left, bottom, right = head_box(points, width, height)
    assert -1e-9 <= top < bottom <= 1 + 1e-9
    assert -1e-9 <= left < right <= 1 + 1e-9
    assert (bottom - top) * height == pytest.approx((right - left) * width)
