"""Mel-frequency cepstral coefficients as TensorFlow 1.15 computes them for speech commands.

Original: the operations AudioSpectrogram (squared magnitude) and Mfcc of TensorFlow 1.15, as
ARM-software/ML-KWS-for-MCU chains them. Those run on a CPU, clip by clip; here a batch of clips is
computed on any device. No lifter, no normalisation, no mean subtraction.
"""

import math
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from jumar.models.export_mode import in_export_mode, without_autocast

FILTER_FLOOR = 1e-12
"""Floor for the energy of a mel band before its logarithm, so that silence is finite."""

_CLIPS_IN_CACHE = 10
"""Clips that a CPU computes at once: in batches of a hundred, a clip takes 1.5 times as long."""


class PowerSpectrogram(nn.Module):
    """Squared magnitudes of a windowed Fourier transform of real input.

    On a CPU this is a fast Fourier transform. Other devices multiply by matrices, since Ascend
    supports complex numbers only in part, and the extra work is small for them. A squared magnitude
    does not change when time is shifted, so frames are centred on the middle, about which the
    periodic Hann window is symmetric. Sums of mirrored samples then need only the cosines and their
    differences only the sines: half the work of a transform matrix. The window is folded into the
    matrices.

    Takes audio [N, samples] and returns float32 [N, frames, bins], with
    frames = 1 + (samples - window_samples) // stride_samples.

    Args:
        window_samples: Length of a frame. The length of the transform is the next power of two.
        stride_samples: Step from frame to frame.
        bins: The bins to compute; all of them by default.
        matrices: Whether to multiply by matrices on every device.

    Raises:
        ValueError: A length is not positive, or there are no such bins.
    """

    def __init__(
        self,
        *,
        window_samples: int,
        stride_samples: int,
        bins: range | None = None,
        matrices: bool = False,
    ) -> None:
        super().__init__()
        if window_samples < 2 or stride_samples < 1:
            raise ValueError(
                f"frames of {window_samples} samples every {stride_samples} are not possible"
            )
        self.window_samples = window_samples
        self.stride_samples = stride_samples
        length = transform_length(window_samples)
        bins = range(length // 2 + 1) if bins is None else bins
        if not bins or bins[0] < 0 or bins[-1] > length // 2:
            raise ValueError(f"a transform of {length} samples has no bins {bins}")
        self._length, self._bins, self._matrices = length, slice(bins[0], bins[-1] + 1), matrices
        self.register_buffer("window", _table(_hann(window_samples)), persistent=False)
        cosines, sines = _mirrored_tables(window_samples, length, bins)
        self.register_buffer("cosines", _table(cosines), persistent=False)
        self.register_buffer("sines", _table(sines), persistent=False)

    def forward(self, audio: torch.Tensor) -> torch.Tensor:
        if audio.ndim != 2 or audio.shape[1] < self.window_samples:
            raise ValueError(
                f"audio must be [N, {self.window_samples} samples or more], not {list(audio.shape)}"
            )
        # bf16 would leave three digits of a power that spans ten decades before its logarithm.
        with without_autocast(audio.device.type):
            frames = audio.float().unfold(1, self.window_samples, self.stride_samples)
            by_matrices = self._matrices or in_export_mode() or audio.device.type != "cpu"
            if not by_matrices:
                windowed = frames * cast(torch.Tensor, self.window)
                spectrum = torch.fft.rfft(windowed, self._length)[..., self._bins]
                return torch.view_as_real(spectrum).square().sum(-1)
            half = self.window_samples // 2
            # The first sample of a frame has weight zero in the window and no mirror image.
            before = frames[..., 1 : half + 1].flip(-1)
            after = frames[..., self.window_samples - half :]
            even = (after + before) @ cast(torch.Tensor, self.cosines)
            odd = (after - before) @ cast(torch.Tensor, self.sines)
            return even.square() + odd.square()


class Mfcc(nn.Module):
    """Cepstral coefficients of a batch of clips, in float32 in every precision mode.

    Takes float audio [N, samples] in -1..1 and returns float32 [N, frames, coefficients]. It has no
    parameters, and its `state_dict` is empty.

    Args:
        sample_rate: Samples per second.
        window_samples: Length of a frame; 640 is 40 ms at 16 kHz.
        stride_samples: Step from frame to frame.
        coefficients: Cepstral coefficients to keep; the first one follows the loudness.
        bands: Mel bands.
        lowest: Lower edge of the first band in Hz.
        highest: Upper edge of the last band in Hz.
        matrices: See `PowerSpectrogram`.

    Raises:
        ValueError: The arguments contradict each other.
    """

    def __init__(
        self,
        *,
        sample_rate: int = 16_000,
        window_samples: int = 640,
        stride_samples: int = 320,
        coefficients: int = 10,
        bands: int = 40,
        lowest: float = 20.0,
        highest: float = 4000.0,
        matrices: bool = False,
    ) -> None:
        super().__init__()
        if not 1 <= coefficients <= bands:
            raise ValueError(
                f"the number of coefficients must be from 1 to the {bands} mel bands, "
                f"not {coefficients}"
            )
        if not 0 <= lowest < highest <= sample_rate / 2:
            raise ValueError(
                f"bands from {lowest} to {highest} Hz are not possible at {sample_rate} samples "
                "per second"
            )
        self.sample_rate = sample_rate
        self.window_samples = window_samples
        self.stride_samples = stride_samples
        self.coefficients = coefficients
        spacing = sample_rate / transform_length(window_samples)
        bins = range(int(1.5 + lowest / spacing), int(highest / spacing) + 1)
        self.power = PowerSpectrogram(
            window_samples=window_samples,
            stride_samples=stride_samples,
            bins=bins,
            matrices=matrices,
        )
        filters = _mel_filters(bins, spacing, bands, lowest, highest)
        self.register_buffer("filters", _table(filters), persistent=False)
        self.register_buffer("transform", _table(_cosines(bands, coefficients)), persistent=False)

    def frames(self, samples: int) -> int:
        """Number of frames in a clip of this many samples."""
        return max(0, 1 + (samples - self.window_samples) // self.stride_samples)

    def log_mel(self, audio: torch.Tensor) -> torch.Tensor:
        """Logarithms of the mel bands' energies, float32 [N, frames, bands]."""
        with without_autocast(audio.device.type):
            energies = self.power(audio).sqrt() @ cast(torch.Tensor, self.filters)
            return energies.clamp_min(FILTER_FLOOR).log()

    def forward(self, audio: torch.Tensor) -> torch.Tensor:
        with without_autocast(audio.device.type):
            transform = cast(torch.Tensor, self.transform)
            is_traced = in_export_mode()
            if is_traced or audio.device.type != "cpu" or len(audio) <= _CLIPS_IN_CACHE:
                return self.log_mel(audio) @ transform
            parts = audio.split(_CLIPS_IN_CACHE)
            return torch.cat([self.log_mel(part) @ transform for part in parts])


def transform_length(window_samples: int) -> int:
    """Length of the Fourier transform of a frame: the next power of two."""
    return 1 << (window_samples - 1).bit_length()


def _table(values: NDArray[np.float64]) -> torch.Tensor:
    return torch.from_numpy(values.astype(np.float32))


def _hann(window: int) -> NDArray[np.float64]:
    """The periodic window, whose first weight is zero and whose last one is not."""
    return 0.5 - 0.5 * np.cos(2 * math.pi / window * np.arange(window))


def _mirrored_tables(
    window: int, length: int, bins: range
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Windowed cosines and sines [window // 2, bins], by distance from the middle of the frame."""
    positions = np.arange(window - window // 2, window)
    weights = _hann(window)[positions]
    if window % 2 == 0:
        # The middle sample is its own mirror image and would count twice.
        weights[0] *= 0.5
    angles = 2 * math.pi / length * np.outer(positions - window / 2, np.asarray(bins))
    return weights[:, None] * np.cos(angles), weights[:, None] * np.sin(angles)


def _mel(hertz: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1127.0 * np.log1p(hertz / 700.0)


def _mel_filters(
    bins: range, spacing: float, bands: int, lowest: float, highest: float
) -> NDArray[np.float64]:
    """Triangular filters [bins, bands]; neighbours overlap and add up to one.

    Args:
        bins: Bins of the spectrum.
        spacing: Hz from bin to bin.
        bands: Filters, with equally spaced centres on the mel scale.
        lowest: Lower edge of the first in Hz.
        highest: Upper edge of the last in Hz.
    """
    low, high = _mel(np.array([lowest, highest]))
    edges = np.linspace(low, high, bands + 2)
    mels = _mel(np.asarray(bins) * spacing)[:, None]
    rising = (mels - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - mels) / (edges[2:] - edges[1:-1])
    return np.maximum(np.minimum(rising, falling), 0.0)


def _cosines(bands: int, coefficients: int) -> NDArray[np.float64]:
    """The cosine transform [bands, coefficients] of the second kind."""
    angles = math.pi / bands * np.outer(np.arange(bands) + 0.5, np.arange(coefficients))
    return math.sqrt(2.0 / bands) * np.cos(angles)
