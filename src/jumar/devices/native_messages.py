"""Reading the messages that C++ libraries print to standard error."""

import os
import re
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

_BLOCK = 1 << 16


@contextmanager
def names_in_messages(pattern: str | None) -> Generator[list[str]]:
    """Context that extracts names from messages on standard error and still prints them.

    Args:
        pattern: A regular expression whose first group is a name; None for a device without such
            messages.

    Yields:
        The names in order, without repetitions; filled in at the end of the context.
    """
    names: list[str] = []
    if pattern is None:
        yield names
        return
    sys.stderr.flush()
    original = os.dup(2)
    reading, writing = os.pipe()
    content = bytearray()

    def pass_on() -> None:
        while block := os.read(reading, _BLOCK):
            os.write(original, block)
            content.extend(block)

    thread = threading.Thread(target=pass_on, daemon=True)
    os.dup2(writing, 2)
    os.close(writing)
    thread.start()
    try:
        yield names
    finally:
        sys.stderr.flush()
        # This closes the last write end of the pipe: the thread reads the rest and ends.
        os.dup2(original, 2)
        thread.join()
        os.close(reading)
        os.close(original)
        text = content.decode("utf-8", "replace")
        names += dict.fromkeys(match[1] for match in re.finditer(pattern, text))
