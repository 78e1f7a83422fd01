"""Written words are where their outlines say, and the seed decides every byte."""

from pathlib import Path

import numpy as np
import pytest

from jumar.data.polygons.fonts import fonts_with
from jumar.data.polygons.regions import signed_area
from jumar.data.polygons.text_pictures import open_text_pictures
from jumar.data.polygons.vocabulary import CHINESE, LATIN, drawn_word
from jumar.data.polygons.written import (
    LEAST_SIDE,
    Writing,
    open_desk,
    write_text_pictures,
    written_picture,
)
from jumar.ground.errors import UserError
from tests.data.photographs import png, scene
from tests.data.pictures import write_files


@pytest.fixture(scope="module")
def fonts() -> tuple[Path, ...]:
    """Some fonts of this machine."""
    try:
        return tuple(fonts_with(LATIN)[:5])
    except UserError as error:
        pytest.skip(f"this machine has no font with Latin letters: {error}")


def contents(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def small(fonts: tuple[Path, ...], **changes: object) -> Writing:
    settings = {"width": 240, "height": 160, "words": (2, 6), "fonts": fonts, **changes}
    return Writing(**settings)  # pyright: ignore[reportArgumentType]


def test_the_seed_decides_every_byte_with_any_number_of_processes(
    fonts: tuple[Path, ...], tmp_path: Path
) -> None:
    for name, seed, workers in (("a", 1, 1), ("b", 1, 2), ("c", 2, 1)):
        write_text_pictures(
            tmp_path / name, small(fonts, seed=seed), train=5, test=2, workers=workers
        )
    a, b, c = (contents(tmp_path / name) for name in "abc")
    assert a == b
    assert a.keys() == c.keys()
    assert all(a[name] != c[name] for name in a if name.endswith(".jpg"))
    assert len(a) == 14
    assert len({content for name, content in a.items() if name.endswith(".txt")}) == 7


def test_a_written_set_is_read_as_any_other(fonts: tuple[Path, ...], tmp_path: Path) -> None:
    written = write_text_pictures(tmp_path / "set", small(fonts), train=6, test=3)
    assert written.pictures == 9
    said: list[str] = []
    parts = [
        open_text_pictures(str(tmp_path / "set"), split, notice=said.append)
        for split in ("train", "eval")
    ]
    assert [len(part) for part in parts] == [6, 3]
    regions = [region for part in parts for each in part.regions for region in each]
    assert len(regions) == written.words
    assert sum(region.ignored for region in regions) == written.ignored
    assert not said


def test_outlines_hold_the_ink_and_nothing_else(fonts: tuple[Path, ...]) -> None:
    import cv2

    desk = open_desk(small(fonts, text_height=(30, 50), rotation=40.0))
    checked = 0
    for number in range(12):
        bare = open_desk(small(fonts, words=(0, 0)))
        background = written_picture(bare, number).pixels.astype(int)
        picture = written_picture(desk, number)
        changed = np.abs(picture.pixels - background).max(axis=2) > 8
        inside = np.zeros(changed.shape, np.uint8)
        for region in picture.regions:
            mask = np.zeros(changed.shape, np.uint8)
            cv2.fillPoly(mask, [np.rint(region.corners).astype(np.int32)], 1)
            inside |= cv2.dilate(mask, np.ones((5, 5), np.uint8))
            if not region.ignored:
                places = np.argwhere(changed & (mask > 0))[:, ::-1].astype(np.float32)
                unit = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32)
                flat = cv2.getPerspectiveTransform(region.corners.astype(np.float32), unit)
                upright = cv2.perspectiveTransform(places[None], flat)[0]
                assert (upright.min(axis=0) < 0.12).all()
                assert (upright.max(axis=0) > 0.88).all()
                checked += 1
            assert signed_area(region.corners) > 0
        assert not (changed & (inside == 0)).any()
    assert checked > 10


def test_words_too_small_to_read_are_ignored(fonts: tuple[Path, ...]) -> None:
    desk = open_desk(small(fonts, text_height=(5, 12), words=(10, 20)))
    regions = [each for n in range(4) for each in written_picture(desk, n).regions]
    for region in regions:
        sides = np.hypot(*(np.roll(region.corners, -1, axis=0) - region.corners).T)
        assert region.ignored == (sides.min() < LEAST_SIDE) == (region.text == "###")
    assert 0 < sum(region.ignored for region in regions) < len(regions)


def test_photographs_are_written_on(fonts: tuple[Path, ...], tmp_path: Path) -> None:
    pixels = scene(120, 200, seed=4)
    write_files(tmp_path, {"photo.png": png(pixels), "broken.png": b"x"})
    desk = open_desk(small(fonts, photographs=tmp_path, words=(0, 0)))
    for number in range(4):
        picture = written_picture(desk, number).pixels
        assert picture.shape == (160, 240, 3)
        assert (picture.min(axis=(0, 1)) + 3 >= pixels.min(axis=(0, 1))).all()


def test_fonts_of_the_test_part_are_not_trained_on(fonts: tuple[Path, ...]) -> None:
    if len(fonts) < 4:
        pytest.skip("needs four fonts")
    train, test = (set(open_desk(small(fonts), part).latin) for part in ("train", "test"))
    assert train
    assert test
    assert not train & test


@pytest.mark.parametrize("chinese", [False, True])
def test_no_word_of_the_test_part_is_trained_on(chinese: bool) -> None:
    random = np.random.default_rng(3)
    train, test = (
        {drawn_word(chinese, random, test=test).lower() for _ in range(4000)}
        for test in (False, True)
    )
    assert min(len(train), len(test)) > 400
    assert not train & test
    if chinese:
        assert {character for word in train | test for character in word} == set(CHINESE)


def test_fonts_of_one_name_have_an_order(fonts: tuple[Path, ...], tmp_path: Path) -> None:
    """That of a set differs from process to process, and with it every byte of what is written."""
    places = [tmp_path / name / "same.ttf" for name in "fbdace"]
    for place in places:
        place.parent.mkdir()
        place.write_bytes(fonts[0].read_bytes())
    assert fonts_with(LATIN, [tmp_path]) == sorted(places)


def test_fonts_without_the_characters_are_refused(fonts: tuple[Path, ...], tmp_path: Path) -> None:
    (tmp_path / "no.ttf").write_bytes(b"no font")
    with pytest.raises(UserError, match="none of 1 fonts"):
        fonts_with(LATIN, [tmp_path])
    latin_only = [font for font in fonts if "DejaVu" in font.name]
    if latin_only:
        with pytest.raises(UserError, match="fonts-noto-cjk"):
            fonts_with(CHINESE, latin_only)
    with pytest.raises(UserError, match="no such file"):
        fonts_with(LATIN, [tmp_path / "gone"])


def test_nothing_is_overwritten(fonts: tuple[Path, ...], tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(UserError, match="is not empty"):
        write_text_pictures(tmp_path, small(fonts), train=1)
    assert contents(tmp_path) == {"mine.txt": b"x"}
