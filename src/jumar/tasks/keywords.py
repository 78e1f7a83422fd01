"""Keyword spotting: classify audio clips as one of some words, an unknown word, or silence."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import nn
from torch.nn import functional

from jumar.data.pixels.picture_grid import side_by_side
from jumar.data.samples import Batch, SampleKey, SampleSet
from jumar.tasks.confusion import accuracy, confusion_of, confusion_table
from jumar.tasks.label_objective import LabelObjective
from jumar.tasks.task import Headline, Illustration, ScoreTable, Task

_SHOWN = 16
_PER_ROW = 8
_ENLARGEMENT = 2
_COLOURS = ((0.05, 0.03, 0.20), (0.45, 0.10, 0.45), (0.90, 0.35, 0.25), (1.00, 0.95, 0.60))
"""From quiet to loud, evenly spaced; lightness always increases, so it also works in grey."""


class KeywordObjective(LabelObjective):
    """Softmax cross-entropy of the network's logits.

    Args:
        network: Features `[N, frames, coefficients]` in, logits `[N, labels]` out.
        front_end: Audio `[N, samples]` in, features out; runs on the device.
        label_smoothing: Share of the probability spread over all labels.
        class_weights: Float32 [labels]; None for equal weights.
    """

    name = "keywords"

    def __init__(
        self,
        network: nn.Module,
        front_end: nn.Module,
        *,
        label_smoothing: float,
        class_weights: torch.Tensor | None = None,
    ) -> None:
        super().__init__(network, label_smoothing=label_smoothing, class_weights=class_weights)
        self.front_end = front_end

    def sums(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Return the loss of a batch of `audio` and `label`."""
        return {"loss": self.cross_entropy(self.logits(batch["audio"]), batch["label"])}

    def logits(self, audio: torch.Tensor) -> torch.Tensor:
        """Return the logits `[N, labels]` of clips `[N, samples]`."""
        return self.trained(self.front_end(audio))


class KeywordTask(Task):
    """A keyword spotter.

    Args:
        network: Features in, logits out.
        front_end: Audio in, features out.
        picture: Audio `[N, samples]` in, spectrograms `[N, frames, bands]` of any scale out.
        labels: The labels in the order of the logits.
        train_data: Clips to learn from, with `audio` and `label`.
        eval_data: Clips to score on.
        label_smoothing: See `KeywordObjective`.
        class_weights: See `KeywordObjective`.
    """

    name = "keywords"
    headline = Headline(name="accuracy", unit="%", higher_is_better=True)

    def __init__(
        self,
        network: nn.Module,
        front_end: nn.Module,
        *,
        picture: Callable[[torch.Tensor], torch.Tensor],
        labels: Sequence[str],
        train_data: SampleSet,
        eval_data: SampleSet | None,
        label_smoothing: float = 0.0,
        class_weights: torch.Tensor | None = None,
    ) -> None:
        self.model = network
        self.labels = self.outputs = tuple(labels)
        self.train_data = train_data
        self.eval_data = eval_data
        self._picture = picture
        self._objective = KeywordObjective(
            network, front_end, label_smoothing=label_smoothing, class_weights=class_weights
        )
        self.objectives = [self._objective]

    def evaluate_batch(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Return the loss and the confusion matrix [true, predicted], summed over the clips."""
        labels = batch["label"]
        logits = self._objective.logits(batch["audio"])
        confusion = confusion_of(labels, logits.argmax(dim=1), len(self.labels))
        count = torch.ones_like(labels).sum()
        return {
            "count": count,
            "confusion": confusion,
            "loss": self._objective.cross_entropy(logits, labels),
            "weight": self._objective.weights(batch).get("loss", count),
        }

    def summarize(self, sums: Mapping[str, torch.Tensor]) -> dict[str, float]:
        """Return `accuracy` in percent and the `loss`, smoothed and weighted as in training."""
        loss = sums["loss"].item() / sums["weight"].item()
        return {"accuracy": accuracy(sums["confusion"]), "loss": loss}

    def score_tables(self, sums: Mapping[str, torch.Tensor]) -> Sequence[ScoreTable]:
        """Return the confusion matrix: a row per true label, a column per predicted label."""
        return [confusion_table(sums["confusion"], self.labels, "clips")]

    def illustrate(self) -> Sequence[Illustration]:
        """Show spectrograms of some clips, with their true and predicted words."""
        if self.eval_data is None or not len(self.eval_data):
            return ()
        step = max(1, len(self.eval_data) // _SHOWN)
        keys = [SampleKey(0, index) for index in range(0, len(self.eval_data), step)][:_SHOWN]
        batch = self.eval_data.fetch(keys).batch
        if not batch:
            return ()
        audio = batch["audio"].to(next(self.model.parameters()).device)
        predicted = self._objective.logits(audio).argmax(dim=1).tolist()
        pictures = coloured(self._picture(audio))
        words = [
            self.labels[true] if true == guess else f"{self.labels[true]} / {self.labels[guess]}"
            for true, guess in zip(batch["label"].tolist(), predicted, strict=True)
        ]
        rows = [
            side_by_side(pictures[start : start + _PER_ROW], words[start : start + _PER_ROW])
            for start in range(0, len(words), _PER_ROW)
        ]
        return [
            Illustration(
                name="clips",
                caption="Clips with their words, time from left to right, pitch from bottom to "
                "top; if the prediction is wrong: true word / predicted word.",
                image=_stacked(rows),
            )
        ]


def coloured(features: torch.Tensor) -> list[torch.Tensor]:
    """Render [N, frames, bands] as uint8 [3, height, width]: time rightwards, bands upwards.

    The colours of each image range from its lowest to its highest value; a constant image is dark.
    """
    values = features.float().cpu().transpose(1, 2).flip(1)
    low, high = values.amin((1, 2), keepdim=True), values.amax((1, 2), keepdim=True)
    values = (values - low) / (high - low).clamp_min(1e-6)
    colours = torch.tensor(_COLOURS)
    position = values * (len(_COLOURS) - 1)
    lower = position.long().clamp(max=len(_COLOURS) - 2)
    fraction = (position - lower).unsqueeze(-1)
    mixed = torch.lerp(colours[lower], colours[lower + 1], fraction)
    pixels = (mixed * 255).round().to(torch.uint8).permute(0, 3, 1, 2)
    return list(pixels.repeat_interleave(_ENLARGEMENT, 2).repeat_interleave(_ENLARGEMENT, 3))


def _stacked(rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """Stack images [height, width, 3] vertically on a white background."""
    width = max(row.shape[1] for row in rows)
    padded = [functional.pad(row, (0, 0, 0, width - row.shape[1]), value=255) for row in rows]
    return torch.cat(padded)
