"""`python -m jumar`, which torchrun needs."""

import os
import sys


def _forget_working_folder() -> None:
    """Take the working folder from the path, where `python -m` has put it first.

    In a run directory of somebody else, a file there with the name of any module that is imported
    later would be executed.
    """
    try:
        here = os.getcwd()  # noqa: PTH109, since pathlib is not imported yet
    except OSError:
        return
    if not getattr(sys.flags, "safe_path", False) and sys.path[0] == here:
        del sys.path[0]


if __name__ == "__main__":
    _forget_working_folder()

    from jumar.cli.main import run

    run()
