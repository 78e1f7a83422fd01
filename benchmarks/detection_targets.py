"""Training samples of text detectors a second, on one core.

    python benchmarks/detection_targets.py shared/data/text-det/icdar15-samples.zip --rounds 5

Reads, decodes, crops and resizes the pictures of a folder or zip and draws their targets, as the
loader does, without workers. The clock is the CPU time of one thread.
"""

import argparse
import time
from typing import get_args

import cv2

from jumar.data.polygons.detection_data import DetectionData, Targets
from jumar.data.polygons.detection_set import open_detection_sets
from jumar.data.samples import SampleKey


def main() -> None:
    """Print a line for each kind of targets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", help="a folder or zip of pictures with the outlines of words")
    parser.add_argument("--side", type=int, default=512, help="of the crops, in pixels")
    parser.add_argument("--rounds", type=int, default=3, help="epochs")
    arguments = parser.parse_args()
    data = DetectionData(path=arguments.path, image_size=arguments.side, eval_path="none")
    for targets in get_args(Targets):
        train, _ = open_detection_sets(data, targets=targets, seed=1, notice=print)
        cv2.setNumThreads(1)
        train.fetch([SampleKey(0, 0)])
        keys = [
            SampleKey(each, item) for each in range(arguments.rounds) for item in range(len(train))
        ]
        start = time.process_time()
        for first in range(0, len(keys), 8):
            train.fetch(keys[first : first + 8])
        spent = time.process_time() - start
        print(
            f"{targets}: {len(keys) / spent:.0f} pictures/s a core at {arguments.side} px "
            f"({len(keys)} pictures, {spent / len(keys) * 1e3:.1f} ms each)"
        )


if __name__ == "__main__":
    main()
