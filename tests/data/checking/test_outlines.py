"""What is learned about images with words."""

from pathlib import Path

import pytest

from tests.data.photographs import png, scene
from tests.data.pictures import write_files

pytest.importorskip("shapely")

from jumar.data.checking.item import Item
from jumar.data.checking.outlines import open_outlined
from jumar.ground.errors import UserError

WORD, OTHER, IGNORED = "5,5,40,5,40,20,5,20,word\n", "1,1,9,1,9,9,1,9,b\n", "2,2,9,2,9,9,2,9,###\n"
"""Lines of label files: the corners, and the text; ### is ignored."""


def files(*labels: str, first: int = 0) -> dict[str, bytes]:
    made: dict[str, bytes] = {}
    for number, text in enumerate(labels, start=first):
        made[f"{number}.png"] = png(scene(48, 64, seed=number))
        made[f"gt_{number}.txt"] = text.encode()
    return made


def part(name: str, of: dict[str, bytes]) -> dict[str, bytes]:
    return {f"{name}/{path}": content for path, content in of.items()}


def opened(path: Path, eval_path: str = "", **labels: str) -> list[tuple[str, list[Item]]]:
    labels = {"labels": "", "eval_labels": "", **labels}
    parts = open_outlined(str(path), eval_path, notice=lambda _: None, **labels)
    return [
        (each.name, [each.reader.item(index) for index in range(len(each.reader))])
        for each in parts
    ]


def test_outlines_are_the_label_and_an_image_without_words_has_a_trait(
    tmp_path: Path,
) -> None:
    of = files(OTHER + WORD, "", IGNORED, WORD + IGNORED) | {"4.png": b"no image"}
    of["gt_4.txt"] = WORD.encode()
    ((name, items),) = opened(write_files(tmp_path, of))
    assert name == "training"
    boxes = {
        "word": "[[5.0, 5.0], [40.0, 5.0], [40.0, 20.0], [5.0, 20.0]]",
        "other": "[[1.0, 1.0], [9.0, 1.0], [9.0, 9.0], [1.0, 9.0]]",
        "ignored": "[[2.0, 2.0], [9.0, 2.0], [9.0, 9.0], [2.0, 9.0]]",
    }
    assert [(item.label, item.traits) for item in items[:4]] == [
        (f"{boxes['other']}; {boxes['word']}", ()),
        ("", ("without words",)),
        (boxes["ignored"], ("with ignored words only",)),
        (f"{boxes['ignored']}; {boxes['word']}", ()),
    ]
    assert (items[4].where, items[4].fault) == (
        str(tmp_path / "4.png"),
        "not an image of a known format",
    )


def test_second_part_is_the_named_or_existing_one(tmp_path: Path) -> None:
    divided = write_files(
        tmp_path / "divided",
        {**part("train", files(WORD, WORD)), **part("test", files(WORD, first=7))},
    )
    assert [(name, len(items)) for name, items in opened(divided)] == [
        ("training", 2),
        ("evaluation", 1),
    ]
    whole = write_files(tmp_path / "whole", files(WORD, WORD, WORD))
    assert [(name, len(items)) for name, items in opened(whole, str(divided))] == [
        ("training", 3),
        ("evaluation", 1),
    ]
    only = write_files(tmp_path / "only", part("train", files(WORD)))
    assert [(name, len(items)) for name, items in opened(only)] == [("training", 1)]
    with pytest.raises(UserError, match="no images for evaluation"):
        opened(whole, str(only))


def test_each_part_may_have_labels_in_another_folder(tmp_path: Path) -> None:
    places: dict[str, str] = {}
    for place, text in (("a", WORD), ("b", OTHER)):
        of = files(text)
        places[place] = str(write_files(tmp_path / place, {"0.png": of["0.png"]}))
        places[f"{place} labels"] = str(
            write_files(tmp_path / f"{place}_labels", {"gt_0.txt": of["gt_0.txt"]})
        )
    result = opened(
        Path(places["a"]),
        places["b"],
        labels=places["a labels"],
        eval_labels=places["b labels"],
    )
    assert [(name, items[0].label[:11]) for name, items in result] == [
        ("training", "[[5.0, 5.0]"),
        ("evaluation", "[[1.0, 1.0]"),
    ]
