"""Written words are where their outlines say, and the seed decides every byte."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jumar.data.polygons.fonts import fonts_with
from jumar.data.polygons.regions import signed_area
from jumar.data.polygons.text_pictures import open_text_pictures
from jumar.data.polygons.vocabulary import CHINESE, LATIN, drawn_word
from jumar.data.polygons.written import (
    MIN_SIDE,
    Writing,
    Written,
    _contrasting,
    _corners,
    _in_perspective,
    _part_of,
    _texture,
    open_materials,
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


def test_seed_determines_every_byte_with_any_number_of_processes(
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


def test_written_set_is_read_like_any_other(fonts: tuple[Path, ...], tmp_path: Path) -> None:
    written = write_text_pictures(tmp_path / "set", small(fonts), train=6, test=3)
    assert written.pictures == 9
    messages: list[str] = []
    parts = [
        open_text_pictures(str(tmp_path / "set"), split, notice=messages.append)
        for split in ("train", "eval")
    ]
    assert [len(part) for part in parts] == [6, 3]
    regions = [region for part in parts for each in part.regions for region in each]
    assert len(regions) == written.words
    assert sum(region.ignored for region in regions) == written.ignored
    assert not messages


def test_outlines_contain_exactly_the_ink(fonts: tuple[Path, ...]) -> None:
    import cv2

    materials = open_materials(small(fonts, text_height=(30, 50), rotation=40.0))
    checked = 0
    for number in range(12):
        bare = open_materials(small(fonts, words=(0, 0)))
        background = written_picture(bare, number).pixels.astype(int)
        picture = written_picture(materials, number)
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
    materials = open_materials(small(fonts, text_height=(5, 12), words=(10, 20)))
    regions = [each for n in range(4) for each in written_picture(materials, n).regions]
    for region in regions:
        sides = np.hypot(*(np.roll(region.corners, -1, axis=0) - region.corners).T)
        assert region.ignored == (sides.min() < MIN_SIDE) == (region.text == "###")
    assert 0 < sum(region.ignored for region in regions) < len(regions)


def test_text_is_written_on_photographs(fonts: tuple[Path, ...], tmp_path: Path) -> None:
    pixels = scene(120, 200, seed=4)
    write_files(tmp_path, {"photo.png": png(pixels), "broken.png": b"x"})
    materials = open_materials(small(fonts, photographs=tmp_path, words=(0, 0)))
    for number in range(4):
        picture = written_picture(materials, number).pixels
        assert picture.shape == (160, 240, 3)
        assert (picture.min(axis=(0, 1)) + 3 >= pixels.min(axis=(0, 1))).all()


def test_fonts_of_the_test_part_are_not_trained_on(fonts: tuple[Path, ...]) -> None:
    if len(fonts) < 4:
        pytest.skip("needs four fonts")
    train, test = (set(open_materials(small(fonts), part).latin) for part in ("train", "test"))
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


def test_fonts_with_the_same_name_have_a_fixed_order(
    fonts: tuple[Path, ...], tmp_path: Path
) -> None:
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


def test_existing_files_are_not_overwritten(fonts: tuple[Path, ...], tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(UserError, match="is not empty"):
        write_text_pictures(tmp_path, small(fonts), train=1)
    assert contents(tmp_path) == {"mine.txt": b"x"}


def test_files_have_the_written_content_at_their_own_quality(
    fonts: tuple[Path, ...], tmp_path: Path
) -> None:
    report: list[tuple[int, int]] = []
    writing = small(fonts, seed=3)
    written = write_text_pictures(
        tmp_path / "set", writing, train=5, test=1, progress=lambda *each: report.append(each)
    )
    assert report == [(done, 6) for done in range(1, 7)]
    names = [f"train/img_{number}" for number in range(1, 6)] + ["test/img_1"]
    expected = {f"{name}.jpg" for name in names} | {
        name.replace("img", "gt_img") + ".txt" for name in names
    }
    assert contents(tmp_path / "set").keys() == expected
    words = ignored = 0
    for place, name in enumerate(names):
        part, _, file = name.partition("/")
        number = 0 if part == "test" else place
        pixels, regions = written_picture(open_materials(writing, part), number)
        # 70, 77, 84, 91, and from 96 on again from 70.
        quality = (70, 77, 84, 91, 72, 70)[place]
        with Image.open(tmp_path / "set" / f"{name}.jpg") as result:
            Image.fromarray(pixels).save(tmp_path / "as.jpg", quality=quality)
            with Image.open(tmp_path / "as.jpg") as reference:
                assert result.quantization == reference.quantization  # pyright: ignore[reportAttributeAccessIssue]
                np.testing.assert_array_equal(np.asarray(result), np.asarray(reference))
        lines = (tmp_path / "set" / part / f"gt_{file}.txt").read_text().splitlines()
        for line, region in zip(lines, regions, strict=True):
            *numbers, text = line.split(",", 8)
            assert text == region.text
            assert all(not each.endswith(".0") for each in numbers)
            np.testing.assert_allclose(
                np.array(numbers, float).reshape(4, 2), region.corners, atol=0.051
            )
        words += len(regions)
        ignored += sum(region.ignored for region in regions)
    assert written == Written(6, words, ignored)


def test_set_may_lack_a_test_part_and_an_empty_folder_is_accepted(
    fonts: tuple[Path, ...], tmp_path: Path
) -> None:
    (tmp_path / "set").mkdir()
    write_text_pictures(tmp_path / "set", small(fonts), train=1)
    assert [path.name for path in (tmp_path / "set").iterdir()] == ["train"]
    with pytest.raises(UserError) as caught:
        write_text_pictures(tmp_path / "set", small(fonts), train=1)
    assert str(caught.value) == f"{tmp_path}/set: is not empty\n  Specify a new folder."
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UserError, match="is not empty"):
        write_text_pictures(tmp_path / "file", small(fonts), train=1)


def test_every_fourth_font_is_reserved_for_the_test_part(
    fonts: tuple[Path, ...], tmp_path: Path
) -> None:
    for name in "abcdefgh":
        (tmp_path / f"{name}.ttf").write_bytes(fonts[0].read_bytes())

    def named(part: str, *names: str) -> str:
        places = tuple(tmp_path / f"{name}.ttf" for name in names)
        materials = open_materials(small(places), part)
        assert (materials.chinese, materials.test) == ((), part == "test")
        return "".join(path.stem for path in materials.latin)

    assert (named("train", *"abcdefgh"), named("test", *"abcdefgh")) == ("abcefg", "dh")
    assert (named("train", *"abcd"), named("test", *"abcd")) == ("abc", "d")
    assert (named("train", *"abc"), named("test", *"abc")) == ("abc", "abc")


def test_words_are_separate_and_inside_and_the_requested_number_is_tried(
    fonts: tuple[Path, ...],
) -> None:
    writing = small(fonts, words=(1, 3), width=420, height=300, text_height=(20, 30))
    materials = open_materials(writing)
    counts: set[int] = set()
    for number in range(16):
        pixels, regions = written_picture(materials, number)
        assert pixels.shape == (300, 420, 3)
        counts.add(len(regions))
        taken = np.zeros((300, 420), int)
        for region in regions:
            left, top = np.floor(region.corners.min(axis=0)).astype(int) - 1
            right, bottom = np.ceil(region.corners.max(axis=0)).astype(int) + 1
            assert min(left, top) >= 0
            assert right <= 420
            assert bottom <= 300
            taken[top:bottom, left:right] += 1
        assert taken.max(initial=0) <= 1
    assert counts == {1, 2, 3}


def test_heights_are_log_uniform_and_a_twelfth_are_tiny(
    fonts: tuple[Path, ...],
) -> None:
    materials = open_materials(
        small(fonts, words=(20, 20), width=700, height=500, text_height=(16, 64), rotation=0.0)
    )
    heights: list[float] = []
    for number in range(8):
        for region in written_picture(materials, number).regions:
            upper, lower = region.corners[:2].mean(axis=0), region.corners[2:].mean(axis=0)
            heights.append(float(lower[1] - upper[1]))
    tall = [height for height in heights if height > 11]
    # Each corner is moved by 0.12 of the height at most.
    assert min(heights) > 5 * 0.76 - 0.1
    assert 16 * 0.76 - 0.1 < min(tall) < 20
    assert 45 < max(tall) < 64 * 1.24 + 0.1
    assert 0.03 < 1 - len(tall) / len(heights) < 0.16
    # Larger words find less room, so that the middle is a little below 32, their geometric mean.
    assert 22 < np.median(tall) < 36
    assert MIN_SIDE == 8.0


def test_corners_are_a_rectangle_slightly_moved_sheared_and_rotated() -> None:
    random = np.random.default_rng(0)
    rectangle = np.array([[-50, -10], [50, -10], [50, 10], [-50, 10]])
    offsets: list[np.ndarray] = []
    shears: list[float] = []
    angles: list[float] = []
    middles: list[np.ndarray] = []
    for _ in range(600):
        corners = _corners((100, 20), (300, 500), 0.0, random)
        middle = corners.mean(axis=0)
        middles.append(middle)
        moved = corners - middle - rectangle
        shears.append(float((moved[2] + moved[3] - moved[0] - moved[1])[0] / 40))
        offsets.append(moved[:, 1])
        turned = _corners((100, 20), (300, 500), 30.0, random)
        along = turned[1] + turned[2] - turned[0] - turned[3]
        angles.append(float(np.degrees(np.arctan2(-along[1], along[0]))))
    assert 3 < np.abs(offsets).max() <= 2 * 0.12 * 20
    assert np.std(offsets) == pytest.approx(0.24 * 20 / 12**0.5 * 0.75**0.5, rel=0.1)
    # Evenly from -0.3 to 0.3, and what the four corners' own moves add.
    assert np.std(shears) == pytest.approx((0.6**2 / 12 + 4.8**2 / 12 / 400) ** 0.5, rel=0.08)
    assert 0.25 < max(shears) < 0.56
    assert -0.56 < min(shears) < -0.25
    assert max(np.abs(angles)) < 30 + 2.8
    # A normal distribution of 15 degrees, cut at 30.
    assert np.std(angles) == pytest.approx(14.3, abs=1.3)
    assert np.mean(angles) == pytest.approx(0, abs=2)
    places = np.array(middles)
    assert (places.min(axis=0) < (20, 15)).all()
    assert (places.max(axis=0) > (480, 285)).all()
    assert (places.max(axis=0) < (505, 305)).all()


def test_ink_is_warped_to_the_given_corners() -> None:
    ink = np.random.default_rng(0).integers(0, 256, (12, 20)).astype(np.uint8)
    own = np.array([[0.0, 0], [20, 0], [20, 12], [0, 12]])

    def differ(moved: np.ndarray, expected: np.ndarray) -> int:
        return int(np.abs(moved.astype(int) - expected).max())

    assert differ(_in_perspective(ink, own, (20, 12)), ink) <= 1
    moved = _in_perspective(ink, own + np.array([5, 3]), (30, 18))
    assert moved.shape == (18, 30)
    assert differ(moved[3:15, 5:25], ink) <= 1
    assert not moved[:3].any()
    # Upside down, and a quarter of the size after averaging.
    assert differ(_in_perspective(ink, own[[2, 3, 0, 1]], (20, 12)), ink[::-1, ::-1]) <= 1
    quarter = _in_perspective(ink, own / 4, (5, 3))
    expected = ink.reshape(3, 4, 5, 4).mean(axis=(1, 3))
    assert np.abs(quarter - expected).max() <= 1


@pytest.mark.parametrize("level", [10, 120, 135, 245])
def test_colours_differ_from_the_background_by_seventy_levels_of_luma(level: int) -> None:
    part = np.full((4, 5, 3), level, np.uint8)
    random = np.random.default_rng(0)
    luma = np.array([0.299, 0.587, 0.114])
    apart = np.array([_contrasting(part, random) @ luma - level for _ in range(300)])
    assert np.abs(apart).min() >= 70
    assert np.abs(apart).min() < 76
    if 100 < level < 200:
        assert (apart > 0).any()
        assert (apart < 0).any()

    class Grey:
        """Draws nothing but the colour below."""

        def uniform(self, _low: float, _high: float, count: int) -> np.ndarray:
            return np.full(count, float(level))

    result = _contrasting(part, Grey())  # pyright: ignore[reportArgumentType]
    assert result.tolist() == [0.0 if level > 127 else 255.0] * 3


def test_photograph_crops_cover_at_least_half_of_the_largest_fit() -> None:
    y, x = np.mgrid[:100, :200]
    pixels = np.stack([x, y, 0 * x], axis=2).astype(np.uint8)
    random = np.random.default_rng(0)
    spans: list[tuple[float, float, float, float]] = []
    for _ in range(150):
        part = _part_of(pixels, 40, 60, random).astype(float)
        assert part.shape == (40, 60, 3)
        left, right, top, bottom = part[20, 0, 0], part[20, -1, 0], part[0, 30, 1], part[-1, 30, 1]
        spans.append((left, right, top, bottom))
    left, right, top, bottom = np.array(spans).T
    # 100 rows fit 2.5 times, so 150 columns do; a pixel's own width is not seen.
    assert 70 < (right - left).min() < 85
    assert 140 < (right - left).max() <= 150
    np.testing.assert_allclose((right - left) / (bottom - top), 1.5, rtol=0.06)
    assert left.min() < 5
    assert right.max() > 190
    assert top.min() < 4
    assert bottom.max() > 95
    whole = _part_of(pixels[:1, :1], 40, 60, random)
    assert whole.shape == (40, 60, 3)


def test_lack_of_readable_photographs_is_reported(fonts: tuple[Path, ...], tmp_path: Path) -> None:
    write_files(tmp_path, {"a.png": b"x", "b.png": b""})
    materials = open_materials(small(fonts, photographs=tmp_path))
    with pytest.raises(UserError, match=r"no photograph can be read: .+"):
        written_picture(materials, 0)
    write_files(tmp_path, {"b.png": png(np.full((50, 50, 3), 77, np.uint8))})
    bare = open_materials(small(fonts, photographs=tmp_path, words=(0, 0)))
    for number in range(6):
        assert (written_picture(bare, number).pixels == 77).all()


def test_textures_are_colours_with_multiscale_noise_or_plain_signs() -> None:
    textures = [_texture(90, 120, np.random.default_rng(seed)) for seed in range(30)]
    assert {(each.shape, each.dtype.name) for each in textures} == {((90, 120, 3), "uint8")}
    means = np.array([np.median(each, axis=(0, 1)) for each in textures])
    assert means.min() < 70
    assert means.max() > 185
    fine = [float(np.abs(np.diff(each.astype(int), axis=1)).mean()) for each in textures]
    assert min(fine) < 3
    assert 4 < max(fine) < 14
    coarse = [
        float(each.reshape(9, 10, 12, 10, 3).mean(axis=(1, 3)).std(axis=(0, 1)).mean())
        for each in textures
    ]
    assert 10 < np.median(coarse) < 60
