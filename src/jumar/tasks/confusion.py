"""Confusion matrices: the number of predictions of each label for each true label."""

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional

from jumar.tasks.task import ScoreTable


def confusion_of(labels: Tensor, predicted: Tensor, count: int) -> Tensor:
    """Return the matrix int64 [true, predicted] for labels 0 to `count` - 1, both int64 [N]."""
    cells = labels * count + predicted
    # Sum one-hot rows, because a histogram of integers is not deterministic on every device.
    return functional.one_hot(cells, count * count).sum(dim=0).view(count, count)


def accuracy(confusion: Tensor) -> float:
    """Return the percentage of correct labels."""
    return 100 * confusion.diagonal().sum().item() / max(confusion.sum().item(), 1)


def confusion_table(confusion: Tensor, labels: Sequence[str], what: str) -> ScoreTable:
    """Return a table with a row for each true label and a column for each predicted one.

    Args:
        confusion: [true, predicted].
        labels: Names of the labels.
        what: What is counted, in the plural.
    """
    rows: list[list[str]] = []
    for label, row in zip(labels, confusion, strict=True):
        total, right = row.sum().item(), row[len(rows)].item()
        percentage = f"{100 * right / total:.1f}" if total else "-"
        rows.append([label, *(f"{cell.item():.0f}" for cell in row), percentage])
    header = ["true \\ predicted", *labels, "right %"]
    return ScoreTable(title=f"confusion matrix ({what})", header=header, rows=rows)


def only_label(confusion: Tensor, labels: Sequence[str]) -> str:
    """Return a warning if the model predicts the same label for everything.

    Args:
        confusion: [true, predicted].
        labels: Names of the labels; numbers are used if there are none.

    Returns:
        The warning; empty if several labels are predicted, or only one occurs.
    """
    predicted_labels, true_labels = (
        confusion.sum(dim=axis).nonzero().flatten().tolist() for axis in (0, 1)
    )
    if len(predicted_labels) != 1 or len(true_labels) < 2:
        return ""
    label = labels[predicted_labels[0]] if labels else str(predicted_labels[0])
    count = int(confusion.sum())
    return (
        f"evaluation: the model predicts '{label}' in all {count} cases, although "
        f"{len(true_labels)} labels occur: it has learned nothing yet, or training has "
        "collapsed, most often because the learning rate is too high"
    )
