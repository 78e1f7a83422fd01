"""The content of a rank table of any version."""

from dataclasses import dataclass, field
from typing import Literal

Version = Literal["0", "1.0", "1.2", "2.0"]
"""`0` is the first version, which has no number."""


@dataclass(frozen=True, kw_only=True)
class RankedDevice:
    """A device with its rank.

    Attributes:
        rank: Counted from 0.
        device_id: Its number in its server, as a string.
        device_ip: Its address; empty in 2.0, whose devices have addresses of another kind.
        super_device_id: Its number in its super pod; empty if there is none.
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
        addresses: Its other addresses, if the table has them.
    """

    server_id: str
    devices: tuple[RankedDevice, ...]
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RankTable:
    """A rank table.

    Attributes:
        version: Its version.
        servers: In the order of the table.
        super_pods: For 1.2, the servers of each super pod.
        faults: Violations of the format, found while reading: wrong counts, numbers instead of
            strings.
    """

    version: Version
    servers: tuple[Server, ...]
    super_pods: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    faults: tuple[str, ...] = ()

    @property
    def devices(self) -> list[RankedDevice]:
        """All devices, in the order of the table."""
        return [device for server in self.servers for device in server.devices]
