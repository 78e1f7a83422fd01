import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jumar.data.checking.findings import Finding, PartItems, Place, findings_of
from jumar.data.checking.item import CheckedPart, Item
from jumar.data.checking.lookalikes import MAX_NEIGHBOURS, alike, groups_of
from jumar.data.checking.opening import CheckedData, kind_of, open_parts
from jumar.data.checking.scanning import scanned
from jumar.data.checking.texts import TextReader
from jumar.data.samples import Fault
from tests.data.photographs import png, scene
from tests.data.pictures import picture, turned, write_files, write_zip
from tests.data.tones import in_folder, tone


def jpeg(pixels: np.ndarray, quality: int = 90) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


def found(path: Path, **changes: object) -> list[Finding]:
    _, parts = open_parts(CheckedData(path=str(path), **changes), lambda _: None)  # type: ignore[arg-type]
    return findings_of(
        [
            PartItems(part=part, items=list(scanned(part.reader, workers=2, done=lambda _: None)))
            for part in parts
        ]
    )


def places(findings: list[Finding], kind: str, what: str = "") -> list[set[str]]:
    """The file names of each group of a kind of finding."""
    return [
        {"/".join(Path(place.where).parts[-2:]) for place in group}
        for finding in findings
        if finding.kind == kind and what in finding.what
        for group in finding.groups
    ]


def many(classes: tuple[str, ...], count: int, *, first: int = 0) -> dict[str, bytes]:
    """Different images of 64 x 48 px, as PNG."""
    return {
        f"{name}/{index}.png": png(scene(48, 64, seed=1000 * place + first + index))
        for place, name in enumerate(classes)
        for index in range(count)
    }


def part(files: Mapping[str, bytes], name: str) -> dict[str, bytes]:
    return {f"{name}/{path}": content for path, content in files.items()}


def test_clean_set_has_no_findings_in_a_folder_or_a_zip(tmp_path: Path) -> None:
    files = {
        **part(many(("a", "b"), 8), "train"),
        **part(many(("a", "b"), 6, first=500), "val"),
    }
    assert found(write_files(tmp_path / "folder", files)) == []
    assert found(write_zip(tmp_path / "set.zip", files)) == []


def test_every_planted_defect_is_found_at_its_location(tmp_path: Path) -> None:
    train, val = many(("a", "b", "c"), 8), many(("a", "b"), 6, first=500)
    original = scene(48, 64, seed=3)
    train |= {
        "a/cut.jpg": jpeg(original)[:300],
        "a/empty.png": b"",
        "a/text.png": b"not an image",
        "b/copy.png": train["b/1.png"],
        "a/other_label.png": train["b/2.png"],
        "b/saved_again.jpg": jpeg(scene(48, 64, seed=1000), 70),
        "a/grey.png": png(scene(48, 64, seed=77)[..., 0]),
        "a/inks.jpg": picture("CMYK", size=(64, 48)),
        "a/turned.jpg": turned(),
        "a/long.png": png(scene(40, 900, seed=78)),
    }
    val |= {"a/leaked.png": train["a/5.png"], "a/again.jpg": jpeg(scene(48, 64, seed=6), 80)}
    files = {**part(train, "train"), **part(val, "val")}
    findings = found(write_files(tmp_path, files))
    assert places(findings, "broken") == [{"a/cut.jpg"}, {"a/empty.png"}, {"a/text.png"}]
    assert {"b/1.png", "b/copy.png"} in places(findings, "duplicate")
    assert {"b/2.png", "a/other_label.png"} in places(findings, "label conflict")
    assert places(findings, "look-alike") == [{"b/0.png", "b/saved_again.jpg"}]
    assert places(findings, "leak", "same content") == [{"a/5.png", "a/leaked.png"}]
    assert places(findings, "leak", "looks") == [{"a/6.png", "a/again.jpg"}]
    kinds = {finding.what.partition(":")[0] for finding in findings if finding.kind == "odd kind"}
    assert kinds == {"grey", "CMYK", "rotated by EXIF"}
    assert {"a/long.png"} in places(findings, "odd size", "width by height")
    assert [
        group[0][:2] for finding in findings if finding.kind == "class" for group in finding.groups
    ] == [("evaluation", "c")]


