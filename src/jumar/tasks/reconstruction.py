"""Image reconstruction from codes of a codebook: the first stage of a VQ-VAE."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from jumar.data.pixels.image_quality import psnr
from jumar.data.pixels.picture_grid import picture_grid
from jumar.data.pixels.preprocessing import ImagePreprocessing
from jumar.data.samples import Batch, SampleKey, SampleSet
from jumar.models.vqvae import VQVAE, unused_pull, vq_losses
from jumar.tasks.denoising import picture_levels
from jumar.tasks.task import Headline, Illustration, Objective, Task

_HIGHEST_PSNR = 100.0
"""Replaces the infinite PSNR of an exact reconstruction, which would make the mean infinite."""
_SHOWN = 16
_COLUMNS = 8
_SHOWN_SIDE = 64
"""Smaller images are enlarged to about this many pixels per side."""


class ReconstructionObjective(Objective):
    """Reconstruction, codebook and commitment loss.

    Args:
        network: The VQ-VAE.
        preprocessing: Converts the bytes to images from 0 to 1 on the device.
        beta: Weight of the commitment loss.
        pull: Weight of the pull on unused codes, see `unused_pull`; 0 disables it.
    """

    name = "reconstruction"

    def __init__(
        self, network: VQVAE, preprocessing: ImagePreprocessing, *, beta: float, pull: float
    ) -> None:
        super().__init__()
        self.trained = network
        self._network = network
        self._preprocessing = preprocessing
        self._beta = beta
        self._pull = pull

    def sums(self, batch: Batch) -> dict[str, Tensor]:
        """Return `loss` and its unweighted terms: `recon`, `vq`, `commit` and, if used, `pull`."""
        images = self.pictures(batch)
        result = self._network(images)
        terms = dict(vq_losses(images, result))
        loss = terms["recon"] + terms["vq"] + self._beta * terms["commit"]
        if self._pull:
            terms["pull"] = unused_pull(result.features, self._network.codebook)
            loss = loss + self._pull * terms["pull"]
        # The terms are means over images of equal size; `sums` must return sums over the images.
        return {name: len(images) * mean for name, mean in {"loss": loss, **terms}.items()}

    def pictures(self, batch: Batch) -> Tensor:
        """Return the network's input: images from 0 to 1."""
        return network_pictures(self._network, self._preprocessing, batch, training=self.training)


class ReconstructionTask(Task):
    """A VQ-VAE, scored by how well it reconstructs unseen images.

    Args:
        network: The VQ-VAE.
        preprocessing: The device half of the image preprocessing.
        train_data: Images to learn from.
        eval_data: Images to score on.
        beta: Weight of the commitment loss.
        pull: Weight of the pull on unused codes; 0 disables it.
    """

    name = "reconstruction"
    headline = Headline(name="mse", unit="", higher_is_better=False)

    def __init__(
        self,
        network: VQVAE,
        preprocessing: ImagePreprocessing,
        *,
        train_data: SampleSet,
        eval_data: SampleSet | None,
        beta: float,
        pull: float = 0.0,
    ) -> None:
        self.model = network
        self.train_data = train_data
        self.eval_data = eval_data
        self._network = network
        self._objective = ReconstructionObjective(network, preprocessing, beta=beta, pull=pull)
        self.objectives = [self._objective]

    def evaluate_batch(self, batch: Batch) -> dict[str, Tensor]:
        """Return squared errors and PSNR, summed over the images, and the count of each code."""
        images = self._objective.pictures(batch)
        result = self._network(images)
        reconstruction = result.reconstruction.float()
        errors = (reconstruction - images).square().mean(dim=(1, 2, 3))
        return {
            "count": torch.ones_like(errors).sum(),
            "mse": errors.sum(),
            "psnr": psnr(reconstruction, images, peak=1.0).clamp(max=_HIGHEST_PSNR).sum(),
            "codes": torch.bincount(result.codes.flatten(), minlength=len(self._network.codebook)),
        }

    def summarize(self, sums: Mapping[str, Tensor]) -> dict[str, float]:
        """Return the `mse` of pixels from 0 to 1, the mean `psnr` in dB, the codebook's
        `perplexity` (the number of equally frequent codes with the same entropy) and `codes_used`
        in percent.
        """
        count, codes = sums["count"].item(), sums["codes"]
        frequencies = codes / codes.sum()
        entropy = -torch.xlogy(frequencies, frequencies).sum()
        return {
            "mse": sums["mse"].item() / count,
            "psnr": sums["psnr"].item() / count,
            "perplexity": entropy.exp().item(),
            "codes_used": 100 * (codes > 0).double().mean().item(),
        }

    def illustrate(self) -> Sequence[Illustration]:
        """Show held-out images above their reconstructions."""
        if self.eval_data is None or len(self.eval_data) == 0:
            return ()
        device = self._network.codebook.device
        batch = fixed_pictures(self.eval_data, _SHOWN, device)
        images = self._objective.pictures(batch)
        columns = min(_COLUMNS, len(images))
        images = images[: len(images) // columns * columns]
        reconstruction = self._network(images).reconstruction
        # Rows of originals alternate with rows of their reconstructions.
        pairs = torch.stack(
            [part.unflatten(0, (-1, columns)) for part in (images, reconstruction)], dim=1
        )
        grid = picture_grid(visible(pairs.flatten(0, 2)), columns=columns)
        caption = "held-out images, each above its reconstruction"
        return [Illustration(name="reconstructions", caption=caption, image=grid)]


def network_pictures(
    network: VQVAE, preprocessing: ImagePreprocessing, batch: Batch, *, training: bool
) -> Tensor:
    """Return a batch's images from 0 to 1, with the number of channels that the network expects."""
    images = preprocessing.on_device(batch, training)
    return images.mean(dim=1, keepdim=True) if network.channels == 1 else images


def fixed_pictures(data: SampleSet, count: int, device: torch.device) -> Batch:
    """Return up to `count` samples, always the same, spread evenly over a set, on the device."""
    # The first samples of a folder would all belong to its first class.
    count = min(count, len(data))
    keys = [SampleKey(0, number * len(data) // count) for number in range(count)]
    return {name: value.to(device) for name, value in data.fetch(keys).batch.items()}


def visible(pictures: Tensor) -> Tensor:
    """Convert images from 0 to 1 to uint8 [N, channels, height', width'], enlarging small ones."""
    levels = picture_levels(pictures)
    factor = max(1, round(_SHOWN_SIDE / levels.shape[-1]))
    return levels.repeat_interleave(factor, dim=-2).repeat_interleave(factor, dim=-1).cpu()
