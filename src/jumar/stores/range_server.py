"""The helper process of `ranged.py`, which reads ranges for a forked process until it ends."""

import signal
import sys

from jumar.stores.ranged import answer


def main() -> None:
    """Answer each line of standard input on standard output."""
    # Ctrl-C is sent to the whole process group; the worker decides when to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    output = sys.stdout.buffer
    for line in sys.stdin.buffer:
        head, contents = answer(line)
        output.writelines([head, *contents])
        output.flush()


if __name__ == "__main__":
    main()
