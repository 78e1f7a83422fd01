"""Training patches for denoising: cut, turned and made noisy while training goes on.

ViDeNN's scripts write all patches to a file first: a fixed grid of stride 100 over each picture
at the scales 1 and 0.8, three copies, each turned in one of eight ways, one noise level a
picture. Here each sample draws its own place, scale, turn and level, so no two epochs see the
same patch and nothing is written. Further differences:

- Noise is added after the change of scale. There, noisy pictures were resized, so that patches of
  scale 0.8 had smoother noise than any camera or evaluation gives.
- Both sides shrink by the scale. There, height and width were exchanged in the resize.
- A scale is drawn as often as its picture has area, which is what the grid amounted to.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jumar.data.denoising.clean_pictures import CleanPictures, Pixels
from jumar.data.denoising.noise import NoiseSettings, add_noise, draw_level, storage_of
from jumar.data.loading.sampler import sample_random
from jumar.data.samples import CorruptRecord, Fault, Fetched, SampleKey
from jumar.ground.errors import UserError
from jumar.ground.machine import check_fits

TURNS = 8
"""Four rotations, each also upside down."""
PATCH_FIELDS = "data.batch_size, data.patch_size"
"""What a batch that is too large for memory is blamed on."""


class PatchSet:
    """Square patches of pictures with their noisy versions: a `SampleSet`.

    A batch holds `clean`, uint8 [N, channels, patch_size, patch_size] with levels 0 to 255, and
    `noisy`, the same shape: uint8 where the noise is stored so, else float32 on the scale 0 to 1
    (see `jumar.data.denoising.noise`). Both are in channels_last memory.

    Pictures smaller than a patch are mirrored at their edges. A picture that cannot be read is
    reported as a fault, and the next readable one takes its place.

    Args:
        pictures: Decoded, at the scales from which patches are cut.
        noise: Kind, strength and form of the noise.
        patch_size: Side of a patch in pixels.
        patches_per_image: Patches of each picture in an epoch.
        turns: Whether patches are rotated and flipped.
        seed: Together with a key, decides everything that is drawn.
    """

    def __init__(
        self,
        pictures: CleanPictures,
        noise: NoiseSettings,
        *,
        patch_size: int,
        patches_per_image: int,
        turns: bool = True,
        seed: int = 0,
    ) -> None:
        self.pictures = pictures
        self.noise = noise
        self.patch_size = patch_size
        self.patches_per_image = patches_per_image
        self.turns = turns
        self.seed = seed
        areas = np.square(pictures.scales)
        self._shares = np.cumsum(areas / areas.sum())

    def __len__(self) -> int:
        return len(self.pictures) * self.patches_per_image

    def fetch(self, keys: Sequence[SampleKey]) -> Fetched:
        """The patches of these keys, in their order.

        Raises:
            UserError: None of the pictures can be read.
        """
        faults: list[Fault] = []
        side = self.patch_size
        channels = 3 if self.pictures.channels == "colour" else 1
        storage = storage_of(self.noise)
        shape = (len(keys), side, side, channels)
        check_fits(len(keys), 5 * side * side * channels, "patches", PATCH_FIELDS)
        clean = np.empty(shape, np.uint8)
        noisy = np.empty(shape, np.uint8 if storage == "uint8" else np.float32)
        for row, key in enumerate(keys):
            random = sample_random(self.seed, key)
            # The turn in memory order first: noise is then added to contiguous rows.
            clean[row] = self._patch(key, random, faults)
            level = draw_level(self.noise, random)
            noisy[row] = add_noise(clean[row], level, random, storage)
        batch = {"clean": channels_first(clean), "noisy": channels_first(noisy)}
        return Fetched(batch=batch, faults=faults)

    def _patch(self, key: SampleKey, random: np.random.Generator, faults: list[Fault]) -> Pixels:
        scale = int(np.searchsorted(self._shares, random.random()))
        scale = min(scale, len(self._shares) - 1)
        pixels = self._readable(key.index // self.patches_per_image, scale, faults)
        cut = random_window(pixels, self.patch_size, random)
        return turned(cut, int(random.integers(TURNS))) if self.turns else cut

    def _readable(self, index: int, scale: int, faults: list[Fault]) -> Pixels:
        for step in range(len(self.pictures)):
            try:
                return self.pictures.read((index + step) % len(self.pictures), scale)
            except CorruptRecord as error:
                faults.append(error.fault)
        raise UserError(
            f"none of the {len(self.pictures)} pictures can be read, the last one because: "
            f"{faults[-1].reason}",
            where=faults[-1].origin,
            todo="Check the path of the data.",
        )


def channels_first(rows: NDArray[Any]) -> Tensor:
    """[N, height, width, channels] as a tensor [N, channels, height, width] over its memory."""
    return torch.from_numpy(rows).permute(0, 3, 1, 2)


def random_window(pixels: Pixels, side: int, random: np.random.Generator) -> Pixels:
    """A square of `side` pixels of a picture [height, width, channels].

    What is missing of a smaller picture is mirrored at its edges.
    """
    pixels = mirrored(pixels, side)
    top = int(random.integers(pixels.shape[0] - side + 1))
    left = int(random.integers(pixels.shape[1] - side + 1))
    return pixels[top : top + side, left : left + side]


def mirrored(pixels: Pixels, side: int) -> Pixels:
    """A picture [height, width, channels] continued to at least `side` x `side` by mirroring."""
    height, width = pixels.shape[:2]
    if min(height, width) >= side:
        return pixels
    missing = (max(0, side - height), max(0, side - width))
    pads = [(gap // 2, gap - gap // 2) for gap in missing]
    return np.pad(pixels, [*pads, (0, 0)], mode="symmetric")


def turned(pixels: Pixels, turn: int) -> Pixels:
    """One of the eight rotations and mirrorings of a square, a view.

    Args:
        pixels: [side, side, channels].
        turn: 0 to 7: half of it in quarter turns to the left, upside down where it is odd.
    """
    rotated = np.rot90(pixels, turn // 2)
    return rotated[::-1] if turn % 2 else rotated
