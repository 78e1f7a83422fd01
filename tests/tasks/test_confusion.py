"""Confusion matrices, and what is said of a model that knows one label."""

import torch

from jumar.tasks.confusion import accuracy, confusion_of, confusion_table, only_label

TRUE = torch.tensor([0, 0, 1, 2, 2, 2])
PREDICTED = torch.tensor([0, 1, 1, 2, 0, 2])


def test_matrix_counts_true_labels_in_rows_and_predicted_ones_in_columns() -> None:
    confusion = confusion_of(TRUE, PREDICTED, 3)
    assert confusion.tolist() == [[1, 1, 0], [0, 1, 0], [1, 0, 2]]
    assert accuracy(confusion) == 100 * 4 / 6
    assert accuracy(torch.zeros(2, 2)) == 0.0


def test_table_has_labels_with_their_recall() -> None:
    table = confusion_table(confusion_of(TRUE, PREDICTED, 4), ["a", "b", "c", "d"], "clips")
    assert table.title == "confusion matrix (clips)"
    assert table.header == ["true \\ predicted", "a", "b", "c", "d", "right %"]
    assert table.rows == [
        ["a", "1", "1", "0", "0", "50.0"],
        ["b", "0", "1", "0", "0", "100.0"],
        ["c", "1", "0", "2", "0", "66.7"],
        ["d", "0", "0", "0", "0", "-"],
    ]


def test_model_predicting_a_single_label_is_reported() -> None:
    confusion = confusion_of(TRUE, torch.full_like(TRUE, 2), 3)
    assert only_label(confusion, ["O", "B", "I"]).startswith(
        "evaluation: the model predicts 'I' in all 6 cases, although 3 labels occur: it has learned"
    )
    assert "predicts '2' in all 6" in only_label(confusion, [])


def test_no_finding_for_two_predicted_labels_or_samples_of_one_label() -> None:
    assert only_label(confusion_of(TRUE, PREDICTED, 3), []) == ""
    assert only_label(confusion_of(torch.tensor([1, 1]), torch.tensor([2, 2]), 3), []) == ""
    assert only_label(torch.zeros(3, 3), []) == ""
