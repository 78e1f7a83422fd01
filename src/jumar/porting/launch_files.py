"""Which files a port adds; their texts are those of `jumar.launching`."""

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
        entry: The script to start, relative to the tree with forward slashes; empty if it is not
            known and has to be named at the start.
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
