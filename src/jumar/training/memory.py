"""Keeping the memory that a step frees for the next step."""

import ctypes
import os

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of mallopt's parameters in glibc's malloc.h."""
_LARGEST_KEPT = 32 << 20
"""glibc takes no higher threshold; larger tensors come in pages of 2 MB, which map fast."""
_KEPT_AT_MOST = 1 << 30
_OF_THE_USER = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory() -> bool:
    """Let the C library keep what tensors of up to 32 MB free, up to 1 GB in a row.

    By default it gives a tensor of some megabytes back to Linux when the last reference goes, and
    a training step frees all of its activations. The next step then pays for mapping and zeroing
    every page again: for DS-CNN-S at batch 100 in fp32, half of its time. Numbers do not change.

    Returns:
        Whether it is so now: there is glibc, and no variable of the user's says otherwise.
    """
    if any(name in os.environ for name in _OF_THE_USER):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    wanted = ((_MMAP_THRESHOLD, _LARGEST_KEPT), (_TRIM_THRESHOLD, _KEPT_AT_MOST))
    return all(mallopt(parameter, value) == 1 for parameter, value in wanted)
