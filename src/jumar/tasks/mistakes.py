"""The most confident mistakes of a classifier, as images and as a table."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from jumar.data.pixels.picture_grid import picture_grid, side_by_side
from jumar.tasks.task import Illustration, ScoreTable

MOST = 24
"""Number of mistakes kept; the cost of an evaluation does not depend on how many there are."""
_SIDE = 96
"""Height of a thumbnail in pixels."""
_COLUMNS = 8


class SurestMistakes:
    """The wrong predictions with the highest probabilities, collected batch by batch.

    Everything stays on the device until it is drawn, so that no batch waits for another.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Tensor] = {}
        self._drawn: ScoreTable | None = None

    def add(self, images: Tensor, logits: Tensor, labels: Tensor, predicted: Tensor) -> None:
        """Collect the mistakes of a batch.

        Args:
            images: [N, 3, height, width] of 0 to 255.
            logits: [N, classes].
            labels: int64 [N], the true classes.
            predicted: int64 [N]; it differs from `labels` where the network is wrong.
        """
        probabilities = logits.float().softmax(dim=1).gather(1, predicted.unsqueeze(1))[:, 0]
        confidence = torch.where(predicted == labels, -1.0, probabilities.nan_to_num(nan=0.0))
        first = confidence.topk(min(MOST, len(confidence))).indices
        batch_mistakes = {
            "sure": confidence[first],
            "label": labels[first],
            "predicted": predicted[first],
            "picture": _thumbnails(images[first]),
        }
        if self._kept and self._kept["picture"].shape[1:] != batch_mistakes["picture"].shape[1:]:
            return  # images of different sizes, which no grid can show
        combined = {
            name: torch.cat([self._kept[name], value]) if self._kept else value
            for name, value in batch_mistakes.items()
        }
        best = combined["sure"].topk(min(MOST, len(combined["sure"]))).indices
        self._kept = {name: value[best] for name, value in combined.items()}

    def illustrations(self, names: Sequence[str]) -> list[Illustration]:
        """One sheet of numbered images, or none without mistakes.

        Args:
            names: Class names; numbers are shown if there are none.
        """
        mistakes = {name: value.cpu() for name, value in self._kept.items()}
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
        """The table of what was drawn; afterwards nothing is kept."""
        tables = [] if self._drawn is None else [self._drawn]
        self._kept, self._drawn = {}, None
        return tables


def weakest_classes(right: Tensor, count: Tensor, names: Sequence[str], most: int) -> ScoreTable:
    """The classes with the lowest accuracy.

    Args:
        right: [classes], the number of correct samples of each.
        count: [classes], the number of samples of each.
        names: Class names; numbers are shown if there are none.
        most: Maximum number of rows.
    """
    accuracies = torch.where(count > 0, right / count.clamp(min=1), 2.0)
    order = accuracies.argsort(stable=True)[:most].tolist()
    rows = [
        [
            _name(names, label),
            f"{count[label].item():.0f}",
            f"{100 * accuracies[label].item():.1f}",
        ]
        for label in order
        if count[label] > 0
    ]
    title = f"the {len(rows)} classes recognised least"
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
    """uint8 [N, 3, 96, width] of images of one size."""
    height, width = images.shape[-2:]
    size = (_SIDE, max(1, round(_SIDE * width / height)))
    mode = "area" if height > _SIDE else "nearest"
    small = functional.interpolate(images.float(), size=size, mode=mode)
    return small.round().clamp(0, 255).to(torch.uint8)