def test_same_pixels_in_another_file_format_are_a_duplicate(tmp_path: Path) -> None:
    files = many(("a", "b"), 6)
    pixels = scene(48, 64, seed=2)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "BMP")
    findings = found(write_files(tmp_path, {**files, "a/2.bmp": buffer.getvalue()}))
    assert places(findings, "duplicate", "decoding") == [{"a/2.png", "a/2.bmp"}]
    assert [finding.kind for finding in findings] == ["duplicate"]


@pytest.mark.parametrize("change", ["quality 40", "half the size", "a level brighter"])
def test_reencoded_image_is_a_look_alike_and_another_image_is_not(change: str) -> None:
    from jumar.data.checking.pictures import picture_item
    from jumar.data.samples import Record

    base = [scene(96, 128, seed=seed) for seed in range(40)]
    if change == "quality 40":
        other = [jpeg(pixels, 40) for pixels in base]
    elif change == "half the size":
        other = [png(np.asarray(Image.fromarray(pixels).resize((64, 48)))) for pixels in base]
    else:
        other = [png(np.minimum(pixels, 254) + 1) for pixels in base]
    items = [
        picture_item(Record(encoded=encoded, label=0, origin=""))
        for encoded in (*map(png, base), *other)
    ]
    looks = np.stack([item.look for item in items if item.look is not None])
    near = alike(looks, np.full(80, 4 / 3))
    assert groups_of(near.pairs, 80) == [[index, index + 40] for index in range(40)]
    assert len(near.crowded) == 0


@pytest.mark.parametrize("others", [MAX_NEIGHBOURS, MAX_NEIGHBOURS + 1])
def test_large_group_is_reported_if_not_fully_compared(others: int) -> None:
    draw = np.random.default_rng(3)
    base = draw.integers(40, 200, 256)
    crowd = base + draw.integers(0, 2, (others + 1, 256))
    looks = np.concatenate([draw.integers(0, 256, (5, 256)), crowd]).astype(np.uint8)
    near = alike(looks, np.ones(len(looks)))
    assert groups_of(near.pairs, len(looks)) == [list(range(5, len(looks)))]
    crowded = list(range(5, len(looks))) if others > MAX_NEIGHBOURS else []
    assert near.crowded.tolist() == crowded


def test_images_of_a_large_group_are_listed_with_the_uncompared_ones(tmp_path: Path) -> None:
    base = scene(96, 128, seed=9)
    files = {f"a/{n}.png": png(np.maximum(base, 1) - (n % 2)) for n in range(2)}
    draw = np.random.default_rng(5)
    for number in range(MAX_NEIGHBOURS + 2):
        pixels = np.clip(base.astype(int) + draw.integers(-3, 4, base.shape), 0, 255)
        files[f"a/noisy{number}.png"] = png(pixels.astype(np.uint8))
    listed = places(found(write_files(tmp_path, files)), "look-alike", "only the nearest")
    assert {f"a/noisy{number}.png" for number in range(MAX_NEIGHBOURS + 2)} <= {
        name for group in listed for name in group
    }


def test_equal_looks_form_one_group_without_comparing_all_pairs() -> None:
    look = np.random.default_rng(4).integers(0, 256, 256).astype(np.uint8)
    near = alike(np.tile(look, (20_000, 1)), np.ones(20_000))
    assert near.pairs.tolist() == [[0, index] for index in range(1, 20_000)]
    assert len(near.crowded) == 0


def test_images_of_other_shapes_do_not_look_alike() -> None:
    look = np.random.default_rng(4).integers(0, 256, (1, 256)).astype(np.uint8)
    near = alike(np.tile(look, (3, 1)), np.array([1.0, 1.01, 1.05]))
    assert near.pairs.tolist() == [[0, 1]]


def test_small_and_missing_classes_are_named(tmp_path: Path) -> None:
    train = {
        **many(("a", "b"), 60),
        **{f"rare/{n}.png": png(scene(48, 64, seed=900 + n)) for n in range(3)},
    }
    files = {**part(train, "train"), **part(many(("a", "b"), 6, first=500), "val")}
    findings = found(write_files(tmp_path, files))
    assert [(f.kind, [tuple(p[:2]) for g in f.groups for p in g]) for f in findings] == [
        ("class", [("evaluation", "rare")]),
        ("class", [("training", "rare")]),
    ]


def test_widely_spread_lengths_are_not_outliers() -> None:
    random = np.random.default_rng(1)
    lengths = np.exp(random.normal(4, 1, 2000)).tolist()
    items = [
        Item(where=str(number), size=(("length", length),))
        for number, length in enumerate([*lengths, 1e6])
    ]
    findings = findings_of(
        [PartItems(part=CheckedPart(name="training", reader=TextReader(items)), items=items)]
    )
    assert [group[0].where for finding in findings for group in finding.groups] == ["2000"]


