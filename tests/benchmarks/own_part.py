"""A part whose measurements do what those on a real device may do; its folder says what to do."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial

from on_accelerator.measuring import Context, Failed, GoesOn, Measurement, Missing, Row


def measurements(context: Context) -> Sequence[Measurement]:
    """What the file `plan.txt` of the data folder names, a word and its seconds a line."""
    assert context.data is not None
    lines = (context.data / "plan.txt").read_text().splitlines()
    plan = [(word, float(seconds)) for word, seconds in map(str.split, lines)]
    return [
        Measurement(
            name=word,
            measure=partial(_counted, word, DEEDS[word.partition("-")[0]]),
            seconds=seconds,
            is_slice=word == "slice",
            is_later=word.endswith("-later"),
        )
        for word, seconds in plan
    ]


def _counted(word: str, deed: Callable[[Context], list[Row]], context: Context) -> list[Row]:
    """Note that it began, in a file of the data folder."""
    assert context.data is not None
    with (context.data / "began.txt").open("a") as file:
        file.write(f"{word} {os.getpid()}\n")
    return deed(context)


def measured(context: Context) -> list[Row]:
    """What measures something."""
    return [{"answer": 42.0, "rates known": len(context.rates)}]


def slowly(context: Context) -> list[Row]:
    """What takes as long as the test needs to kill it."""
    time.sleep(30)
    return measured(context)


def killed(context: Context) -> list[Row]:
    """What the system ends for its memory."""
    os.kill(os.getpid(), signal.SIGKILL)
    return measured(context)


def raising(context: Context) -> list[Row]:
    """What fails until it is mended."""
    assert context.data is not None
    if (context.data / "mended").exists():
        return measured(context)
    raise RuntimeError(f"nothing to see on {context.device}")


def out_of_memory(context: Context) -> list[Row]:
    """What needs more than there is."""
    raise MemoryError("1 TiB")


def lacking(context: Context) -> list[Row]:
    """What needs something."""
    raise Missing("needs a moon")


def importing(context: Context) -> list[Row]:
    """What needs a package."""
    import package_that_nobody_has  # pyright: ignore[reportMissingImports]

    return [{"answer": float(package_that_nobody_has.answer)}]


def partly(context: Context) -> list[Row]:
    """What fails with something to show."""
    raise Failed(measured(context), "one of two")


def sliced(context: Context) -> list[Row]:
    """What goes on in another call, until the third one."""
    assert context.data is not None
    begun = (context.data / "began.txt").read_text().split().count("slice")
    if begun < 3:
        raise GoesOn([{"slices": begun}])
    return [{"slices": begun}]


DEEDS = {
    "good": measured,
    "slow": slowly,
    "kill": killed,
    "raise": raising,
    "memory": out_of_memory,
    "lack": lacking,
    "import": importing,
    "partly": partly,
    "slice": sliced,
}
