"""The data settings of text detectors."""

from dataclasses import dataclass
from typing import Literal

from jumar.data.loading.loader_settings import LoaderSettings, eval_path_setting
from jumar.data.polygons.augmentation import TextAugmentation
from jumar.data.polygons.deteval import TOTAL_TEXT
from jumar.data.polygons.protocol import ICDAR2015
from jumar.ground.errors import UserError
from jumar.settings import setting

Targets = Literal["kernels", "score"]
"""Targets of a network: PSENet's kernels, or EAST's score and geometry."""

PROTOCOLS = {"icdar2015": ICDAR2015, "total-text": TOTAL_TEXT}


@dataclass(frozen=True, kw_only=True)
class DetectionData(LoaderSettings):
    """Where to find the images and the outlines of their words, and how to make batches of them."""

    path: str = setting(
        "",
        "A folder or zip of images and label files (ICDAR, MLT, Total-Text, JSON).",
        unit="path",
    )
    labels: str = setting(
        "", "Folder or zip of the label files if they are not in path.", unit="path"
    )
    eval_path: str = eval_path_setting(unit="path")
    eval_labels: str = setting("", "Label files of eval_path.", unit="path", changeable=True)
    image_size: int = setting(512, "Side of training images.", unit="px", minimum=32)
    eval_longest: int = setting(
        1200, "Longest side in evaluation; larger images are shrunk.", unit="px", minimum=32
    )
    eval_scale: float = setting(
        1.0,
        "Scale factor in evaluation, up to eval_longest; above 1 for small words.",
        minimum=0.01,
    )
    eval_rounding: str = setting(
        "up",
        "Sides in evaluation are rounded to multiples of 32, up (PSENet) or down (EAST).",
        choices=("up", "down"),
    )
    eval_batch_size: int = setting(
        1,
        "Evaluation batch size per rank; smaller images of a batch get a black border.",
        unit="images",
        minimum=1,
        changeable=True,
    )
    protocol: str = setting(
        "icdar2015",
        "How words are scored: icdar2015 matches each word with one detection; total-text "
        "(DetEval) counts a split or merged word 0.8.",
        choices=tuple(PROTOCOLS),
        changeable=True,
    )
    least_word: float = setting(
        10.0, "Words with a shorter side are masked (EAST).", unit="px", minimum=0
    )
    augmentation: TextAugmentation = setting(TextAugmentation(), "Crops and changes in training.")

    def check(self) -> None:
        """Reject sides that are not multiples of 32."""
        if self.image_size % 32:
            raise UserError(
                f"{self.image_size} is not a multiple of 32",
                where="data.image_size",
                todo=f"Use {self.image_size // 32 * 32} or {-(-self.image_size // 32) * 32}.",
            )
