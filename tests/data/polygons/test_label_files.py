"""Label files of a folder or a zip: which count, how they are read, and messages about others."""

import json
import zipfile
from pathlib import Path

import pytest

from jumar.data.images.class_folders import DiskTree
from jumar.data.images.image_zip import ZipTree
from jumar.data.polygons.label_files import LabelFile, read_labels
from jumar.ground.errors import UserError
from tests.data.pictures import write_files, write_zip
from tests.data.polygons.test_label_mat import ROWS, mat

LINE = b"1,1,9,1,9,9,1,9,"
WORDS = [{"points": [[1, 1], [9, 1], [9, 9]], "transcription": "x"}, {"points": 3}]
FILES = {
    "a/gt_img_1.txt": b"\xef\xbb\xbf" + LINE + "é,b\r\n".encode() + b"\nbad",
    "b/IMG.TXT": LINE + b"c",
    "all.JSON": json.dumps({"p1": WORDS, "p2": []}).encode(),
    "img_3.json": json.dumps(WORDS[:1]).encode(),
    "img_4.mat": mat(ROWS[:1]),
    "README.txt": b"nothing",
    "b/licence.json": b"nothing",
    "c/Requirements.txt": b"nothing",
    "picture.jpg": b"nothing",
}


def told(file: LabelFile) -> tuple[object, ...]:
    outlines = [(each.line, each.corners.tolist(), each.text) for each in file.outlines]
    return file.name, file.origin, file.unit, outlines, [tuple(each) for each in file.bad]


@pytest.mark.parametrize("packed", [False, True])
def test_text_json_and_matlab_files_are_read_together(packed: bool, tmp_path: Path) -> None:
    place = write_zip(tmp_path / "l.zip", FILES) if packed else write_files(tmp_path / "l", FILES)
    tree = ZipTree(place) if packed else DiskTree(place)
    square = [[1, 1], [9, 1], [9, 9], [1, 9]]
    triangle = [[1, 1], [9, 1], [9, 9]]
    not_pairs = "its points are not pairs of x and y"
    curved = [list(pair) for pair in zip(*ROWS[0][:2], strict=True)]
    assert [told(file) for file in read_labels(tree, list(FILES))] == [
        (
            "a/gt_img_1.txt",
            f"{place}/a/gt_img_1.txt",
            "line",
            [(1, square, "é,b")],
            [(3, "0 numbers instead of 8")],
        ),
        ("b/IMG.TXT", f"{place}/b/IMG.TXT", "line", [(1, square, "c")], []),
        ("p1", f"{place}/all.JSON, p1", "word", [(1, triangle, "x")], [(2, not_pairs)]),
        ("p2", f"{place}/all.JSON, p2", "word", [], []),
        ("img_3.json", f"{place}/img_3.json", "word", [(1, triangle, "x")], []),
        ("img_4.mat", f"{place}/img_4.mat", "word", [(1, curved, "CAFE")], []),
    ]


def test_locations_are_given_as_lines_or_words() -> None:
    file = LabelFile(name="n", origin="o", unit="line", outlines=(), bad=())
    assert file.location(7) == "o, line 7"
    words = LabelFile(name="n", origin="o", unit="word", outlines=(), bad=())
    assert words.location(7) == "o, word 7"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.txt",
            LINE + b"a\n" + LINE + b"b\xff\n",
            "{place}, line 2: is not UTF-8 text: invalid start byte\n  Convert it, from GBK for "
            "instance: "
            "iconv -f GB18030 -t UTF-8 '{place}' > converted.txt",
        ),
        (
            "a.json",
            b'"a"',
            "{place}: no labels in JSON: neither a list of words nor lists by image",
        ),
        (
            "a.mat",
            mat(ROWS, "other"),
            "{place}: no labels in MATLAB: has no array 'polygt', but other",
        ),
    ],
)
def test_files_without_labels_have_the_full_message(
    name: str, content: bytes, message: str, tmp_path: Path
) -> None:
    write_files(tmp_path, {name: content})
    with pytest.raises(UserError) as caught:
        read_labels(DiskTree(tmp_path), [name])
    assert str(caught.value) == message.format(place=tmp_path / name)


def test_member_that_unpacks_to_far_too_much_is_refused(tmp_path: Path) -> None:
    """Zeros shrink a thousandfold; a member of another size and kind is read."""
    bomb = write_zip(tmp_path / "a.zip", {"a.txt": bytes(80_000_000), "b.txt": LINE + b"b"})
    tree = ZipTree(bomb)
    packed = tree.members["a.txt"].compress_size
    with pytest.raises(UserError) as caught:
        read_labels(tree, ["a.txt", "b.txt"])
    assert str(caught.value) == (
        f"{bomb}/a.txt: {packed} bytes that unpack to 80000000: rejected as a zip bomb"
    )
    assert len(read_labels(tree, ["b.txt"])) == 1


def test_damaged_member_is_reported(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", {"a.txt": LINE * 50}, zipfile.ZIP_STORED)
    content = path.read_bytes().replace(LINE, LINE.replace(b"9", b"8"), 1)
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"cannot be read: Bad CRC-32") as caught:
        read_labels(ZipTree(path), ["a.txt"])
    assert caught.value.where == f"{path}/a.txt"
