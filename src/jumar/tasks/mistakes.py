"""The most confident mistakes of a classifier, as images and as a table."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from jumar.data.pixels.picture_grid import picture_grid, side_by_side
from jumar.tasks.task import Illustration, ScoreTable

MAX_MISTAKES = 24
"""Maximum number of mistakes kept, so that the cost of an evaluation does not depend on them."""
_SIDE = 96
"""Height of a thumbnail in pixels."""
_COLUMNS = 8


class SurestMistakes:
    """The wrong predictions with the highest probabilities, collected batch by batch.

    All data stays on the device until it is drawn, so that the host does not wait for each batch.
    """

    def __init__(self) -> None:
        self._collected: dict[str, Tensor] = {}
        self._drawn: ScoreTable | None = None

    def add(self, images: Tensor, logits: Tensor, labels: Tensor, predicted: Tensor) -> None:
        """Collect the mistakes of a batch.

        Args:
            images: [N, 3, height, width], values from 0 to 255.
            logits: [N, classes].
            labels: int64 [N], the true classes.
            predicted: int64 [N], the predicted classes.
        """
        probabilities = logits.float().softmax(dim=1).gather(1, predicted.unsqueeze(1))[:, 0]
        confidence = torch.where(predicted == labels, -1.0, probabilities.nan_to_num(nan=0.0))
        first = confidence.topk(min(MAX_MISTAKES, len(confidence))).indices
        batch_mistakes = {
            "sure": confidence[first],
            "label": labels[first],
            "predicted": predicted[first],
            "picture": _thumbnails(images[first]),
        }
        if not self._collected:
            self._collected = {name: value[:0] for name, value in batch_mistakes.items()}
        if self._collected["picture"].shape[1:] != batch_mistakes["picture"].shape[1:]:
            return  # A grid cannot show images of different sizes.
        combined = {
            name: torch.cat([self._collected[name], value])
            for name, value in batch_mistakes.items()
        }
        best = combined["sure"].topk(min(MAX_MISTAKES, len(combined["sure"]))).indices
        self._collected = {name: value[best] for name, value in combined.items()}

    def illustrations(self, names: Sequence[str]) -> list[Illustration]:
        """Draw one sheet of numbered images; none if there are no mistakes.

        Args:
            names: Class names; numbers are shown if there are none.
        """
        mistakes = {name: value.cpu() for name, value in self._collected.items()}
        is_wrong = mistakes["sure"] >= 0 if mistakes else torch.zeros(0, dtype=torch.bool)
        if not is_wrong.any():
            return []
        mistakes = {name: value[is_wrong] for name, value in mistakes.items()}
        self._drawn = _table(mistakes, names)
        tiles = [
            side_by_side([picture], [str(number)]).permute(2, 0, 1)
            for number, picture in enumerate(mistakes["picture"], start=1)
        ]
        return [
            Illustration(
                name="mistakes",
                caption=f"the {len(tiles)} mistakes with the highest probability, numbered as in "
                "the table of mistakes",
                image=picture_grid(torch.stack(tiles), columns=_COLUMNS),
            )
        ]

    def tables(self) -> list[ScoreTable]:
        """Return the table of the drawn mistakes, and forget all mistakes."""
        tables = [] if self._drawn is None else [self._drawn]
        self._collected, self._drawn = {}, None
        return tables


def weakest_classes(
    right: Tensor, count: Tensor, names: Sequence[str], max_rows: int
) -> ScoreTable:
    """Return a table of the classes with the lowest accuracy.

    Args:
        right: [classes], the number of correctly classified samples of each class.
        count: [classes], the number of samples of each class.
        names: Class names; numbers are shown if there are none.
        max_rows: Maximum number of rows.
    """
    accuracies = torch.where(count > 0, right / count.clamp(min=1), 2.0)
    order = accuracies.argsort(stable=True)[:max_rows].tolist()
    rows = [
        [
            _name(names, label),
            f"{count[label].item():.0f}",
            f"{100 * accuracies[label].item():.1f}",
        ]
        for label in order
        if count[label] > 0
    ]
    title = f"the {len(rows)} classes with the lowest accuracy"
    return ScoreTable(title=title, header=["class", "samples", "right %"], rows=rows)


def _table(mistakes: Mapping[str, Tensor], names: Sequence[str]) -> ScoreTable:
    rows = [
        [
            str(number),
            _name(names, int(label)),
            _name(names, int(predicted)),
            f"{100 * float(confidence):.1f}",
        ]
        for number, (label, predicted, confidence) in enumerate(
            zip(mistakes["label"], mistakes["predicted"], mistakes["sure"], strict=True), start=1
        )
    ]
    header = ["image", "true", "predicted", "probability %"]
    return ScoreTable(title="mistakes with the highest probability", header=header, rows=rows)


def _name(names: Sequence[str], number: int) -> str:
    return names[number] if number < len(names) else str(number)


def _thumbnails(images: Tensor) -> Tensor:
    """Scale images of equal size to uint8 [N, 3, 96, width]."""
    height, width = images.shape[-2:]
    size = (_SIDE, max(1, round(_SIDE * width / height)))
    mode = "area" if height > _SIDE else "nearest"
    small = functional.interpolate(images.float(), size=size, mode=mode)
    return small.round().clamp(0, 255).to(torch.uint8)
