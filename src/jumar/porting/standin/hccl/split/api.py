"""Strategies to split gradients: checked and recorded only, since they affect only the speed."""

from npu_bridge_standin.ranks import WORLD_GROUP, group_ranks
from npu_bridge_standin.record import record


def set_split_strategy_by_idx(idxList, group=WORLD_GROUP):
    """Split after the gradients of these indices."""
    group_ranks(group)
    if not idxList or any(left >= right for left, right in zip(idxList, idxList[1:])):
        raise ValueError("indices of gradients must be ascending, got {!r}".format(idxList))
    record("hccl", call="set_split_strategy_by_idx", group=group, idxList=list(idxList))


def set_split_strategy_by_size(dataSizeList, group=WORLD_GROUP):
    """Split by these percentages of the gradients' bytes."""
    group_ranks(group)
    if not dataSizeList or abs(sum(dataSizeList) - 100) > 1e-6:
        raise ValueError("shares must add up to 100 percent, got {!r}".format(dataSizeList))
    record("hccl", call="set_split_strategy_by_size", group=group, dataSizeList=list(dataSizeList))
