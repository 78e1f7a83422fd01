"""The helper of `ranged.py`: reads ranges for a forked process until that has ended."""

import signal
import sys

from jumar.stores.ranged import answer


def main() -> None:
    """Answer each line of standard input on standard output."""
    # Ctrl-C goes to the whole group of processes; the worker decides when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    output = sys.stdout.buffer
    for line in sys.stdin.buffer:
        head, contents = answer(line)
        output.write(head)
        for content in contents:
            output.write(content)
        output.flush()


if __name__ == "__main__":
    main()
