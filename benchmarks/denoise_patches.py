"""Noisy patches that a process makes in a second of CPU time from decoded pictures.

Run: python benchmarks/denoise_patches.py ../shared/data/denoise/bsds500-train200.zip
"""

import statistics
import sys
import time

import torch

from jumar.data.denoising.denoise_sets import DenoisingData, open_patches
from jumar.data.denoising.noise import NoiseSettings
from jumar.data.loading.sampler import batch_keys

ROUNDS, BATCHES = 7, 20
CASES = {
    "ViDeNN, colour 50 x 50, uint8": DenoisingData(batch_size=64, scales=(1.0, 0.8)),
    "NLRN, grey 43 x 43, float": DenoisingData(
        batch_size=16,
        patch_size=43,
        channels="grey",
        noise=NoiseSettings(sigma=(25.0,), storage="float"),
    ),
}


def main() -> None:
    """Print the median of some rounds for each case, and their range."""
    if len(sys.argv) != 2:
        sys.exit("usage: python benchmarks/denoise_patches.py PICTURES")
    torch.set_num_threads(1)
    for name, data in CASES.items():
        patches, _ = open_patches(
            DenoisingData(**{**vars(data), "path": sys.argv[1], "eval_path": "none"}), seed=1
        )
        for index in range(len(patches.kind.pictures)):
            for scale in range(len(data.scales)):
                patches.kind.pictures.read(index, scale)
        speeds: list[float] = []
        for number in range(ROUNDS):
            start = time.process_time()
            for step in range(number * BATCHES, (number + 1) * BATCHES):
                batch = data.batch_size
                keys = batch_keys(1, step, size=len(patches), batch_per_rank=batch, rank=0, world=1)
                patches.fetch(keys)
            speeds.append(BATCHES * data.batch_size / (time.process_time() - start))
        low, high = min(speeds), max(speeds)
        print(f"{name}: {statistics.median(speeds):,.0f} patches/s ({low:,.0f} to {high:,.0f})")


if __name__ == "__main__":
    main()
