"""The loader's settings in every recipe's `data` section."""

from dataclasses import dataclass

from jumar.settings import setting


def batch_size_setting(default: int) -> int:
    """The training batch size, for data with its own default."""
    return setting(default, "Training batch size per rank.", unit="samples per rank", minimum=1)


def eval_path_setting(*, unit: str = "") -> str:
    """The path of evaluation data, for data that may have parts."""
    return setting(
        "",
        "The same for evaluation; empty for the evaluation part of path, none to skip evaluation.",
        unit=unit,
        changeable=True,
    )


@dataclass(frozen=True, kw_only=True)
class LoaderSettings:
    """Settings of batches and of the processes that prepare them, for all kinds of data."""

    batch_size: int = batch_size_setting(64)
    eval_batch_size: int = setting(
        0,
        "Evaluation batch size per rank; 0: as in training.",
        unit="samples",
        minimum=0,
        changeable=True,
    )
    workers: int = setting(
        -1,
        "Processes that prepare batches; 0 for none, -1 to choose by the number of cores.",
        minimum=-1,
        changeable=True,
    )
    prefetch: int = setting(
        2,
        "Batches that each of these processes prepares ahead of the training.",
        unit="batches",
        minimum=1,
        changeable=True,
    )
    skip_corrupt: int = setting(
        0,
        "Unreadable samples tolerated before the run stops.",
        unit="samples",
        minimum=0,
        changeable=True,
    )
