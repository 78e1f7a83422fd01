"""`jumar report`."""

from pathlib import Path

from jumar.plain_text import print_plain


def report(directory: Path, /) -> int:
    """Write report.html for a run or a sweep: one page with table and curves, no network needed.

    Parameters
    ----------
    directory
        A run directory or a sweep's.
    """
    from jumar.experiments.reporting import write_report

    print_plain(f"report: {write_report(directory)}")
    return 0
