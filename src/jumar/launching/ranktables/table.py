"""What a rank table says, in any of its forms."""

from dataclasses import dataclass, field
from typing import Literal

Version = Literal["0", "1.0", "1.2", "2.0"]
"""`0` is the first form, which has no version."""


@dataclass(frozen=True, kw_only=True)
class RankedDevice:
    """A device with its rank.

    Attributes:
        rank: From 0 on.
        device_id: Its number in its server, as a text.
        device_ip: Its address; empty in 2.0, whose devices have addresses of another kind.
        super_device_id: Its number in its super pod; empty where there is none.
    """

    rank: int
    device_id: str
    device_ip: str = ""
    super_device_id: str = ""


@dataclass(frozen=True, kw_only=True)
class Server:
    """A machine with its devices.

    Attributes:
        server_id: Its identity: usually an address.
        addresses: Other addresses of it, where the table has them.
    """

    server_id: str
    devices: tuple[RankedDevice, ...]
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RankTable:
    """A rank table.

    Attributes:
        version: Its form.
        servers: In the order of the table.
        super_pods: Of 1.2, the servers of each super pod.
        faults: What contradicts the form itself, found while it was read: wrong counts, numbers
            where texts belong.
    """

    version: Version
    servers: tuple[Server, ...]
    super_pods: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    faults: tuple[str, ...] = ()

    @property
    def devices(self) -> list[RankedDevice]:
        """All devices, in the order of the table."""
        return [device for server in self.servers for device in server.devices]