def test_truncated_silent_or_copied_clips_are_found(tmp_path: Path) -> None:
    from jumar.data.speech.wav import write_wav

    clips = {
        f"{word}/{n}_nohash_0.wav": tone(word, n) for word in ("low", "high") for n in range(6)
    }
    clips["low/cut_nohash_0.wav"] = clips["low/1_nohash_0.wav"][:900]
    clips["high/still_nohash_0.wav"] = write_wav(np.zeros(16_000, np.int16), 16_000)
    clips["high/slow_nohash_0.wav"] = tone("high", 40, rate=8_000)
    clips["high/copy_nohash_0.wav"] = clips["low/2_nohash_0.wav"]
    other = {
        f"{word}/{n}_nohash_0.wav": tone(word, n) for word in ("low", "high") for n in range(20, 26)
    }
    in_folder(tmp_path, {**part(clips, "train"), **part(other, "val")})
    assert kind_of(str(tmp_path)) == "clips"
    findings = found(tmp_path)
    assert places(findings, "broken") == [{"low/cut_nohash_0.wav"}]
    assert places(findings, "label conflict") == [{"low/2_nohash_0.wav", "high/copy_nohash_0.wav"}]
    assert places(findings, "odd kind", "silent") == [{"high/still_nohash_0.wav"}]
    assert places(findings, "odd kind", "8000 Hz") == [{"high/slow_nohash_0.wav"}]


def test_malformed_rows_copies_and_contradictions_in_labelled_texts_are_found(
    tmp_path: Path,
) -> None:
    rows = [f"{n % 2}\ttext number {n}" for n in range(20)]
    rows += ["1\ttext number 4", "0\tTEXT  number 6", "0", "0\t"]
    (tmp_path / "train.tsv").write_text("label\ttext_a\n" + "\n".join(rows) + "\n")
    (tmp_path / "dev.tsv").write_text("label\ttext_a\n1\ttext number 7\n0\tunseen\n")
    assert kind_of(str(tmp_path)) == "sentences"
    findings = found(tmp_path)
    assert places(findings, "broken") == [{f"{tmp_path.name}/train.tsv, line 24"}]
    assert places(findings, "label conflict")[0] == {
        f"{tmp_path.name}/train.tsv, line {line}" for line in (6, 22)
    }
    assert places(findings, "duplicate", "decoding")
    assert places(findings, "leak") == [
        {f"{tmp_path.name}/train.tsv, line 9", f"{tmp_path.name}/dev.tsv, line 2"}
    ]
    assert places(findings, "odd kind", "empty text") == [{f"{tmp_path.name}/train.tsv, line 25"}]


def test_tagged_texts_and_questions_are_distinguished_and_checked(tmp_path: Path) -> None:
    tagged = write_files(
        tmp_path / "tagged",
        {"train.txt": b"a B-PER\nb I-PER\n\nc O\nd I-LOC\n\na B-PER\nb O\n\nx wrong\n"},
    )
    assert kind_of(str(tagged)) == "tagged"
    findings = found(tagged, eval_path="none")
    assert places(findings, "broken") == [{"tagged/train.txt, line 10"}]
    assert places(findings, "label conflict") == [
        {"tagged/train.txt, line 1", "tagged/train.txt, line 7"}
    ]
    assert places(findings, "odd kind", "without a beginning") == [{"tagged/train.txt, line 4"}]
    asked = (
        b'{"data": [{"paragraphs": [{"context": "the sky is blue", "qas": ['
        b'{"id": "1", "question": "which?", "answers": [{"text": "blue", "answer_start": 11}]},'
        b'{"id": "2", "question": "what?", "answers": [{"text": "green", "answer_start": 0}]}]}]}]}'
    )
    questions = write_files(tmp_path / "questions", {"train.json": asked})
    assert kind_of(str(questions)) == "questions"
    findings = found(questions, eval_path="none")
    assert [finding.kind for finding in findings] == ["broken"]
    assert "question 2" in findings[0].groups[0][0].where


