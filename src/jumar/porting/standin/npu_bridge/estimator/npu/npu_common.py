"""The job of a process, from a file or the environment; named as in the real package."""

import json
import os
from pathlib import Path

from npu_bridge.estimator.npu import util as util_lib


class JobInfo:
    """A job as described by its scheduler."""

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
        arguments = {name: value for name, value in locals().items() if name != "self"}
        for name, value in arguments.items():
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
        """Whether this device is the root."""
        # The real method compares a string with a number, so it always returns False.
        return self._index == self._root_rank


class NPUBasics:
    """The job of this process, which is read only once."""

    _job = None

    def __init__(self, file_name):
        if NPUBasics._job is None:
            NPUBasics._job = _job_of_file(file_name) or _job_of_environment()
        self._job_info = NPUBasics._job

    @property
    def jobinfo(self):
        """The job, or None without a file and without JOB_ID."""
        return self._job_info

    def size(self):
        """The number of ranks."""
        if self._job_info is None:
            raise ValueError(
                "npu_bridge stand-in: exchanging gradients between ranks requires the environment "
                "variable JOB_ID; set it to any text, such as JOB_ID=10086"
            )
        return self._job_info._rank_size


def _job_of_file(file_name):
    if not file_name or not Path(file_name).is_file():
        return None
    content = json.loads(Path(file_name).read_text(encoding="utf-8"))
    for name in ("device_info", "rank_table_file", "rank_size"):
        util_lib.check_not_none(content.get(name), name)
    util_lib.check_nonnegative_integer(content["device_info"].get("Index"), "Index")
    util_lib.check_positive_integer(content["rank_size"], "rank_size")
    return JobInfo(
        device_info=DeviceInfo(index=str(content["device_info"]["Index"])),
        rank_table_file=content["rank_table_file"],
        local_checkpoint_dir=content.get("local_checkpoint_dir"),
        rank_size=content["rank_size"],
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
