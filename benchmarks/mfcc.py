"""The cost of the MFCC front end, against scipy and python_speech_features.

    OMP_NUM_THREADS=2 python benchmarks/mfcc.py

1,000 clips of one second at 16 kHz, 49 frames of 640 samples, 10 coefficients. The variants take
turns in one process; printed are the median and the range over the rounds, in seconds of the
clock and of the processor. The other two:

- scipy: the same formula over the whole batch in float32, with scipy.fft.rfft on as many threads.
- python_speech_features: the package of that name, clip by clip, with as many bands and
  coefficients over the same frames (its triangles and logarithms differ a little). Optional.

Exit code 1 if jumar takes a second or more, or over 10 % longer than one of them.
"""

import argparse
import importlib
import math
import statistics
import sys
import time
from collections.abc import Callable
from types import ModuleType

import numpy as np
import scipy.fft
import torch
from numpy.typing import NDArray

from jumar.models.mfcc import FILTER_FLOOR, Mfcc

RATE, WINDOW, STRIDE, LENGTH = 16_000, 640, 320, 1024
BANDS, COEFFICIENTS = 40, 10
ALLOWED_S, ALLOWED_RATIO = 1.0, 1.1
INSTALL = "python_speech_features is not installed: pip install python_speech_features"

Audio = NDArray[np.float32]


def scipy_formula(threads: int) -> Callable[[Audio], Audio]:
    """The coefficients of a batch by a real Fourier transform."""
    hann = (0.5 - 0.5 * np.cos(2 * math.pi * np.arange(WINDOW) / WINDOW)).astype(np.float32)
    front_end = Mfcc()
    filters = front_end.get_buffer("filters").numpy()
    transform = front_end.get_buffer("transform").numpy()
    first = int(1.5 + 20.0 * LENGTH / RATE)

    def compute(audio: Audio) -> Audio:
        frames = np.lib.stride_tricks.sliding_window_view(audio, WINDOW, axis=1)[:, ::STRIDE]
        spectrum: NDArray[np.complex64] = scipy.fft.rfft(  # pyright: ignore[reportAssignmentType]
            frames * hann, LENGTH, axis=2, workers=threads
        )
        magnitudes = np.abs(spectrum[..., first : first + len(filters)])
        return np.log(np.maximum(magnitudes @ filters, FILTER_FLOOR)) @ transform

    return compute


def speech_features(package: ModuleType) -> Callable[[Audio], Audio]:
    """The other package's coefficients, clip by clip, as it is used."""

    def compute(audio: Audio) -> Audio:
        clips = [
            package.mfcc(
                clip,
                RATE,
                winlen=WINDOW / RATE,
                winstep=STRIDE / RATE,
                numcep=COEFFICIENTS,
                nfilt=BANDS,
                nfft=LENGTH,
                lowfreq=20,
                highfreq=4000,
                preemph=0,
                ceplifter=0,
                appendEnergy=False,
                winfunc=np.hanning,
            )
            for clip in audio
        ]
        return np.stack(clips)

    return compute


def main() -> int:
    """Measure and print the table; the exit code says whether the promise holds."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--clips", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args()
    threads = torch.get_num_threads()
    audio = np.random.default_rng(1).normal(0, 0.1, (chosen.clips, RATE)).astype(np.float32)
    front_end, tensor = Mfcc(), torch.from_numpy(audio)
    rivals: dict[str, Callable[[], object]] = {"jumar": lambda: front_end(tensor)}
    by_scipy = scipy_formula(threads)
    rivals["scipy"] = lambda: by_scipy(audio)
    np.testing.assert_allclose(front_end(tensor[:4]), by_scipy(audio[:4]), rtol=1e-4, atol=1e-3)
    try:
        by_package = speech_features(importlib.import_module("python_speech_features"))
        rivals["python_speech_features"] = lambda: by_package(audio)
    except ModuleNotFoundError:
        print(INSTALL)
    clock: dict[str, list[float]] = {name: [] for name in rivals}
    processor: dict[str, list[float]] = {name: [] for name in rivals}
    with torch.inference_mode():
        for number in range(chosen.rounds + 1):
            for name, compute in rivals.items():
                start, start_cpu = time.perf_counter(), time.process_time()
                compute()
                if number:  # the first round warms up
                    clock[name].append(time.perf_counter() - start)
                    processor[name].append(time.process_time() - start_cpu)
    medians = {name: statistics.median(values) for name, values in clock.items()}
    print(f"{chosen.clips} clips of 1 s, torch {torch.__version__}, {threads} threads")
    for name, values in clock.items():
        print(
            f"  {name:<23} {medians[name]:6.3f} s ({min(values):.3f} to {max(values):.3f}), "
            f"{statistics.median(processor[name]):6.3f} s of processor; "
            f"{medians[name] / medians['jumar']:5.2f} times jumar's"
        )
    allowed = ALLOWED_S * chosen.clips / 1000
    return int(
        medians["jumar"] >= allowed or medians["jumar"] > ALLOWED_RATIO * min(medians.values())
    )


if __name__ == "__main__":
    sys.exit(main())
