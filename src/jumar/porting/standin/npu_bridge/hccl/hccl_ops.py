"""Collective operations as seen by one process whose peers hold the same values.

With RANK_SIZE unset or 1 they pass their input on. With more ranks a sum is the multiple, a gather
the repetition and the rest the identity, so averaged gradients keep their size.
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
    """The tensors of all ranks of a group, stacked."""
    return gen_hccl_ops.hcom_all_gather(
        tensor, rank_size, group=group, fusion=fusion, fusion_id=fusion_id
    )


def broadcast(tensor, root_rank, fusion=2, fusion_id=0, group="hccl_world_group"):
    """A list of tensors as the root rank of a group holds them."""
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
