from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from jumar.data.images.cat_landmarks import CatHeads, head_box, parse_landmarks
from jumar.data.images.picture_set import PictureData, open_generator_sets
from jumar.data.images.picture_tree import open_pictures
from jumar.data.samples import CorruptRecord, Record, SampleKey
from jumar.ground.errors import UserError

POINTS = "9 60 50 80 50 70 62 50 40 52 30 58 38 82 38 88 30 90 40 \n"


def cat_folder(folder: Path) -> Path:
    """The layout of the Kaggle CAT set, with one image: red but for a green head."""
    place = folder / "CAT_00"
    place.mkdir(parents=True)
    picture = Image.new("RGB", (120, 90), (200, 0, 0))
    picture.paste((0, 200, 0), (44, 20, 96, 72))
    picture.save(place / "00000001_000.jpg", quality=95)
    (place / "00000001_000.jpg.cat").write_text(POINTS)
    return folder


def test_only_the_head_is_shown_and_landmark_files_are_not_images(tmp_path: Path) -> None:
    data = PictureData(path=str(cat_folder(tmp_path)), frame="head", eval_path="none")
    train, _ = open_generator_sets(data, seed=1)
    assert len(train) == 1
    pixels = train.fetch([SampleKey(0, 0)]).batch["image"][0].float()
    red, green, _ = pixels.mean((1, 2)).tolist()
    assert green > 190
    assert red < 10


def test_image_with_missing_or_damaged_landmarks_is_a_fault(tmp_path: Path) -> None:
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
    with pytest.raises(UserError, match="only be read from a folder of images"):
        CatHeads(open_pictures(str(cat_folder(tmp_path)), "train"), tmp_path / "cats.zip")


def test_points_are_read_in_pairs() -> None:
    points = parse_landmarks(POINTS)
    assert len(points) == 9
    assert points[:2] == [(60, 50), (80, 50)]


@given(
    points=st.lists(st.tuples(st.integers(-500, 900), st.integers(-500, 900)), min_size=3),
    width=st.integers(1, 600),
    height=st.integers(1, 600),
)
def test_box_is_a_square_within_the_image(
    points: list[tuple[int, int]], width: int, height: int
) -> None:
    top, left, bottom, right = head_box(points, width, height)
    assert -1e-9 <= top < bottom <= 1 + 1e-9
    assert -1e-9 <= left < right <= 1 + 1e-9
    assert (bottom - top) * height == pytest.approx((right - left) * width)


def test_record_is_the_image_with_one_box_and_no_label(tmp_path: Path) -> None:
    heads = CatHeads(open_pictures(str(cat_folder(tmp_path)), "train"), tmp_path)
    picture = tmp_path / "CAT_00" / "00000001_000.jpg"
    # The points lie within 40 x 32 pixels around (70, 46), so the square has 1.3 * 40 = 52.
    assert heads.read(0) == Record(
        encoded=picture.read_bytes(),
        label=0,
        origin=str(picture),
        boxes=((20 / 90, 44 / 120, 72 / 90, 96 / 120),),
    )
    assert (len(heads), heads.path(0), tuple(heads.classes)) == (1, "CAT_00/00000001_000.jpg", ())
    assert heads.fingerprint == open_pictures(str(tmp_path), "train").fingerprint
    picture.write_bytes(b"no image")
    with pytest.raises(CorruptRecord) as caught:
        heads.read(0)
    assert caught.value.fault.origin == str(picture)


@pytest.mark.parametrize(
    ("points", "box"),
    [
        ([(10, 10), (30, 20), (20, 40)], (5.5, 0.5, 44.5, 39.5)),
        ([(0, 0), (20, 0), (10, 10)], (0, 0, 26, 26)),
        ([(180, 90), (200, 100), (190, 80)], (74, 174, 100, 200)),
        ([(0, 0), (200, 100), (50, 50)], (0, 50, 100, 150)),
        ([(50, 50), (50, 50), (50, 50)], (49.35, 49.35, 50.65, 50.65)),
    ],
    ids=["middle", "upper left", "lower right", "larger than the image", "one point"],
)
def test_square_is_1_3_times_the_extent_and_moved_into_the_image(
    points: list[tuple[int, int]], box: tuple[float, ...]
) -> None:
    top, left, bottom, right = head_box(points, 200, 100)
    assert (100 * top, 200 * left, 100 * bottom, 200 * right) == pytest.approx(box)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("3 1 2 3 4 5 -6", None),
        ("2 1 2 3 4", "2 points announced, but 4 numbers follow"),
        ("3 1 2 3 4 5", "3 points announced, but 5 numbers follow"),
        ("3 1 2 3 4 5 6 7", "3 points announced, but 7 numbers follow"),
        ("3 1 2 3 4 5 6.5", "not landmarks: expected integers"),
    ],
)
def test_three_points_or_more_are_landmarks(text: str, reason: str | None) -> None:
    if reason is None:
        assert parse_landmarks(text) == [(1, 2), (3, 4), (5, -6)]
        return
    with pytest.raises(ValueError, match=f"^{reason}$"):
        parse_landmarks(text)


def test_at_most_4096_bytes_of_a_landmark_file_are_read(tmp_path: Path) -> None:
    heads = CatHeads(open_pictures(str(cat_folder(tmp_path)), "train"), tmp_path)
    place = tmp_path / "CAT_00" / "00000001_000.jpg.cat"
    box = heads.read(0).boxes
    place.write_text(POINTS.strip().rjust(4096) + "1 and words")
    assert heads.read(0).boxes == box
