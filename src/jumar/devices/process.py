"""Settings of the whole process, whatever its device: threads and seeds."""

import random

import numpy
import torch

from jumar.ground import machine
from jumar.ground.errors import UserError


def set_threads(intra_op: int | None = None, inter_op: int | None = None) -> None:
    """Set the numbers of CPU threads within and between operators; None leaves one unchanged.

    Raises:
        UserError: A number is more than this machine can handle, or the inter-op pool of this
            process already runs with another size.
    """
    if intra_op is not None:
        torch.set_num_threads(machine.checked_count(intra_op, "threads", "threads.intra_op"))
    if inter_op is None or inter_op == torch.get_num_interop_threads():
        return
    try:
        torch.set_num_interop_threads(
            machine.checked_count(inter_op, "threads", "threads.inter_op")
        )
    except RuntimeError as error:
        raise UserError(
            f"the inter-op threads of this process are fixed at {torch.get_num_interop_threads()}, "
            f"and cannot be changed to {inter_op}",
            where="threads.inter_op",
            todo="torch accepts this setting only before the first operator that runs in parallel. "
            "Start a new process to change it.",
        ) from error


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and torch on the CPU and on every accelerator."""
    random.seed(seed)
    numpy.random.seed(seed % 2**32)
    torch.manual_seed(seed)
