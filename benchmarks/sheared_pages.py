"""Write a copy of a text detection set whose pictures are turned and sheared, with their outlines.

For pages whose words are all upright rectangles: how well a detector does on slanted ones.

    python benchmarks/sheared_pages.py SET.zip --to FOLDER [--degrees 10] [--shear 0.15] [--seed 1]
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from jumar.data.pixels.decode import decode_image
from jumar.data.pixels.picture_files import write_picture
from jumar.data.polygons.augmentation import rotated
from jumar.data.polygons.regions import Region
from jumar.data.polygons.text_pictures import open_text_pictures
from jumar.ground.files import folder_beside, write_text


def main() -> None:
    """Write the copy."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("set", help="a folder or zip of pictures and label files")
    parser.add_argument("--to", type=Path, required=True, help="a new folder")
    parser.add_argument("--degrees", type=float, default=10, help="largest angle")
    parser.add_argument("--shear", type=float, default=0.15, help="largest shear")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    source = open_text_pictures(given.set, "eval", notice=print)
    random = np.random.default_rng(given.seed)
    with folder_beside(given.to) as folder:
        for index, regions in enumerate(source.regions):
            pixels = decode_image(source.read(index).encoded, fast=False)
            angle = random.uniform(-given.degrees, given.degrees)
            pixels, moved = sheared(pixels, regions, random.uniform(-given.shear, given.shear))
            pixels, moved = rotated(pixels, moved, angle)
            write_picture(pixels, folder / f"img_{index + 1}.png")
            lines = [",".join(f"{x:.1f}" for x in each.corners.ravel()) for each in moved]
            text = [f"{line},{each.text}\n" for line, each in zip(lines, moved, strict=True)]
            write_text(folder / f"gt_img_{index + 1}.txt", "".join(text))
    print(f"{len(source)} pictures: {given.to}")


def sheared(
    pixels: NDArray[np.uint8], regions: Sequence[Region], factor: float
) -> tuple[NDArray[np.uint8], list[Region]]:
    """A picture whose rows move sideways by a part of their distance from the top."""
    height, width = pixels.shape[:2]
    shift = max(0.0, -factor * height)
    matrix = np.array([[1, factor, shift], [0, 1, 0]])
    size = (round(width + abs(factor) * height), height)
    moved = [
        replace(each, corners=each.corners @ matrix[:, :2].T + matrix[:, 2]) for each in regions
    ]
    return np.asarray(cv2.warpAffine(pixels, matrix, size), np.uint8), moved


if __name__ == "__main__":
    main()
