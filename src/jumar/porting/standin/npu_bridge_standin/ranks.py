"""Ranks and groups of a process, from the environment."""

import os

from npu_bridge_standin.record import record

WORLD_GROUP = "hccl_world_group"
DEVICES_PER_SERVER = 8

_GROUPS = {}


def rank_size_text():
    """Return the number of ranks, as text from the environment.

    Raises:
        ValueError: RANK_SIZE and CM_WORKER_SIZE are both set.
    """
    rank_size = os.environ.get("RANK_SIZE")
    workers = os.environ.get("CM_WORKER_SIZE")
    if rank_size is not None and workers is not None:
        raise ValueError("RANK_SIZE and CM_WORKER_SIZE are both set; unset one of them")
    if rank_size is not None:
        return rank_size
    return "1" if workers is None else workers


def world_size():
    """Return the number of ranks on all servers."""
    size = _number("RANK_SIZE or CM_WORKER_SIZE", rank_size_text())
    if size < 1:
        raise ValueError("RANK_SIZE must be 1 or more, got {}".format(size))
    return size


def world_rank():
    """Return the rank of this process among all servers."""
    rank = _number("RANK_ID", os.environ.get("RANK_ID") or "0")
    if not 0 <= rank < world_size():
        raise ValueError(
            "RANK_ID must be below RANK_SIZE, got {} and {}".format(rank, world_size())
        )
    return rank


def create_group(group, rank_num, rank_ids):
    """Create a group of ranks."""
    if not isinstance(group, str) or not group or len(group) > 127:
        raise ValueError(
            "the name of a group must have 1 to 127 characters, got {!r}".format(group)
        )
    if group == WORLD_GROUP:
        raise ValueError("{} always exists and cannot be created".format(group))
    if group in _GROUPS:
        raise ValueError("group '{}' already exists".format(group))
    if not isinstance(rank_ids, list) or len(set(rank_ids)) != len(rank_ids):
        raise ValueError("rank_ids must be a list of distinct ranks, got {!r}".format(rank_ids))
    if rank_num != len(rank_ids):
        raise ValueError(
            "rank_num is {}, but rank_ids has {} ranks".format(rank_num, len(rank_ids))
        )
    outside = [rank for rank in rank_ids if not 0 <= rank < world_size()]
    if outside:
        raise ValueError(
            "ranks {} do not exist, since there are {} ranks".format(outside, world_size())
        )
    if world_rank() not in rank_ids:
        raise ValueError("rank {} is not in group '{}'".format(world_rank(), group))
    record("hccl", call="create_group", group=group, ranks=list(rank_ids))
    _GROUPS[group] = list(rank_ids)


def destroy_group(group):
    """Destroy a group."""
    group_ranks(group)
    if group == WORLD_GROUP:
        raise ValueError("{} cannot be destroyed".format(group))
    del _GROUPS[group]


def group_ranks(group=WORLD_GROUP):
    """Return the world ranks of a group, in its order."""
    if group == WORLD_GROUP:
        return list(range(world_size()))
    if group not in _GROUPS:
        raise ValueError("group '{}' does not exist; create it with create_group".format(group))
    return list(_GROUPS[group])


def rank_in(group=WORLD_GROUP):
    """Return the rank of this process in a group."""
    return group_ranks(group).index(world_rank())


def neighbours(group=WORLD_GROUP):
    """Return the ranks of a group on this process's server."""
    server = world_rank() // DEVICES_PER_SERVER
    return [rank for rank in group_ranks(group) if rank // DEVICES_PER_SERVER == server]


def _number(name, text):
    try:
        return int(text)
    except ValueError:
        raise ValueError("{} must be a number, got '{}'".format(name, text)) from None
