"""`jumar report`."""

import sys
from pathlib import Path

from jumar.ground.text import print_plain


def report(directory: Path, /) -> int:
    """Write report.html for a run or a sweep: one self-contained page with table and curves.

    Parameters
    ----------
    directory
        A run directory or a sweep directory.
    """
    from jumar.experiments.reporting import write_report

    print_plain(f"report: {write_report(directory, lambda line: print_plain(line, sys.stderr))}")
    return 0
