"""The back end `hccl` of the stand-in: gloo over copies of the tensors.

It takes tensors of the NPU only, as HCCL does, so a collective on a CPU tensor fails here too.
"""

import torch
import torch.distributed as dist


def _done(result: object) -> dist.Work:
    future = torch.futures.Future()
    future.set_result(result)
    return torch._C._distributed_c10d._create_work_from_future(future)


def _to_host(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    for tensor in tensors:
        if tensor.device.type != "npu":
            raise RuntimeError(f"HCCL works on NPU tensors, not on {tensor.device.type}")
    return [tensor.cpu() for tensor in tensors]


class ProcessGroupHCCL(dist.ProcessGroup):
    """Collectives of a data-parallel run."""

    # Where torch puts the tensors of object collectives and barriers.
    _device_types = (torch.device("npu"),)

    def __init__(self, store, rank: int, size: int, timeout) -> None:
        super().__init__(rank, size)
        self._gloo = dist.ProcessGroupGloo(store, rank, size, timeout)

    def getBackendName(self) -> str:  # noqa: N802 - torch calls it
        return "hccl"

    def allreduce(self, tensors, opts) -> dist.Work:
        copies = _to_host(tensors)
        self._gloo.allreduce(copies, opts).wait()
        for tensor, copy in zip(tensors, copies, strict=True):
            tensor.copy_(copy)
        return _done(tensors)

    def broadcast(self, tensors, opts) -> dist.Work:
        copies = _to_host(tensors)
        self._gloo.broadcast(copies, opts).wait()
        for tensor, copy in zip(tensors, copies, strict=True):
            tensor.copy_(copy)
        return _done(tensors)

    def allgather(self, outputs, inputs, opts) -> dist.Work:
        copies = [_to_host(group) for group in outputs]
        self._gloo.allgather(copies, _to_host(inputs), opts).wait()
        for group, copied in zip(outputs, copies, strict=True):
            for tensor, copy in zip(group, copied, strict=True):
                tensor.copy_(copy)
        return _done(outputs)

    def barrier(self, opts) -> dist.Work:
        self._gloo.barrier(opts).wait()
        return _done(None)


def _register() -> None:
    if dist.is_available():
        dist.Backend.register_backend("hccl", ProcessGroupHCCL, devices=["npu"])
