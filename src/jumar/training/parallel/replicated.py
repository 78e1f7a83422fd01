"""Ranks that each have the whole network; DistributedDataParallel averages their gradients."""

import importlib
import os
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import chain
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from jumar.devices.contract import Device
from jumar.tasks.task import Objective
from jumar.training.parallel.ranks import Agreement, Ranks
from jumar.training.parallel.silence import (
    Place,
    SilenceWatch,
    announced_place,
    store_lost,
)

TIMEOUT = timedelta(minutes=30)
"""How long a rank waits for the others; on an NPU, the first step compiles for minutes.

`silence.py` detects a lost machine much sooner.
"""

_CUT_OFF = re.compile(
    r"connection (closed|reset|refused)|broken pipe|timed out|timeout|unreachable|no route|"
    r"connectFullMesh|remote process exited|socket|ERR02",
    re.IGNORECASE,
)
"""Messages of gloo, NCCL and HCCL about a peer, in errors that are plain RuntimeErrors."""
_FROM_GROUP = re.compile(r"gloo|nccl|hccl|store|ERR02", re.IGNORECASE)

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Replicated(Ranks):
    """Several processes, each with the whole network and its share of every batch."""

    _watches: list[SilenceWatch] = field(default_factory=list, repr=False, compare=False)

    def connect(self, device: Device) -> None:
        """Join the other ranks through the device's backend (gloo, nccl, hccl)."""
        if dist.is_initialized():
            return
        # The first optimizer imports the compiler. If that happens while there is a process group,
        # the compiler keeps a reference to it (torch 2.13), and the group's threads then outlive
        # `disconnect` and abort the process at exit about once in three runs.
        importlib.import_module("torch._dynamo")
        dist.init_process_group(
            device.distributed_backend,
            timeout=TIMEOUT,
            rank=self.rank,
            world_size=self.world,
            device_id=device.group_device,
        )

    def disconnect(self) -> None:
        """See `Ranks.disconnect`."""
        for watch in self._watches:
            watch.stop()
        if dist.is_initialized():
            # A gloo thread that has just finished an exchange needs the interpreter lock to release
            # its tensors. If the group were destroyed at that moment, the two would deadlock.
            time.sleep(0.2)
            dist.destroy_process_group()

    def watch(self, advice: Callable[[], str]) -> None:
        """See `Ranks.watch`; on a single machine, torchrun itself watches the processes."""
        place = self._place
        if place is None or place.nodes == 1:
            return
        watch = SilenceWatch(place, advice)
        self._watches.append(watch)
        self.wait()
        watch.start()

    def loss_in(self, error: Exception) -> str:
        """See `Ranks.loss_in`."""
        text = str(error)
        if not isinstance(error, dist.DistError) and not (
            isinstance(error, RuntimeError) and _FROM_GROUP.search(text)
        ):
            return ""
        reason = _CUT_OFF.search(text)
        if reason is None:
            return ""
        if self._place is not None and not self._place.answers:
            return store_lost(self._place)
        return f"another rank is lost ({reason[0].lower()})"

    @property
    def _place(self) -> Place | None:
        place = announced_place(os.environ)
        # Further machines run only spares, which send no heartbeats.
        nodes = -(-self.world // self.local_world)
        return place and replace(place, nodes=min(place.nodes, nodes))

    def wrap(self, call: nn.Module, objective: Objective, device: Device) -> nn.Module:
        """The objective with its gradients averaged over the ranks.

        Parameters that another objective trains are ignored: they get no gradient to exchange
        here, and waiting for one would hang. Buffers are not broadcast in every forward pass: the
        first rank's batch-norm averages are sent before they are scored or saved.
        """
        trained = {id(parameter) for parameter in objective.trained.parameters()}
        ignored = [name for name, value in call.named_parameters() if id(value) not in trained]
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(call, ignored)
        with warnings.catch_warnings():
            # The replacement in torch 2.13 does not exist in 2.6.
            warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
            return DistributedDataParallel(
                call, device_ids=device.parallel_ids, broadcast_buffers=False
            )

    def accumulating(self, call: nn.Module, *, last: bool) -> AbstractContextManager[None]:
        """See `Ranks.accumulating`."""
        if last or not isinstance(call, DistributedDataParallel):
            return nullcontext()
        return call.no_sync()

    def maximum(self, value: Tensor) -> Tensor:
        """See `Ranks.maximum`."""
        dist.all_reduce(value, op=dist.ReduceOp.MAX)
        return value

    def mean(self, value: Tensor) -> Tensor:
        """See `Ranks.mean`."""
        dist.all_reduce(value, op=dist.ReduceOp.SUM)
        value /= self.world
        return value

    def mean_weights(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """See `Ranks.mean_weights`."""
        return super().mean_weights({name: weight.clone() for name, weight in weights.items()})

    def sums(self, sums: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """See `Ranks.sums`."""
        gathered = self._gathered_by_name(sums)
        return {name: torch.stack(values).sum(dim=0) for name, values in gathered.items()}

    def rows(self, rows: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """See `Ranks.rows`."""
        gathered = self._gathered_by_name(rows)
        return {name: torch.cat(values) for name, values in gathered.items()}

    def texts(self, texts: Sequence[str]) -> list[str]:
        """See `Ranks.texts`."""
        return list(dict.fromkeys(chain(*self._gathered(list(texts)))))

    def shared_text(self, text: str) -> str:
        """See `Ranks.shared_text`."""
        texts: list[str] = [text]
        dist.broadcast_object_list(texts, src=0)
        return texts[0]

    def share_buffers(self, model: nn.Module) -> None:
        """See `Ranks.share_buffers`."""
        for buffer in model.buffers():
            dist.broadcast(buffer, src=0)

    def wait(self) -> None:
        """See `Ranks.wait`."""
        dist.barrier()

    def agreement(self, size: int) -> Agreement:
        """See `Ranks.agreement`."""
        return _LateAgreement(size)

    def _gathered_by_name(self, tensors: Mapping[str, Tensor]) -> dict[str, list[Tensor]]:
        """The tensors of the ranks that have one of this name, in rank order."""
        gathered: dict[str, list[Tensor]] = {}
        # Sent as objects, so that a rank without tensors need not know the names.
        for name, tensor in chain(*(each.items() for each in self._gathered(dict(tensors)))):
            gathered.setdefault(name, []).append(tensor)
        return gathered

    def _gathered(self, content: T) -> list[T]:
        contents: list[T] = [content] * self.world
        dist.all_gather_object(contents, content)
        return contents


class _LateAgreement(Agreement):
    """An agreement that is one step late.

    A rank that must stop, or by whose clock a checkpoint is due, cannot act alone: the others would
    wait for it in the next all-reduce. The exchange of step n runs on the CPU during step n and is
    read at step n + 1, so no rank waits for it.
    """

    def __init__(self, size: int) -> None:
        self._values = torch.zeros(size, dtype=torch.int32)
        self._work: dist.Work | None = None
        self._group = dist.new_group(backend="gloo", timeout=TIMEOUT)

    def exchange(self, values: Sequence[int]) -> list[int]:
        """Contribute this rank's values; returns the maxima of the previous step."""
        self.finish()
        agreed: list[int] = self._values.tolist()
        self._values.copy_(torch.tensor(values, dtype=torch.int32))
        self._work = dist.all_reduce(
            self._values, op=dist.ReduceOp.MAX, group=self._group, async_op=True
        )
        return agreed

    def finish(self) -> None:
        """See `Agreement.finish`."""
        if self._work is not None:
            self._work.wait()
            self._work = None
