from collections.abc import Sequence

from jumar.experiments.folds import with_means_over_folds
from jumar.experiments.table import Compared, Row, Table


def row(values: Sequence[str], loss: float | None, score: float | None) -> Row:
    return Row(
        values=tuple(values),
        runs=("run",),
        num_finished=1,
        loss=Compared(value=loss),
        headline=Compared(value=score),
        batch_time_ms=None,
        speed_up=None,
        memory_peak_bytes=None,
        computed="float32",
        substituted=False,
        notes=(),
    )


def explained(fields: Sequence[str], rows: Sequence[Row]) -> tuple[str, ...]:
    table = Table(
        recipe="small",
        fields=tuple(fields),
        loss_name="evaluation loss",
        headline_name="top1",
        headline_unit="%",
        rows=tuple(rows),
        baseline=0,
        explanations=("what equal means",),
    )
    return with_means_over_folds(table).explanations


def test_mean_and_spread_over_folds_come_first() -> None:
    rows = [row([str(fold)], 0.5, score) for fold, score in enumerate((90.0, 92.0, 94.0))]
    first, _, last = explained(["data.fold"], rows)
    assert first == (
        "Over the folds: top1 92 % ± 2 (standard deviation over 3 folds); evaluation loss 0.5 ± 0 "
        "(standard deviation over 3 folds)."
    )
    assert last == "what equal means"


def test_each_setting_has_its_mean_over_finished_folds() -> None:
    rows = [
        row(["0.1", "0"], 1.0, 80.0),
        row(["0.1", "1"], 3.0, 90.0),
        row(["0.2", "0"], None, 60.0),
        row(["0.2", "1"], None, None),
    ]
    message = explained(["optimizer.learning_rate", "data.fold"], rows)
    assert message[0].startswith("Over the folds of optimizer.learning_rate=0.1: top1 85 % ± 7.1")
    assert message[1] == "Over the folds of optimizer.learning_rate=0.2: top1 60 %."


def test_other_sweeps_are_unchanged() -> None:
    assert explained(["seed"], [row(["1"], 0.5, 90.0)]) == ("what equal means",)
