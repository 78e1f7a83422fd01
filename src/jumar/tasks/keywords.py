"""Keyword spotting: which word an audio clip contains, or silence, or an unknown word."""

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
_ENLARGED = 2
_COLOURS = ((0.05, 0.03, 0.20), (0.45, 0.10, 0.45), (0.90, 0.35, 0.25), (1.00, 0.95, 0.60))
"""From quiet to loud, evenly spaced; lightness always increases, so it also works in grey."""


class KeywordObjective(LabelObjective):
    """Softmax cross-entropy of the network's logits.

    Args:
        network: Features `[N, frames, coefficients]` in, logits `[N, labels]` out.
        front_end: Audio `[N, samples]` in, features out; runs on the device.
        label_smoothing: Share of the probability spread over all labels.
        class_weights: Float32 [labels]; None if all weigh the same.
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
        """The loss of a batch of `audio` and `label`."""
        return {"loss": self.cross_entropy(self.logits(batch["audio"]), batch["label"])}

    def logits(self, audio: torch.Tensor) -> torch.Tensor:
        """Logits `[N, labels]` of clips `[N, samples]`."""
        return self.trained(self.front_end(audio))


class KeywordTask(Task):
    """A keyword spotter.

    Args:
        network: Features in, logits out.
        front_end: Audio in, features out.
        picture: Audio `[N, samples]` in, a spectrogram `[N, frames, bands]` of any scale out.
        labels: What the logits mean.
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
        """The loss and the confusion matrix [true, predicted], summed over the clips."""
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
        """`accuracy` in percent and the mean `loss`, smoothed and weighted as in training."""
        loss = sums["loss"].item() / sums["weight"].item()
        return {"accuracy": accuracy(sums["confusion"]), "loss": loss}

    def score_tables(self, sums: Mapping[str, torch.Tensor]) -> Sequence[ScoreTable]:
        """The confusion matrix: a row for each true label, a column for each predicted one."""
        return [confusion_table(sums["confusion"], self.labels, "clips")]

    def illustrate(self) -> Sequence[Illustration]:
        """Spectrograms of some clips, with their true and their predicted words."""
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
                caption="Clips, time to the right and pitch upwards, each with its word; if the "
                "prediction is wrong: the true word / the predicted one.",
                image=_stacked(rows),
            )
        ]


def coloured(features: torch.Tensor) -> list[torch.Tensor]:
    """Render [N, frames, bands] as uint8 [3, height, width]: time rightwards, bands upwards.

    Each image uses all colours from its lowest to its highest value; a constant one is dark.
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
    large = pixels.repeat_interleave(_ENLARGED, 2).repeat_interleave(_ENLARGED, 3)
    return list(large)


def _stacked(rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """Images [height, width, 3] stacked vertically on white."""
    width = max(row.shape[1] for row in rows)
    padded = [functional.pad(row, (0, 0, 0, width - row.shape[1]), value=255) for row in rows]
    return torch.cat(padded)
