"""Tracking with Weights & Biases."""

import importlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from jumar.training.trackers.services import PROJECT, LibraryService


class WandbService(LibraryService):
    """A run of Weights & Biases, online or, with `WANDB_MODE=offline`, in the run directory."""

    def begin(
        self, run_id: str | None, name: str, settings: Mapping[str, object], folder: Path
    ) -> str:
        """See `Service.begin`."""
        wandb = importlib.import_module("wandb")
        run_id = run_id or secrets.token_hex(4)
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT") or PROJECT,
            id=run_id,
            name=name,
            resume="allow",
            config=dict(settings),
            dir=str(folder),
            # What the terminal shows stays in log.txt.
            settings=wandb.Settings(console="off", silent=True),
        )
        return run_id
