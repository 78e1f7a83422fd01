"""The files that a port adds; their contents are written by `jumar.launching`."""

from jumar.launching.ported import (
    MODELARTS_SCRIPT,
    OUTPUT_FOLDERS,
    RUN_SCRIPT,
    TABLE_SCRIPT,
    check_entry,
    modelarts_script,
    rank_table_script,
    run_script,
)
from jumar.porting.options import PortOptions

ADDED_NAMES = (RUN_SCRIPT, TABLE_SCRIPT, MODELARTS_SCRIPT)
"""Files that an earlier port may have added: none of them is a training script."""


def added_files(options: PortOptions, *, entry: str) -> dict[str, str]:
    """Return the files that a port adds to the root of a tree, as texts by path.

    - `run_npu.sh`, which starts the script on one or several devices: for several devices, and
      for every full port of TensorFlow, because NPUEstimator and NPUDistributedOptimizer need
      the variable JOB_ID even on a single device.
    - `make_rank_table.py`, for several devices with TensorFlow: HCCL reads a table with the
      addresses of the devices, which are known only on the machine that has them.
    - `modelarts_run.py`, with `--modelarts`.

    If the tree already has a file of that name, the caller keeps it.

    Args:
        options: The options of the port.
        entry: The script to start, relative to the tree with forward slashes; empty if
            unknown, in which case it has to be named at launch.
    """
    check_entry(entry)
    files: dict[str, str] = {}
    tensorflow = options.source == "tensorflow"
    if options.distributed or (tensorflow and not options.minimal):
        files[RUN_SCRIPT] = run_script(
            entry=entry, devices=options.devices, framework=options.source
        )
    if options.distributed and tensorflow:
        files[TABLE_SCRIPT] = rank_table_script()
    if options.modelarts:
        files[MODELARTS_SCRIPT] = modelarts_script(entry=entry, output_folders=OUTPUT_FOLDERS)
    return files
