"""The files that a port adds, and their texts; the scripts themselves are in `scripts/`."""

import re
import shlex

from jumar.ground.errors import UserError
from jumar.porting.launching.modelarts import MODELARTS_SCRIPT, modelarts_script, script_text
from jumar.porting.options import PortOptions

RUN_SCRIPT = "run_npu.sh"
TABLE_SCRIPT = "make_rank_table.py"
ADDED_NAMES = (RUN_SCRIPT, TABLE_SCRIPT, MODELARTS_SCRIPT)
"""What a port may have added to a tree before: none of them is a script to train with."""


def added_files(options: PortOptions, *, entry: str) -> dict[str, str]:
    """The files that a port adds to the root of a tree: path to text.

    - `run_npu.sh`, which starts the script on one device or on several: for several devices, and
      for every full port of TensorFlow, because NPUEstimator and NPUDistributedOptimizer need
      the variable JOB_ID even on one.
    - `make_rank_table.py`, for several devices with TensorFlow: HCCL reads a table with the
      addresses of the devices, which only the machine with the devices knows.
    - `modelarts_run.py`, with `--modelarts`.

    The caller keeps a file of the same name that the tree already has.

    Args:
        options: The options of the port.
        entry: The script to start, relative to the tree with forward slashes; empty when it is
            not known, and has to be named when starting.
    """
    if entry.startswith("/") or ".." in entry.split("/"):
        raise UserError(
            f"'{entry}' is outside the tree", where="entry", todo="Name a script of the tree."
        )
    if re.search(r"[\0-\x1f\x7f]", entry):
        raise UserError(
            f"{entry!r} holds control characters", where="entry", todo="Rename the script."
        )
    added: dict[str, str] = {}
    tensorflow = options.source == "tensorflow"
    if options.distributed or (tensorflow and not options.minimal):
        added[RUN_SCRIPT] = run_script(options, entry=entry)
    if options.distributed and tensorflow:
        added[TABLE_SCRIPT] = rank_table_script()
    if options.modelarts:
        added[MODELARTS_SCRIPT] = modelarts_script(entry=entry)
    return added


def run_script(options: PortOptions, *, entry: str) -> str:
    """The text of `run_npu.sh` for a script and a number of devices."""
    shown = entry or "none: it must be given"
    values = {
        "@DEVICES@": str(options.devices),
        "@QUOTED_ENTRY@": shlex.quote(entry),
        "@ENTRY@": shown,
        "@FRAMEWORK@": options.source,
    }
    text = script_text(RUN_SCRIPT)
    return re.sub("|".join(values), lambda match: values[match[0]], text)


def rank_table_script() -> str:
    """The text of `make_rank_table.py`."""
    return script_text(TABLE_SCRIPT)
