"""The settings that every recipe's data has."""

from jumar.data.loading.loader_settings import LoaderSettings
from jumar.settings import describe


def test_settings_have_their_limits() -> None:
    rows = [(row.path, row.value, row.unit, row.allowed) for row in describe(LoaderSettings())]
    assert rows == [
        ("batch_size", 64, "samples per rank", "1 or more"),
        ("eval_batch_size", 0, "samples", "0 or more"),
        ("workers", -1, "", "-1 or more"),
        ("prefetch", 2, "batches", "1 or more"),
        ("skip_corrupt", 0, "samples", "0 or more"),
    ]


def test_resumed_run_may_change_all_but_the_training_batch_size() -> None:
    fields = LoaderSettings.__dataclass_fields__
    changeable = {name for name, field in fields.items() if field.metadata["changeable"]}
    assert changeable == {"eval_batch_size", "workers", "prefetch", "skip_corrupt"}
