"""Image denoising, scored by the similarity of the output and the clean image.

Networks accept and return float images [N, channels, height, width] from 0 to 1. Bytes are scaled
on the device.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from jumar.data.pixels.image_quality import psnr, ssim
from jumar.data.pixels.picture_grid import side_by_side
from jumar.data.samples import Batch, SampleKey, SampleSet
from jumar.settings import Component, setting
from jumar.tasks.task import Decays, Headline, Illustration, Objective, ScoreTable, Task

Denoiser = Callable[[Tensor], Tensor]
"""Maps whole noisy images [N, channels, height, width] from 0 to 1 to clean ones, in tiles or
patches if the network cannot process a whole image at once."""
Rounding = Literal["none", "nearest", "truncated"]

_SSIM_SIDE = 11
_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class DenoisingLoss(Component, ABC):
    """The loss of a denoising network, computed from the error of its output."""

    @abstractmethod
    def total(self, error: Tensor) -> Tensor:
        """Return the loss summed over the patches; a scalar.

        Args:
            error: float32 [N, channels, height, width], the difference from the clean patches.
        """


@dataclass(frozen=True, kw_only=True)
class HalfSquaredError(DenoisingLoss, kind="l2_sum_per_batch"):
    """Half the squared error, summed over pixels and channels (ViDeNN)."""

    def total(self, error: Tensor) -> Tensor:
        """See `DenoisingLoss.total`."""
        return 0.5 * error.square().sum()


@dataclass(frozen=True, kw_only=True)
class CentralSquaredError(DenoisingLoss, kind="mse_center"):
    """The mean squared error of a central window (NLRN)."""

    center: int = setting(
        0, "Side of the central window; 0: the whole patch.", unit="px", minimum=0
    )

    def total(self, error: Tensor) -> Tensor:
        """See `DenoisingLoss.total`."""
        return len(error) * central_window(error, self.center).square().mean()


class DenoisingObjective(Objective):
    """The loss of the network's output compared with the clean patch.

    Args:
        network: Noisy images in, clean ones out.
        loss: Computes the loss from the error.
        trained: The part of the network to train; None for all of it.
        decays: Which parameters decay.
    """

    name = "denoising"

    def __init__(
        self,
        network: nn.Module,
        *,
        loss: DenoisingLoss,
        trained: nn.Module | None = None,
        decays: Decays = lambda _name, _parameter: True,
    ) -> None:
        super().__init__()
        self.network = network
        self.trained = network if trained is None else trained
        self._loss = loss
        self._decays = decays

    def decays(self, name: str, parameter: nn.Parameter) -> bool:
        """Decide as the original of the network does."""
        return self._decays(name, parameter)

    def sums(self, batch: Batch) -> dict[str, Tensor]:
        """Return the loss of a batch of `clean` and `noisy`."""
        output = self.network(unit_scale(batch["noisy"]))
        # In half precision, the square of a difference of one level would nearly underflow.
        return {"loss": self._loss.total(output.float() - unit_scale(batch["clean"]))}


class DenoisingTask(Task):
    """An image denoiser.

    Metrics are means over whole images: `psnr` in dB and `ssim` of the output, `noisy_psnr` of
    the input. With several noise levels, `psnr` is the mean over all of them, and a table lists
    the levels. Images with a side below 11 pixels have no SSIM.

    Args:
        network: Noisy images in, clean ones out.
        train_data: Batches of `clean` and `noisy`.
        eval_data: Batches of `clean`, `noisy` and `level`.
        level_names: Names of the noise levels of `eval_data`, such as `sigma 25`.
        loss: See `DenoisingObjective`.
        clip: Whether the output is clipped to the range of an image before it is scored.
        rounding: How the output is rounded to multiples of 1/255 before it is scored: `none`
            (ViDeNN's `--phase test`), `nearest` (NLRN), or `truncated` (ViDeNN in training).
        denoise: How whole images are denoised in evaluation; None for the network itself.
        trained: See `DenoisingObjective`.
        decays: Which parameters decay.
    """

    name = "denoising"
    headline = Headline(name="psnr", unit="dB", higher_is_better=True)

    def __init__(
        self,
        network: nn.Module,
        *,
        train_data: SampleSet,
        eval_data: SampleSet | None,
        level_names: Sequence[str],
        loss: DenoisingLoss,
        clip: bool = True,
        rounding: Rounding = "none",
        denoise: Denoiser | None = None,
        trained: nn.Module | None = None,
        decays: Decays = lambda _name, _parameter: True,
    ) -> None:
        self.model = network
        self.train_data = train_data
        self.eval_data = eval_data
        self.level_names = tuple(level_names)
        self.objectives = [DenoisingObjective(network, loss=loss, trained=trained, decays=decays)]
        self._clip = clip
        self._rounding: Rounding = rounding
        self._denoise: Denoiser = network if denoise is None else denoise

    def evaluate_batch(self, batch: Batch) -> dict[str, Tensor]:
        """Return sums over the images: `psnr`, `noisy_psnr`, `ssim` and counts by noise level."""
        clean, noisy = unit_scale(batch["clean"]), unit_scale(batch["noisy"])
        denoised = self._scored(self._denoise(noisy).float())
        level = batch["level"]
        ones = torch.ones_like(level, dtype=torch.float32)
        sums = {
            "count": ones.sum(),
            "pictures": self._by_level(ones, level),
            "psnr": self._by_level(psnr(denoised, clean, peak=1.0), level),
            "noisy_psnr": self._by_level(
                psnr(middle_frame(noisy, clean.shape[1]), clean, peak=1.0), level
            ),
        }
        has_ssim = min(clean.shape[-2:]) >= _SSIM_SIDE
        similarity = ssim(denoised, clean, peak=1.0) if has_ssim else torch.zeros_like(ones)
        sums["ssim"] = self._by_level(similarity, level)
        sums["ssim_pictures"] = sums["pictures"] * has_ssim
        return sums

    def summarize(self, sums: Mapping[str, Tensor]) -> dict[str, float]:
        """Return `psnr`, `ssim` if there is one, `noisy_psnr`, and the PSNR of several levels.

        A perfectly denoised image has an infinite PSNR, and so does the mean.
        """
        counts = sums["pictures"]
        metrics = {"psnr": (sums["psnr"].sum() / counts.sum()).item()}
        if sums["ssim_pictures"].sum() > 0:
            metrics["ssim"] = (sums["ssim"].sum() / sums["ssim_pictures"].sum()).item()
        metrics["noisy_psnr"] = (sums["noisy_psnr"].sum() / counts.sum()).item()
        if len(self.level_names) > 1:
            for name, score, count in zip(self.level_names, sums["psnr"], counts, strict=True):
                if count > 0:
                    metrics[f"psnr_{name.replace(' ', '_')}"] = (score / count).item()
        return metrics

    def score_tables(self, sums: Mapping[str, Tensor]) -> Sequence[ScoreTable]:
        """Return the PSNR and SSIM of each noise level, if there are several."""
        if len(self.level_names) < 2:
            return ()
        rows: list[list[str]] = []
        for level, name in enumerate(self.level_names):
            count = sums["pictures"][level].item()
            if not count:
                continue
            ssim_count = sums["ssim_pictures"][level].item()
            rows.append(
                [
                    name,
                    f"{sums['noisy_psnr'][level].item() / count:.2f}",
                    f"{sums['psnr'][level].item() / count:.2f}",
                    f"{sums['ssim'][level].item() / ssim_count:.4f}" if ssim_count else "-",
                ]
            )
        header = ["noise", "noisy PSNR (dB)", "PSNR (dB)", "SSIM"]
        return [ScoreTable(title="by noise level", header=header, rows=rows)]

    def illustrate(self) -> Sequence[Illustration]:
        """Show the first images: clean, noisy and denoised side by side."""
        if self.eval_data is None:
            return ()
        parameter = next(self.model.parameters())
        illustrations: list[Illustration] = []
        for index in range(min(_SHOWN, len(self.eval_data))):
            batch = self.eval_data.fetch([SampleKey(0, index)]).batch
            if not batch:
                continue
            clean = unit_scale(batch["clean"].to(parameter.device))
            noisy = unit_scale(batch["noisy"].to(parameter.device))
            denoised = self._scored(self._denoise(noisy).float())
            noisy = middle_frame(noisy, clean.shape[1])
            labels = [
                "clean",
                f"noisy, {psnr(noisy, clean, peak=1.0).item():.2f} dB",
                f"denoised, {psnr(denoised, clean, peak=1.0).item():.2f} dB",
            ]
            strip = [picture_levels(image[0]).cpu() for image in (clean, noisy, denoised)]
            illustrations.append(
                Illustration(
                    name=f"denoised-{index + 1}",
                    caption=f"{self.level_names[0]}: {'; '.join(labels)}",
                    image=side_by_side(strip, labels),
                )
            )
        return illustrations

    def _scored(self, output: Tensor) -> Tensor:
        if self._clip:
            output = output.clamp(0, 1)
        if self._rounding == "none":
            return output
        levels = output * 255
        return (levels.round() if self._rounding == "nearest" else levels.trunc()) / 255

    def _by_level(self, values: Tensor, level: Tensor) -> Tensor:
        sums = values.new_zeros(len(self.level_names))
        return sums.index_add(0, level, values)


def unit_scale(pictures: Tensor) -> Tensor:
    """Convert images to float32 from 0 to 1.

    Args:
        pictures: uint8 from 0 to 255, or floating-point numbers from 0 to 1.
    """
    return pictures.float() / 255 if pictures.dtype == torch.uint8 else pictures.float()


def picture_levels(pictures: Tensor) -> Tensor:
    """Convert images from 0 to 1 to uint8 from 0 to 255, clipped and rounded."""
    return (pictures.float().clamp(0, 1) * 255).round().to(torch.uint8)


def central_window(values: Tensor, side: int) -> Tensor:
    """Return the middle `side` x `side` pixels of [N, channels, height, width]; 0 for all pixels.

    As in NLRN, the window starts at height // 2 - side // 2, even if it is not centred exactly.
    """
    if side == 0:
        return values
    top, left = values.shape[-2] // 2 - side // 2, values.shape[-1] // 2 - side // 2
    return values[..., top : top + side, left : left + side]


def middle_frame(noisy: Tensor, channels: int) -> Tensor:
    """Return the middle frame of frames stacked along the channels."""
    first = (noisy.shape[1] // channels // 2) * channels
    return noisy[:, first : first + channels]
