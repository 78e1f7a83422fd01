"""The strategy that replicates a model over ranks, with one replica per process."""

from tensorflow.python.distribute import distribute_lib, one_device_strategy

from hccl.manage.api import get_rank_id, get_rank_size
from npu_bridge.estimator.npu import util
from npu_bridge_standin.record import record


class NPUExtended(one_device_strategy.OneDeviceExtended):
    """One device, and data sets that are sharded over the ranks."""

    @property
    def _num_replicas_in_sync(self):
        return int(util.get_ranksize())

    def _experimental_distribute_dataset(self, dataset):
        return dataset.shard(get_rank_size(), get_rank_id())


class NPUStrategy(distribute_lib.StrategyV1):
    """Replicates a model over ranks."""

    def __init__(self, device="/cpu:0"):
        record("hccl", strategy="NPUStrategy", ranks=util.get_ranksize())
        super().__init__(NPUExtended(self, device))
