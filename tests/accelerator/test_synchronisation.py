"""A step does not wait for the device: nothing is read back from it."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from jumar.devices.contract import Device
from jumar.recipes.registry import create_recipe
from jumar.runs.context import ChosenRun, open_context
from jumar.runs.observed_steps import observing_trainer
from jumar.settings import override
from jumar.training.run_directory import RunDirectory
from tests.accelerator.small_images import FULL, HALF_PRECISION, LOW, NAME
from tests.read_backs import ReadBacks

pytestmark = pytest.mark.accelerator
SCALED = "precision.loss_scale=exponential"
SETTINGS = {
    "float32": [FULL, "precision.loss_scale=none"],
    "bfloat16, clipped": [LOW, "precision.loss_scale=none", "training.clip=global_norm"],
    "float16 with a loss scale": [HALF_PRECISION, SCALED],
    "float16 in parts": [HALF_PRECISION, SCALED, "training.micro_batch_size=4"],
}


@contextmanager
def refusing_to_wait(device: Device, step: Callable[[], int]) -> Generator[None]:
    """Fails where the host waits: the driver says so, or else the operators that read back."""
    debugged = getattr(torch.get_device_module(device.kind), "set_sync_debug_mode", None)
    if debugged is not None:
        debugged("error")
        try:
            yield
        finally:
            debugged("default")
        return
    reads = ReadBacks(device.kind, step)
    with reads:
        yield
    assert reads.seen == []


@pytest.mark.parametrize("name", SETTINGS)
def test_step_does_not_synchronise(device: Device, images: Path, tmp_path: Path, name: str) -> None:
    if device.reads_at_once:
        pytest.skip(f"{device.kind} has finished whatever it returns")
    recipe = override(create_recipe(NAME), [f"data.path={images}", *SETTINGS[name]])
    chosen = ChosenRun(run=RunDirectory(tmp_path / "run"), recipe=recipe, name=NAME, imports=())
    with open_context(lambda _: chosen, device=str(device), writes=False) as context:
        trainer = observing_trainer(context, context.build_task(recipe), chosen.plan, [])
        # The first two steps choose kernels and allocate.
        with trainer.at_step(2, None) as (stepper, batch):
            device.synchronize()
            with refusing_to_wait(device, lambda: trainer.state.step):
                for _ in range(3):
                    stepper.step(batch)
    assert trainer.state.step == 5


def test_synchronisation_is_detected(device: Device) -> None:
    """Otherwise the tests above would pass for nothing."""
    if device.reads_at_once:
        pytest.skip(f"{device.kind} has finished whatever it returns")
    value = torch.ones(3, device=device.torch)
    with pytest.raises((RuntimeError, AssertionError)), refusing_to_wait(device, lambda: 0):
        value.sum().item()
