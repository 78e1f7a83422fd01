"""Score the published DnCNN (grey, sigma 25) on Set12 with this project's noise and PSNR.

Its weights and its scores come from elsewhere, so agreement shows that data, noise, clipping and
PSNR here match the literature.

Run: python benchmarks/dncnn_set12.py ../shared/data
"""

import sys
import time
from collections import OrderedDict
from pathlib import Path

import torch
from torch import Tensor, nn

from jumar.data.denoising.clean_pictures import CleanPictures
from jumar.data.denoising.noisy_pictures import NoisyPictures, whole_pictures_set
from jumar.data.images.picture_tree import open_pictures
from jumar.data.samples import SampleKey
from jumar.tasks.denoising import DenoisingTask, HalfSquaredError

SIGMA = 25.0
MEASURED = (30.21, 33.15, 30.82, 29.41, 30.48, 29.09, 29.45, 32.41, 30.02, 30.20, 30.08, 30.10)
"""PSNR of the twelve pictures, as measured with the weights' own code."""


class DnCNN(nn.Module):
    """K. Zhang et al., "Beyond a Gaussian Denoiser", IEEE TIP 2017: predicts the noise."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[tuple[str, nn.Module]] = []
        for index in range(17):
            conv = nn.Conv2d(64 if index else 1, 64 if index < 16 else 1, 3, padding=1)
            layers += [(str(2 * index), conv), (str(2 * index + 1), nn.ReLU(inplace=True))]
        self.model = nn.Sequential(OrderedDict(layers[:-1]))

    def forward(self, noisy: Tensor) -> Tensor:
        """Grey pictures [N, 1, height, width] on the scale 0 to 1."""
        return noisy - self.model(noisy)


def set12_task(data: Path) -> DenoisingTask:
    """The published network and Set12 with the noise of the reference scores.

    Args:
        data: The folder with `denoise` and `pretrained`.
    """
    network = DnCNN()
    weights = data / "pretrained" / "dncnn" / "dncnn_25.pth"
    network.load_state_dict(torch.load(weights, weights_only=True, map_location="cpu"))
    pictures = open_pictures(str(data / "denoise" / "set12.zip"), "eval")
    noisy = whole_pictures_set(
        NoisyPictures(
            CleanPictures(pictures, "grey"),
            kind="gaussian",
            levels=[SIGMA],
            storage="float",
            seeding="sequence",
        )
    )
    return DenoisingTask(
        network.eval(),
        train_data=noisy,
        eval_data=noisy,
        level_names=[f"sigma {SIGMA:g}"],
        loss=HalfSquaredError(),
    )


def score(task: DenoisingTask, index: int) -> float:
    """The PSNR of one picture in dB."""
    assert task.eval_data is not None
    with torch.inference_mode():
        sums = task.evaluate_batch(task.eval_data.fetch([SampleKey(0, index)]).batch)
    return task.summarize({name: value.double() for name, value in sums.items()})["psnr"]


def main() -> None:
    """Print our PSNR next to the measured one for every picture."""
    if len(sys.argv) != 2:
        sys.exit("usage: python benchmarks/dncnn_set12.py DATA")
    task = set12_task(Path(sys.argv[1]))
    scores: list[float] = []
    for index, measured in enumerate(MEASURED):
        start = time.perf_counter()
        scores.append(score(task, index))
        seconds = time.perf_counter() - start
        print(
            f"{index + 1:02}.png  {scores[-1]:.2f} dB  (measured {measured:.2f})  {seconds:.1f} s"
        )
    print(f"mean    {sum(scores) / len(scores):.2f} dB  (measured 30.45)")


if __name__ == "__main__":
    main()
