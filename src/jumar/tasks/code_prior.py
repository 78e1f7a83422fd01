"""A prior over codes, the second stage of a VQ-VAE: it learns which codes occur together."""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from jumar.data.pixels.picture_grid import picture_grid
from jumar.data.pixels.preprocessing import ImagePreprocessing
from jumar.data.samples import Batch, SampleSet
from jumar.models.code_prior import CodePrior
from jumar.tasks.reconstruction import network_pictures, visible
from jumar.tasks.task import Headline, Illustration, Objective, Task

_SHOWN = 32
_COLUMNS = 8
_SEED = 0


class PriorObjective(Objective):
    """Cross-entropy of an image's codes, in nats.

    Args:
        model: Frozen VQ-VAE and prior.
        preprocessing: Converts the bytes to images from 0 to 1 on the device.
    """

    name = "prior"

    def __init__(self, model: CodePrior, preprocessing: ImagePreprocessing) -> None:
        super().__init__()
        self.trained = model.prior
        self._model = model
        self._preprocessing = preprocessing

    def sums(self, batch: Batch) -> dict[str, Tensor]:
        """Return `loss`, summed over the positions of each image and over the images."""
        return {"loss": self.nll(batch).sum()}

    def nll(self, batch: Batch) -> Tensor:
        """Return the negative log-likelihood of each image's codes in nats, float32 [N]."""
        images = network_pictures(
            self._model.vqvae, self._preprocessing, batch, training=self.training
        )
        codes = self._model.codes(images)
        labels = batch["label"] if self._model.prior.classes else None
        logits = self._model(codes, labels).float()
        return functional.cross_entropy(logits, codes, reduction="none").sum(dim=(1, 2))


class CodePriorTask(Task):
    """A prior over codes, scored by how well it predicts the codes of unseen images.

    Args:
        model: Frozen VQ-VAE and prior.
        preprocessing: The device half of the image preprocessing.
        train_data: Images to learn from.
        eval_data: Images to score on.
        image_size: Side of the images in px.
    """

    name = "code prior"
    headline = Headline(name="nll", unit="nats per image", higher_is_better=False)

    def __init__(
        self,
        model: CodePrior,
        preprocessing: ImagePreprocessing,
        *,
        train_data: SampleSet,
        eval_data: SampleSet | None,
        image_size: int,
    ) -> None:
        self.model = model
        self.averaged = model.prior
        self.train_data = train_data
        self.eval_data = eval_data
        self._model = model
        self._image_size = image_size
        self._objective = PriorObjective(model, preprocessing)
        self.objectives = [self._objective]

    def evaluate_batch(self, batch: Batch) -> dict[str, Tensor]:
        """Return the negative log-likelihood in nats, summed over the images."""
        nll = self._objective.nll(batch)
        return {"count": torch.ones_like(nll).sum(), "nll": nll.sum()}

    def summarize(self, sums: Mapping[str, Tensor]) -> dict[str, float]:
        """Return `nll` in nats per image, and as `bits_per_code`, where chance level is log2 K."""
        nll = sums["nll"].item() / sums["count"].item()
        positions = (self._image_size // self._model.vqvae.shrinking) ** 2
        return {"nll": nll, "bits_per_code": nll / positions / math.log(2)}

    def illustrate(self) -> Sequence[Illustration]:
        """Sample images from the prior, cycling through the classes if there are any."""
        classes = self._model.prior.classes
        labels = None
        if classes:
            device = self._model.vqvae.codebook.device
            labels = torch.arange(_SHOWN, device=device) % classes
        images = self._model.draw(
            rows=_SHOWN, image_size=self._image_size, seed=_SEED, labels=labels
        )
        grid = picture_grid(visible(images), columns=_COLUMNS)
        caption = f"{_SHOWN} images drawn from the prior, seed {_SEED}"
        return [Illustration(name="samples", caption=caption, image=grid)]
