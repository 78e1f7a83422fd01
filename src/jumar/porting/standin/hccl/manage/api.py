"""Groups and ranks, from the environment."""

from npu_bridge_standin import ranks
from npu_bridge_standin.ranks import WORLD_GROUP, create_group, destroy_group

__all__ = [
    "create_group",
    "destroy_group",
    "get_group_rank_from_world_rank",
    "get_local_rank_id",
    "get_local_rank_size",
    "get_rank_id",
    "get_rank_size",
    "get_world_rank_from_group_rank",
]


def get_rank_size(group=WORLD_GROUP):
    """The number of ranks in a group."""
    return len(ranks.group_ranks(group))


def get_rank_id(group=WORLD_GROUP):
    """The rank of this process in a group."""
    return ranks.rank_in(group)


def get_local_rank_size(group=WORLD_GROUP):
    """The number of ranks of a group on this server."""
    return len(ranks.neighbours(group))


def get_local_rank_id(group=WORLD_GROUP):
    """The rank of this process among the ranks of a group on its server."""
    return ranks.neighbours(group).index(ranks.world_rank())


def get_world_rank_from_group_rank(group, group_rank_id):
    """The world rank of a rank of a group."""
    members = ranks.group_ranks(group)
    if not 0 <= group_rank_id < len(members):
        raise ValueError("group '{}' has no rank {}".format(group, group_rank_id))
    return members[group_rank_id]


def get_group_rank_from_world_rank(world_rank_id, group):
    """The group rank of a world rank."""
    members = ranks.group_ranks(group)
    if world_rank_id not in members:
        raise ValueError("world rank {} is not in group '{}'".format(world_rank_id, group))
    return members.index(world_rank_id)
