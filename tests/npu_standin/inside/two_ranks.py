"""One of two ranks: the device of its number, hccl, and DistributedDataParallel."""

import os
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from jumar.devices.registry import open_device
from tests.npu_standin import install


def main(folder: Path) -> None:
    """Compare the averaged gradient with that of the whole batch on one device."""
    device = open_device("npu")
    dist.init_process_group(device.distributed_backend)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    net = nn.Linear(4, 2).to(device.torch)
    wrapped = DistributedDataParallel(net, device_ids=[device.index])
    batch = torch.arange(16.0).reshape(4, 4).to(device.torch)
    wrapped(batch[rank::ranks]).square().mean().backward()
    averaged = net.weight.grad.clone()
    net.zero_grad()
    net(batch).square().mean().backward()
    torch.testing.assert_close(averaged, net.weight.grad)
    with pytest.raises(RuntimeError, match="not on cpu"):
        dist.all_reduce(torch.ones(1))
    dist.barrier()
    message = f"{device} of {ranks}, equal gradients"
    (folder / os.environ["RANK"]).write_text(message)
    dist.destroy_process_group()


if __name__ == "__main__":
    install()
    main(Path(sys.argv[1]))
