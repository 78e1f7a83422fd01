"""Training with a changing number of ranks: `torchrun --nnodes MIN:MAX --max-restarts N`.

torchrun restarts all ranks when a rank or a machine is lost or comes back. This module keeps the
run's global batch: the largest number of ranks that divides it trains, and the others wait as
spares.
"""

# Torch documents TCPStore under this name but does not export it.
# pyright: reportPrivateImportUsage=false

import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch.distributed as dist

from jumar.training.parallel.announced import announced_ranks, is_elastic
from jumar.training.parallel.silence import Place, announced_place
from jumar.training.parallel.spare import release_spares, sharing, spares_line, wait_as_spare
from jumar.training.run_directory import RunDirectory, recorded_recipe

_OLD_STORE = (
    "note: after a restart torchrun may have the ranks meet in the store of an earlier round, and "
    "fail; set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 where it is started"
)


@dataclass(frozen=True, kw_only=True)
class Share:
    """The division of torchrun's ranks into training ranks and spares.

    Attributes:
        is_spare: Whether this rank does not train.
        spares: Number of ranks that do not train.
        line: A message about spares; empty if there are none.
    """

    is_spare: bool = False
    spares: int = 0
    line: str = ""
    place: Place | None = None

    def wait(self) -> int:
        """Wait as a spare.

        Returns:
            The exit code.

        Raises:
            UserError: The ranks that train are gone.
        """
        assert self.place is not None
        wait_as_spare(self.place)
        return 0

    @contextmanager
    def meeting(self) -> Generator[Callable[[int], None]]:
        """Keep the store of the spares open; yields a function that sends them the exit code."""
        place = self.place
        if place is None or self.is_spare:
            yield lambda _: None
            return
        # A single training rank has no process group, so it must open the store itself.
        agent_hosts = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        hosts_store = os.environ["WORLD_SIZE"] == "1" and not agent_hosts
        store = (
            dist.TCPStore(place.host, place.port, None, is_master=True, wait_for_workers=False)
            if hosts_store
            else None
        )
        is_first = os.environ["RANK"] == "0"
        hosted_for = self.spares if hosts_store else 0
        yield (
            lambda code: (
                release_spares(place, hosted_for=hosted_for) if is_first and code == 0 else None
            )
        )
        del store


def share_ranks(run_dir: Path | None) -> Share:
    """Decide which ranks train, and reduce WORLD_SIZE to their number.

    This is done only if torchrun restarts ranks: otherwise a number of ranks that does not divide
    the global batch is reported as an error before any rank waits.

    Args:
        run_dir: The run's directory, if it was named.
    """
    place = announced_place(os.environ)
    if not is_elastic() or place is None:
        return Share()
    ranks = announced_ranks()
    if ranks.is_first and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        sys.stderr.write(f"jumar: {_OLD_STORE}\n")
    run = RunDirectory(run_dir) if run_dir else None
    if run is None or not run.exists:
        return Share()
    recorded = recorded_recipe(run.read_recipe(), where=str(run.recipe))
    training: Mapping[str, Any] = recorded.settings.get("training") or {}
    micro_batch = training.get("micro_batch_size", 1) if training.get("sums") == "exact" else 1
    count = sharing(ranks.world, recorded.global_batch, micro_batch) if recorded.global_batch else 0
    if count in (0, ranks.world):
        return Share()
    os.environ["WORLD_SIZE"] = str(count)
    return Share(
        is_spare=ranks.rank >= count,
        spares=ranks.world - count,
        line=spares_line(ranks.world, count, recorded.global_batch),
        place=place,
    )
