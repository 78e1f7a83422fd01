"""`jumar precision`: modes, ops and lint; each other command has its own file."""

import json
from pathlib import Path

from cyclopts import App

from jumar.cli.options import OPTIONS, JsonFlag, ModeOption
from jumar.cli.output import print_table
from jumar.ground.errors import UserError
from jumar.ground.text import counted, print_plain

app = App(
    name="precision",
    help="Show precision modes and op lists; lint modify_mixlist files; dump steps, compare and "
    "convert dumps, compare runs, find overflows and ops that are sensitive to rounding.",
    group_parameters=OPTIONS,
)
app.command(
    "jumar.cli.precision_dump:dump",
    help="Dump training steps: inputs and outputs of every op, layer and parameter.",
    usage="Usage: jumar precision dump [OPTIONS] RECIPE|RUN\n"
    "       jumar precision dump --script FILE [OPTIONS] [-- ARGUMENTS...]",
)
app.command(
    "jumar.cli.precision_overflow:overflow",
    help="Name the op that overflows, or show how close ops are to overflowing.",
)
app.command(
    "jumar.cli.precision_compare:compare",
    help="Compare two dumps of one step and name the first op to blame.",
)
app.command(
    "jumar.cli.precision_convert:convert",
    help="Convert a dump to msprobe's format, for msprobe's comparison and viewers.",
)
app.command(
    "jumar.cli.precision_results:results",
    help="Explain results of Ascend's tools: msaccucmp's result_*.csv and overflow records.",
    usage="Usage: jumar precision results [OPTIONS] FILE...",
)
app.command(
    "jumar.cli.precision_search:search",
    help="Find the fewest op types that must stay in float32, and write their modify_mixlist file.",
)
app.command(
    "jumar.cli.precision_runs:runs",
    help="Show where two runs diverge: at which step, in which losses and weights.",
)
app.command(
    "jumar.cli.precision_diverge:diverge",
    help="Find the first step and op at which two runs that should be equal differ.",
    usage="Usage: jumar precision diverge [OPTIONS] A B\n"
    "       jumar precision diverge --hashes FILE [OPTIONS] A",
)
app.command(
    "jumar.cli.precision_noise:noise",
    help="Measure which ops and layers are sensitive to rounding.",
)


@app.command
def modes(*, json_: JsonFlag = False) -> int:
    """Show every precision mode: its meaning on Ascend, and its effect here on NPU, CUDA and CPU.

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
        for column in ("on Ascend", "NPU", "CUDA", "CPU"):
            print(f"  {column + ':':<11}{row[column]}")
    return 0


@app.command
def ops(
    *,
    mode: ModeOption = "allow_mix_precision",
    mixlist: Path | None = None,
    json_: JsonFlag = False,
) -> int:
    """Show the op lists: each op's list, its treatment by the mode, and its CANN op types.

    Parameters
    ----------
    mode
        Precision mode.
    mixlist
        modify_mixlist file to apply first (JSON).
    """
    from jumar.precision.mixlist import load_mixlist
    from jumar.precision.modes import find_mode
    from jumar.precision.oplist import default_lists, op_table

    precision_mode = find_mode(mode)
    if mixlist is not None and not precision_mode.uses_lists:
        raise UserError(f"the mode '{precision_mode.name}' ignores op lists", where="--mixlist")
    rows = op_table(
        precision_mode.form, default_lists() if mixlist is None else load_mixlist(mixlist)
    )
    if json_:
        print(json.dumps(rows, indent=2))
    elif not rows:
        print(f"{precision_mode.name} keeps every dtype; it has no op lists")
    else:
        print_table(rows, ["op", "list", "default", "treatment", "CANN op types"])
    return 0


@app.command
def lint(
    file: Path, /, *, mode: ModeOption = "allow_mix_precision", json_: JsonFlag = False
) -> int:
    """Lint a modify_mixlist file; the exit code is 1 if CANN or jumar would reject it.

    Parameters
    ----------
    file
        modify_mixlist file in CANN's format (JSON).
    mode
        Precision mode that the file will be used with.
    """
    from dataclasses import asdict

    from jumar.precision.mixlist import lint_mixlist

    findings = lint_mixlist(file, mode)
    if json_:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            print_plain(f"{file}: {finding}")
        print_plain(counted(len(findings), "finding") if findings else f"{file}: no findings")
    return int(any(finding.severity == "error" for finding in findings))
