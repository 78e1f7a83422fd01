"""`jumar report`."""

from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.text import print_aside, print_plain


def report(*runs: Path, to: Path | None = None) -> int:
    """Write one self-contained page with tables and curves.

    For one run or sweep it is its `report.html`. Several runs, sweeps or folders of runs are
    compared on one page, with the table also as Markdown and CSV.

    Parameters
    ----------
    runs
        Run directories, sweep directories, or folders that hold run directories.
    to
        The page of a comparison, by default `comparison.html` in the current folder; also for a
        single path.
    """
    from jumar.experiments.comparing import PAGE, run_directories, write_comparison
    from jumar.experiments.reporting import has_own_report, write_report

    if not runs:
        raise UserError("no run given", todo="jumar report RUN, or several runs to compare.")
    if len(runs) == 1 and to is None and has_own_report(runs[0]):
        print_plain(f"report: {write_report(runs[0], print_aside)}")
        return 0
    count = len(run_directories(runs))
    files = write_comparison(runs, to or Path(PAGE), print_aside)
    print_plain(f"runs compared: {count}")
    for file in files:
        print_plain(f"report: {file}")
    return 0
