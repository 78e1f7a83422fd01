"""Real outlines become maps and words again; what needs no package of the extra imports none."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jumar.data.polygons.box_words import words_of_boxes
from jumar.data.polygons.detection_data import DetectionData
from jumar.data.polygons.detection_set import (
    DetectionPictures,
    batch_regions,
    evaluation_set,
)
from jumar.data.polygons.deteval import deteval_counts
from jumar.data.polygons.kernel_words import words_of_kernels
from jumar.data.polygons.kernels import kernel_maps
from jumar.data.polygons.protocol import picture_score, scores_of
from jumar.data.polygons.score_maps import score_maps
from jumar.data.polygons.text_pictures import open_text_pictures
from jumar.data.samples import SampleKey


@pytest.mark.parametrize("rounding", ["up", "down"])
def test_perfect_maps_of_street_photographs_reach_the_full_score(
    shared: Path, rounding: str
) -> None:
    source = open_text_pictures(str(shared / "data/text-det/icdar15-samples.zip"), "eval")
    data = DetectionData(eval_longest=1200, eval_rounding=rounding)
    pictures = DetectionPictures(
        source=source, data=data, targets="kernels", seed=0, training=False
    )
    counts = np.zeros((2, 4), np.int64)
    curved = np.zeros(4)
    for index in range(len(source)):
        batch = evaluation_set(pictures).fetch([SampleKey(0, index)]).batch
        (words,) = batch_regions(batch)
        scale = batch["scale"][0].double().numpy()
        size = (batch["image"].shape[2], batch["image"].shape[3])
        assert size[0] % 32 == size[1] % 32 == 0
        scaled = [replace(word, corners=word.corners * scale) for word in words]
        maps = kernel_maps(scaled, size)[0].transpose(2, 0, 1).astype(np.float32)
        score, geometry, _ = score_maps(scaled, size)
        rectangles, polygons = (
            [each.corners / scale for each in words_of_kernels(maps, size, **how)]
            for how in ({"least_area": 3}, {"least_area": 3, "outline": "polygon"})
        )
        boxes = words_of_boxes(score.astype(np.float32), geometry.transpose(2, 0, 1))
        counts[0] += picture_score(words, rectangles).counts
        counts[1] += picture_score(words, [each.corners / scale for each in boxes]).counts
        curved += deteval_counts(words, polygons)
    assert counts[0, 1] > 30
    for each in counts:
        assert scores_of(each) == (1, 1, 1)
    assert scores_of(curved) == (1, 1, 1)


def test_settings_sets_and_scores_are_imported_without_the_extra() -> None:
    script = (
        "import sys\n"
        "for name in ('cv2', 'shapely', 'pyclipper'):\n"
        "    sys.modules[name] = None\n"
        "from jumar.data.polygons import box_words, deteval, detection_set, protocol\n"
        "from jumar.data.polygons.detection_data import DetectionData\n"
        "try:\n"
        "    detection_set.open_detection_sets(DetectionData(), targets='score', seed=0)\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error.name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "pyclipper", done.stderr
