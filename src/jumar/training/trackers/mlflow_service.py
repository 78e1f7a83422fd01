"""Tracking with MLflow."""

import importlib
import os
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from jumar.training.trackers.services import PROJECT, Service

_MAX_PARAMETERS = 100
"""Maximum number of parameters in one request."""
_LONGEST_VALUE = 6000


class MlflowService(Service):
    """A run on an MLflow server, or in the database that `MLFLOW_TRACKING_URI` names."""

    def __init__(self) -> None:
        self._client: Any = None
        self._entities: Any = None
        self._run_id = ""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mlflow")
        self._sent: deque[Future[Any]] = deque()

    def begin(
        self, run_id: str | None, name: str, settings: Mapping[str, object], folder: Path
    ) -> str:
        """See `Service.begin`."""
        del folder
        # By default MLflow retries an unresponsive address for five minutes.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        self._entities = importlib.import_module("mlflow.entities")
        self._client = importlib.import_module("mlflow").MlflowClient()
        if run_id is not None:
            self._client.update_run(run_id, status="RUNNING")
            self._run_id = run_id
            return run_id
        project = os.environ.get("MLFLOW_EXPERIMENT_NAME") or PROJECT
        experiment = self._client.get_experiment_by_name(project)
        number = experiment.experiment_id if experiment else self._client.create_experiment(project)
        self._run_id = self._client.create_run(number, run_name=name).info.run_id
        parameters = [
            self._entities.Param(field, str(value)[:_LONGEST_VALUE])
            for field, value in settings.items()
        ]
        for start in range(0, len(parameters), _MAX_PARAMETERS):
            batch = parameters[start : start + _MAX_PARAMETERS]
            self._client.log_batch(self._run_id, params=batch)
        return self._run_id

    def send(self, step: int, numbers: Mapping[str, float]) -> None:
        """See `Service.send`; a thread waits for the server, and the next call raises its error."""
        while self._sent and self._sent[0].done():
            self._sent.popleft().result()
        time_ms = int(1000 * time.time())
        metrics = [
            self._entities.Metric(key, value, time_ms, step) for key, value in numbers.items()
        ]
        self._sent.append(
            self._thread.submit(self._client.log_batch, self._run_id, metrics=metrics)
        )

    def end(self) -> None:
        """See `Service.end`."""
        self._thread.shutdown()
        for request in self._sent:
            request.result()
        self._client.set_terminated(self._run_id)