def test_broken_word_labels_of_images_are_found(tmp_path: Path) -> None:
    pytest.importorskip("shapely")
    files = {f"img/{n}.png": png(scene(48, 64, seed=n)) for n in range(6)}
    files |= {f"gt/gt_{n}.txt": b"5,5,40,5,40,20,5,20,word\n" for n in range(6)}
    files["gt/gt_3.txt"] = b"5,5,40,5,40,20,5,20,###\n"
    files["gt/gt_4.txt"] = b"5,5,40,5,40,20,5,20,word\n1,2,three\n"
    folder = write_files(tmp_path, files)
    assert kind_of(str(folder)) == "outlines"
    findings = found(folder)
    assert [finding.kind for finding in findings][:1] == ["broken"]
    assert "gt_4.txt" in findings[0].groups[0][0].where
    assert places(findings, "odd kind", "ignored words only") == [{"img/3.png"}]


def of_items(**parts: list[Item]) -> list[Finding]:
    """The findings of parts by name, with the classes a and b."""
    return findings_of(
        [
            PartItems(
                part=CheckedPart(name=name, reader=TextReader(items), classes=("a", "b")),
                items=items,
            )
            for name, items in parts.items()
        ]
    )


def test_copies_are_grouped_by_part_label_and_encoding_worst_first() -> None:
    look = np.arange(256, dtype=np.uint8)
    square = (("width", 8), ("height", 8))

    def item(where: str, content: bytes, meaning: bytes, label: str = "a", **more: object) -> Item:
        return Item(where=where, content=content, meaning=meaning, label=label, **more)  # type: ignore[arg-type]

    train = [
        Item(where="t0", fault="cut"),
        item("t1", b"1", b"m1", look=look, size=square),
        item("t2", b"1", b"m1", look=look, size=square),
        item("t3", b"3", b"m3"),
        item("t4", b"4", b"m3", "b"),
        item("t5", b"5", b"m5", look=look, size=square),
        item("t6", b"", b""),
        item("t7", b"", b""),
    ]
    evaluation = [Item(where="e0", fault="empty"), item("e1", b"3", b"m3", "b")]
    damaged = Fault(origin="labels.txt, line 3", reason="no label")
    parts = [
        PartItems(
            part=CheckedPart(name="training", reader=TextReader(train), faults=[damaged]),
            items=train,
        ),
        PartItems(
            part=CheckedPart(name="evaluation", reader=TextReader(evaluation)), items=evaluation
        ),
    ]
    t1, t2, t3, t4, t5 = (Place("training", f"t{n}", "a") for n in range(1, 6))
    t4, e1 = t4._replace(detail="b"), Place("evaluation", "e1", "b")
    broken = [
        [Place("training", "t0", "cut")],
        [Place("training", "labels.txt, line 3", "no label")],
        [Place("evaluation", "e0", "empty")],
    ]
    result = findings_of(parts)
    assert result == [
        Finding(kind="broken", what="cannot be used", groups=broken),
        Finding(
            kind="leak", what="the same content in training and in evaluation", groups=[[t3, e1]]
        ),
        Finding(kind="duplicate", what="the same content", groups=[[t1, t2]]),
        Finding(
            kind="label conflict", what="the same content, with different labels", groups=[[t3, e1]]
        ),
        Finding(
            kind="leak",
            what="the same after decoding in training and in evaluation",
            groups=[[t3, t4, e1]],
        ),
        Finding(
            kind="label conflict",
            what="the same after decoding, with different labels",
            groups=[[t3, t4, e1]],
        ),
        Finding(kind="look-alike", what="looks the same", groups=[[t1, t5]]),
    ]
    assert [finding.count for finding in result] == [3, 1, 1, 1, 1, 1, 1]


def test_look_alikes_are_also_grouped_by_part_and_label() -> None:
    look = np.arange(256, dtype=np.uint8)
    square = (("width", 8), ("height", 8))
    train = [Item(where="t", label="a", look=look, size=square)]
    evaluation = [Item(where="e", label="b", look=look, size=square)]
    group = [[Place("training", "t", "a"), Place("evaluation", "e", "b")]]
    assert of_items(training=train, evaluation=evaluation)[:2] == [
        Finding(kind="leak", what="looks the same in training and in evaluation", groups=group),
        Finding(kind="label conflict", what="looks the same, with different labels", groups=group),
    ]


