"""The job of a process, from a file or from the environment; the name is the real package's."""

import json
import os
from pathlib import Path

from npu_bridge.estimator.npu import util as util_lib


class JobInfo:
    """What a scheduler says about a job."""

    def __init__(
        self,
        job_id=0,
        job_config=None,
        heartbeat_time=-1,
        region_id=None,
        ak=None,
        sk=None,
        endpoint_url=None,
        device_info=None,
        rank_table_file=None,
        restart_flag=0,
        local_app_dir=None,
        local_data_dir=None,
        local_checkpoint_dir=None,
        local_log_dir=None,
        local_result_dir=None,
        local_boot_file=None,
        rank_size=1,
    ):
        given = {name: value for name, value in locals().items() if name != "self"}
        for name, value in given.items():
            setattr(self, "_" + name, value)


class JobConfig:
    """Learning rate and batch size of a job."""

    def __init__(self, learning_rate=None, batch_size=None):
        self._learning_rate = learning_rate
        self._batch_size = batch_size


class DeviceInfo:
    """One device of a job."""

    def __init__(self, index="0", server_id="123456", dev_index=1):
        self._index = index
        self._server_id = server_id
        self._dev_index = dev_index
        self._root_rank = 0

    def is_master_node(self):
        """Whether this is the root."""
        # The real one compares a text with a number and always says False.
        return self._index == self._root_rank


class NPUBasics:
    """The one job of this process; read once."""

    _read = None

    def __init__(self, file_name):
        if NPUBasics._read is None:
            NPUBasics._read = _job_of_file(file_name) or _job_of_environment()
        self._job_info = NPUBasics._read

    @property
    def jobinfo(self):
        """The job, or None without a file and without JOB_ID."""
        return self._job_info

    def size(self):
        """The number of ranks."""
        if self._job_info is None:
            raise ValueError(
                "npu_bridge stand-in: ranks exchange gradients, which needs the environment "
                "variable JOB_ID; set it to any text, such as JOB_ID=10086"
            )
        return self._job_info._rank_size


def _job_of_file(file_name):
    if not file_name or not Path(file_name).is_file():
        return None
    said = json.loads(Path(file_name).read_text(encoding="utf-8"))
    for name in ("device_info", "rank_table_file", "rank_size"):
        util_lib.check_not_none(said.get(name), name)
    util_lib.check_nonnegative_integer(said["device_info"].get("Index"), "Index")
    util_lib.check_positive_integer(said["rank_size"], "rank_size")
    return JobInfo(
        device_info=DeviceInfo(index=str(said["device_info"]["Index"])),
        rank_table_file=said["rank_table_file"],
        local_checkpoint_dir=said.get("local_checkpoint_dir"),
        rank_size=said["rank_size"],
    )


def _job_of_environment():
    job_id = os.environ.get("JOB_ID", "")
    if not job_id:
        return None
    size = util_lib.get_ranksize()
    identity = os.environ.get("POD_NAME") or os.environ.get("RANK_ID", "")
    return JobInfo(
        job_id=job_id,
        heartbeat_time=os.environ.get("HEARTBEAT", ""),
        device_info=DeviceInfo(index=identity),
        rank_table_file=os.environ.get("RANK_TABLE_FILE", ""),
        local_checkpoint_dir=os.environ.get("LOCAL_CHECKPOINT_DIR", ""),
        rank_size=int(size) if size.isdigit() else 1,
    )
