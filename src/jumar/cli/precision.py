"""`jumar precision modes`, `ops` and `lint`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from jumar.plain_text import print_plain

app = App(
    name="precision", help="Precision modes, op lists, and a linter for modify_mixlist files."
)
JsonOption = Annotated[bool, Parameter(name="--json", negative=())]


@app.command
def modes(*, json_: JsonOption = False) -> int:
    """Show every precision mode: what it means on Ascend, and on NPU, CUDA and CPU here.

    Parameters
    ----------
    json_
        Print JSON.
    """
    from jumar.precision.modes import mode_table

    rows = mode_table()
    if json_:
        print(json.dumps(rows, indent=2))
        return 0
    for row in rows:
        also = f" (also {row['also']})" if row["also"] else ""
        print(f"{row['mode']}{also}")
        for place in ("on Ascend", "NPU", "CUDA", "CPU"):
            print(f"  {place + ':':<11}{row[place]}")
    return 0


@app.command
def ops(
    *, mode: str = "allow_mix_precision", mixlist: Path | None = None, json_: JsonOption = False
) -> int:
    """Show the op list: each op, its list, what the mode does to it, its CANN op types.

    Parameters
    ----------
    mode
        The precision mode.
    mixlist
        A modify_mixlist file to apply first.
    json_
        Print JSON.
    """
    from jumar.errors import UserError
    from jumar.precision.mixlist import load_mixlist
    from jumar.precision.modes import find_mode
    from jumar.precision.oplist import default_lists, op_table

    found = find_mode(mode)
    if mixlist is not None and not found.uses_lists:
        raise UserError(f"the mode '{found.name}' ignores op lists", where="--mixlist")
    rows = op_table(found.form, default_lists() if mixlist is None else load_mixlist(mixlist))
    if json_:
        print(json.dumps(rows, indent=2))
    elif not rows:
        print(f"{found.name} keeps every dtype; it has no op lists")
    else:
        _print_table(["op", "list", "default", "treatment", "CANN op types"], rows)
    return 0


@app.command
def lint(file: Path, /, *, mode: str = "allow_mix_precision", json_: JsonOption = False) -> int:
    """Check a modify_mixlist file; exit code 1 where it would be refused.

    Parameters
    ----------
    file
        The JSON file in CANN's form.
    mode
        The precision mode with which it is to be used.
    json_
        Print JSON.
    """
    from dataclasses import asdict

    from jumar.precision.mixlist import lint_mixlist

    findings = lint_mixlist(file, mode)
    if json_:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            print_plain(f"{file}: {finding}")
        print_plain(f"{len(findings)} findings" if findings else f"{file}: in order")
    return int(any(finding.severity == "error" for finding in findings))


def _print_table(columns: Sequence[str], rows: Sequence[dict[str, str]]) -> None:
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in columns[:-1]}
    for row in [dict(zip(columns, columns, strict=True)), *rows]:
        cells = [f"{row[name]:<{width}}" for name, width in widths.items()]
        print("  ".join([*cells, row[columns[-1]]]).rstrip())
