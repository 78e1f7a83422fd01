"""Tracking with SwanLab."""

import importlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from jumar.training.trackers.services import PROJECT, LibraryService

_ID_LENGTH = 21


class SwanLabService(LibraryService):
    """A run of SwanLab, online or, with `SWANLAB_MODE=offline`, in the run directory."""

    def begin(
        self, run_id: str | None, name: str, settings: Mapping[str, object], folder: Path
    ) -> str:
        """See `Service.begin`."""
        swanlab = importlib.import_module("swanlab")
        run_id = run_id or secrets.token_hex(_ID_LENGTH)[:_ID_LENGTH]
        self._run = swanlab.init(
            project=os.environ.get("SWANLAB_PROJ_NAME") or PROJECT,
            name=name,
            id=run_id,
            resume="allow",
            config=dict(settings),
            log_dir=str(folder / "swanlab"),
            mode=os.environ.get("SWANLAB_MODE") or None,
        )
        return run_id