@pytest.mark.parametrize(
    ("usual", "odd", "what"),
    [
        # Four times the median, where the sizes are alike.
        ([10.0] * 9 + [39.0, 2.6], [41.0, 2.4], "2.5 to 40, around a median of 10"),
        # Six times as far as half of the items are, where they are spread: e**3 both ways.
        (
            [np.exp(side / 2) for side in (1, -1) * 8] + [np.exp(2.9), np.exp(-2.9)],
            [np.exp(3.1), np.exp(-3.1)],
            "0.0498 to 20.1, around a median of 1",
        ),
    ],
)
def test_sizes_beyond_four_times_the_median_or_six_spreads_are_outliers(
    usual: list[float], odd: list[float], what: str
) -> None:
    items = [
        Item(where=f"{value:.4g}", size=(("length", value),), traits=("x",))
        for value in (*usual, *odd)
    ]
    groups = [[Place("training", f"{value:.4g}", f"{value:.4g}")] for value in odd]
    assert of_items(training=items)[0] == Finding(
        kind="odd size", what=f"length outside {what}", groups=groups
    )


def test_sides_and_aspect_ratio_are_sizes_and_a_zero_height_has_no_ratio() -> None:
    def item(where: str, width: float, height: float) -> Item:
        return Item(where=where, size=(("width", width), ("height", height)))

    items = [*(item(str(n), 8, 4) for n in range(9)), item("tall", 8, 40), item("flat", 8, 0)]
    result = [(f.what, f.groups) for f in of_items(training=items) if f.kind == "odd size"]
    assert result == [
        (
            "height outside 1 to 16, around a median of 4",
            [[Place("training", "tall", "40")], [Place("training", "flat", "0")]],
        ),
        (
            "width by height outside 0.5 to 8, around a median of 2",
            [[Place("training", "tall", "0.2")]],
        ),
    ]


def test_trait_of_at_most_half_of_the_items_is_unusual() -> None:
    traits = [("grey",), ("grey", "turned"), ("turned", "alpha"), ("grey",)]
    items = [Item(where=str(n), traits=each) for n, each in enumerate(traits)]
    result = [f for f in of_items(training=items) if f.kind == "odd kind"]
    assert result == [
        Finding(
            kind="odd kind",
            what="turned: 2 of 4 items",
            groups=[[Place("training", "1")], [Place("training", "2")]],
        ),
        Finding(kind="odd kind", what="alpha: 1 of 4 items", groups=[[Place("training", "2")]]),
    ]


def test_class_without_any_item_is_not_missing_on_one_side() -> None:
    def of_classes(name: str, classes: str, *used: str) -> PartItems:
        items = [Item(where=f"{name}{n}", classes=(used[n % len(used)],)) for n in range(10)]
        return PartItems(
            part=CheckedPart(name=name, reader=TextReader(items), classes=classes), items=items
        )

    parts = [of_classes("training", "abcd", "a", "c"), of_classes("evaluation", "abcd", "a", "b")]
    assert [(f.kind, f.what, f.groups) for f in findings_of(parts)] == [
        (
            "class",
            "without any item",
            [[Place("training", "d", "no item")], [Place("evaluation", "d", "no item")]],
        ),
        (
            "class",
            "missing on one side",
            [[Place("training", "b", "no item")], [Place("evaluation", "c", "no item")]],
        ),
    ]


def test_class_is_small_below_five_items_or_a_tenth_of_the_median() -> None:
    def items(**counts: int) -> list[Item]:
        return [
            Item(where=f"{name}{n}", classes=(name,))
            for name, count in counts.items()
            for n in range(count)
        ]

    result = of_items(
        training=items(a=100, b=100, c=100, d=9, e=10), evaluation=items(a=5, c=4, d=1, e=5)
    )
    assert result == [
        Finding(
            kind="class",
            what="missing on one side",
            groups=[[Place("evaluation", "b", "no item")]],
        ),
        Finding(
            kind="class",
            what="fewer than 10 items in training",
            groups=[[Place("training", "d", "9 items")]],
        ),
        Finding(
            kind="class",
            what="fewer than 5 items in evaluation",
            groups=[
                [Place("evaluation", "c", "4 items")],
                [Place("evaluation", "d", "1 item")],
            ],
        ),
    ]
    # A part without any item lacks all classes and has no small ones; the next is still looked at.
    empty = of_items(training=[], evaluation=items(a=5, b=4))
    assert [(f.what, f.groups) for f in empty] == [
        (
            "missing on one side",
            [[Place("training", "a", "no item")], [Place("training", "b", "no item")]],
        ),
        ("fewer than 5 items in evaluation", [[Place("evaluation", "b", "4 items")]]),
    ]
