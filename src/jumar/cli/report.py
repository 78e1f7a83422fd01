"""`jumar report`."""

from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.text import print_aside, print_plain


def report(*runs: Path, to: Path | None = None) -> int:
    """Write one self-contained page with tables and curves.

    The page of a single run or sweep is its `report.html`. Several runs, sweeps or folders of runs
    are compared on one page, with the table also as Markdown and CSV.

    Parameters
    ----------
    runs
        Run directories, sweep directories, or folders that contain run directories.
    to
        The page of a comparison, by default `comparison.html` in the current folder; if set, a
        single path gets such a page too.
    """
    from jumar.experiments.comparing import PAGE, run_directories, write_comparison
    from jumar.experiments.reporting import has_own_report, write_report

    if not runs:
        raise UserError(
            "a run is missing", todo="Name it: jumar report RUN, or several runs to compare."
        )
    if len(runs) == 1 and to is None and has_own_report(runs[0]):
        print_plain(f"report: {write_report(runs[0], print_aside)}")
        return 0
    count = len(run_directories(runs))
    files = write_comparison(runs, to or Path(PAGE), print_aside)
    print_plain(f"runs compared: {count}")
    for file in files:
        print_plain(f"report: {file}")
    return 0
