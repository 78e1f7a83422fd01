"""Port checkouts of real projects in memory; report the outcome of each, and of a second port.

    python benchmarks/port_originals.py bert facenet nmt --precision allow_mix_precision

Every ported file has to parse, and porting the result again has to change nothing; the exit code
is 1 where that is not so.
"""

import argparse
import ast
import sys
import tempfile
from pathlib import Path

from jumar.porting.edits import TreeReport
from jumar.porting.options import PortOptions, parse_loss_scale, precision_mode
from jumar.porting.tree.porting import port_tree
from jumar.porting.tree.writing import write_tree


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--precision", type=precision_mode)
    parser.add_argument("--loss-scale", type=parse_loss_scale)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--minimal", action="store_true")
    arguments = parser.parse_args()
    options = PortOptions(
        precision=arguments.precision,
        loss_scale=arguments.loss_scale,
        devices=arguments.devices,
        minimal=arguments.minimal,
    )
    print("| project | files | ported | unreadable | edits | findings | second port changes |")
    print("|---|---|---|---|---|---|---|")
    failed = False
    for checkout in arguments.checkouts:
        report, again = _twice(checkout, options)
        broken = [file.path for file in report.files if not _parses(file.after)]
        edits = sum(report.edits_by_rule().values())
        findings = sum(report.findings_by_rule().values())
        print(
            f"| {checkout.name} | {len(report.files)} | {report.count('ported')} "
            f"| {report.count('unreadable')} | {edits} | {findings} "
            f"| {again.count('ported') or 'nothing'} |"
        )
        for path in broken:
            print(f"does not parse: {checkout / path}", file=sys.stderr)
        failed = failed or bool(broken) or again.count("ported") > 0
    return int(failed)


def _twice(checkout: Path, options: PortOptions) -> tuple[TreeReport, TreeReport]:
    report = port_tree(checkout, options)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / checkout.resolve().name
        write_tree(report, checkout, out, {})
        return report, port_tree(out, options)


def _parses(text: str) -> bool:
    try:
        ast.parse(text.removeprefix("\ufeff"))
    except SyntaxError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
