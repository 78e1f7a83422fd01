"""Collective operations for one process, as if all ranks had the same values.

If RANK_SIZE is unset or 1, they return their input. With more ranks, a sum multiplies, a gather
repeats and the others return the input, so that averaged gradients keep their size.
"""

from npu_bridge.helper import helper
from npu_bridge_standin.signatures import add_device_only

gen_hccl_ops = helper.get_gen_ops()


def allreduce(tensor, reduction, fusion=1, fusion_id=-1, group="hccl_world_group"):
    """Reduce over all ranks of a group: sum, prod, max or min."""
    return gen_hccl_ops.hcom_all_reduce(
        tensor, reduction, group=group, fusion=fusion, fusion_id=fusion_id
    )


def allgather(tensor, rank_size, group="hccl_world_group", fusion=0, fusion_id=-1):
    """Return the tensors of all ranks of a group, concatenated."""
    return gen_hccl_ops.hcom_all_gather(
        tensor, rank_size, group=group, fusion=fusion, fusion_id=fusion_id
    )


def broadcast(tensor, root_rank, fusion=2, fusion_id=0, group="hccl_world_group"):
    """Return a list of tensors with the values of a group's root rank."""
    return gen_hccl_ops.hcom_broadcast(
        tensor, root_rank, group=group, fusion=fusion, fusion_id=fusion_id
    )


def reduce(tensor, reduction, root_rank, fusion=0, fusion_id=-1, group="hccl_world_group"):
    """Reduce to one rank of a group."""
    return gen_hccl_ops.hcom_reduce(
        tensor, reduction, root_rank, group=group, fusion=fusion, fusion_id=fusion_id
    )


def reduce_scatter(tensor, reduction, rank_size, group="hccl_world_group", fusion=0, fusion_id=-1):
    """Reduce over all ranks of a group and keep this rank's part."""
    return gen_hccl_ops.hcom_reduce_scatter(
        tensor, reduction, rank_size, group=group, fusion=fusion, fusion_id=fusion_id
    )


add_device_only(globals())
