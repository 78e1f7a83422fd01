"""The place selected by `--on` and `--jobs`."""

from collections.abc import Callable, Sequence

from jumar.experiments.placing.contract import Place
from jumar.experiments.placing.this_machine import ThisMachine
from jumar.ground.errors import UserError
from jumar.ground.machine import checked_count, usable_cores

HERE = "this"
_RAY = "ray"


def open_place(
    on: str, *, jobs: int | None, device: str, say: Callable[[str], None] = print
) -> Place:
    """Open the place selected by a command's options.

    Args:
        on: `this`, `ray` or `ray://HOST:PORT`.
        jobs: Maximum number of parallel runs; None for one on this machine, and as many as fit on a
            cluster.
        device: The value of --device.
        say: Prints a line.

    Raises:
        UserError: There is no such place, it cannot be reached, or the number is not valid.
    """
    check_place(on, jobs=jobs)
    if on != HERE:
        from jumar.experiments.placing.ray_cluster import RayCluster

        return RayCluster(on, device=device, at_once=jobs or 0, say=say)
    at_once = jobs or 1
    devices = (device,) if at_once == 1 else _devices(device)
    if at_once > usable_cores():
        say(f"--jobs {at_once}: more runs than the {usable_cores()} usable cores")
    return ThisMachine(at_once=at_once, devices=devices, say=say)


def check_place(on: str, *, jobs: int | None) -> None:
    """Check the options that select a place, without opening it.

    Args:
        on: As for `open_place`.
        jobs: As for `open_place`.

    Raises:
        UserError: There is no such place, or the number is not valid.
    """
    if jobs is not None and jobs < 1:
        raise UserError(f"cannot be {jobs}", where="--jobs", todo="Allowed: 1 or more.")
    if on == HERE:
        checked_count(jobs or 1, "processes", "--jobs")
    elif on != _RAY and not on.startswith(f"{_RAY}://"):
        raise UserError(
            f"unknown place '{on}'", where="--on", todo="Allowed: this, ray, ray://HOST:PORT."
        )


def _devices(device: str) -> Sequence[str]:
    """Return the devices for parallel runs: every card that the request allows."""
    from jumar.devices.registry import list_devices

    if ":" in device:
        return (device,)
    cards: dict[str, int] = {}
    for card in list_devices():
        if not card.on_host and device in ("auto", card.names.kind):
            cards[card.names.kind] = cards.get(card.names.kind, 0) + 1
    # `auto` prefers the kind that is listed first.
    for kind, count in cards.items():
        return [f"{kind}:{number}" for number in range(count)]
    return (device,)
