"""Training patches for denoising: cropped, rotated and made noisy during training.

ViDeNN's scripts first write all patches to a file: a fixed grid of stride 100 over each image at
the scales 1 and 0.8, three copies, each in one of eight orientations, one noise level per image.
Here, position, scale, orientation and level are drawn for each sample, so no two epochs see the
same patch and nothing is written. Further differences:

- Noise is added after scaling. The scripts resize noisy images, so that patches of scale 0.8 have
  smoother noise than any camera or evaluation produces.
- Both sides are scaled alike. The scripts swap height and width when resizing.
- The probability of a scale is proportional to the scaled image's area, as with the grid.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jumar.data.denoising.clean_pictures import CleanPictures, Pixels
from jumar.data.denoising.noise import NoiseSettings, add_noise, draw_level, storage_of
from jumar.data.loading.collate import Stacked
from jumar.data.loading.keyed_set import KeyedSet
from jumar.data.loading.sampler import sample_random
from jumar.data.samples import Arrays, SampleKey

TURNS = 8
"""Four rotations, each also flipped vertically."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Patches:
    """Square patches of images, `clean`, with their `noisy` versions.

    Images smaller than a patch are mirrored at their edges.

    Attributes:
        pictures: The decoded images, at the scales that patches are cut from.
        noise: Kind, strength and form of the noise.
        patch_size: Side of a patch in pixels.
        turns: Whether patches are rotated and flipped.
        seed: Together with a key, determines all random choices.
    """

    pictures: CleanPictures
    noise: NoiseSettings
    patch_size: int
    turns: bool = True
    seed: int = 0

    def __len__(self) -> int:
        return len(self.pictures)

    @property
    def fingerprint(self) -> str:
        """The images' fingerprint; see `Fingerprinted`."""
        return self.pictures.pictures.fingerprint

    def open(self, item: int, key: SampleKey) -> tuple[Pixels, np.random.Generator]:
        """Read an image at a random scale, and return both it and the generator."""
        random = sample_random(self.seed, key)
        scale = int(np.searchsorted(self._shares, random.random()))
        return self.pictures.read(item, min(scale, len(self._shares) - 1)), random

    def map(
        self, opened: tuple[Pixels, np.random.Generator], _item: int, _key: SampleKey
    ) -> Arrays:
        """Return a patch without and with noise; see `SampleKind.map`."""
        pixels, random = opened
        patch = random_window(pixels, self.patch_size, random)
        # Copied after the rotation, so that noise is added to contiguous memory.
        clean = np.ascontiguousarray(
            turned(patch, int(random.integers(TURNS))) if self.turns else patch
        )
        level = draw_level(self.noise, random)
        return {"clean": clean, "noisy": add_noise(clean, level, random, storage_of(self.noise))}

    @cached_property
    def _shares(self) -> NDArray[np.float64]:
        areas = np.square(self.pictures.scales)
        return np.cumsum(areas / areas.sum())


def patch_set(patches: Patches, *, per_picture: int) -> KeyedSet[Patches]:
    """Patches as batches: `clean`, uint8 [N, channels, patch_size, patch_size] with levels 0 to
    255, and `noisy`, the same shape: uint8 if the noise is stored that way, otherwise float32 from
    0 to 1 (see `jumar.data.denoising.noise`). Both are in channels_last memory.

    Args:
        patches: The patches to batch.
        per_picture: Patches per image and epoch.
    """
    channels = 3 if patches.pictures.channels == "colour" else 1
    return KeyedSet(
        kind=patches,
        collate=denoising_collate(5 * channels * patches.patch_size**2),
        training=True,
        per_item=per_picture,
        what="images",
        todo="Check the path of the data.",
    )


def denoising_collate(sample_bytes: int) -> Stacked:
    """Return a collate function for patches, `clean` and `noisy`; see `Stacked`."""
    return Stacked(
        what="patches",
        fields="data.batch_size, data.patch_size",
        sample_bytes=sample_bytes,
        pictures=("clean", "noisy"),
    )


def random_window(pixels: Pixels, side: int, random: np.random.Generator) -> Pixels:
    """Cut a random square of `side` pixels from an image [height, width, channels].

    A smaller image is extended by mirroring at its edges.
    """
    pixels = mirrored(pixels, side)
    top = int(random.integers(pixels.shape[0] - side + 1))
    left = int(random.integers(pixels.shape[1] - side + 1))
    return pixels[top : top + side, left : left + side]


def mirrored(pixels: Pixels, side: int) -> Pixels:
    """Extend an image [height, width, channels] to at least `side` x `side` by mirroring."""
    height, width = pixels.shape[:2]
    if min(height, width) >= side:
        return pixels
    gaps = (max(0, side - height), max(0, side - width))
    pads = [(gap // 2, gap - gap // 2) for gap in gaps]
    return np.pad(pixels, [*pads, (0, 0)], mode="symmetric")


def turned(pixels: Pixels, turn: int) -> Pixels:
    """Return one of the eight rotations and reflections of a square image, as a view.

    Args:
        pixels: [side, side, channels].
        turn: 0 to 7: `turn // 2` quarter turns to the left; odd values also flip vertically.
    """
    rotated = np.rot90(pixels, turn // 2)
    return rotated[::-1] if turn % 2 else rotated
