"""The content of a rank table of any version."""

from dataclasses import dataclass, field
from typing import Literal

Version = Literal["0", "1.0", "1.2", "2.0"]
"""`0` is the first version, which has no number."""


@dataclass(frozen=True, kw_only=True)
class RankedDevice:
    """A device with its rank.

    Attributes:
        rank: The rank, counted from 0.
        device_id: The number within the server, as a string.
        device_ip: The address; empty in 2.0, whose devices have other kinds of addresses.
        super_device_id: The number within the super pod; empty if there is none.
    """

    rank: int
    device_id: str
    device_ip: str = ""
    super_device_id: str = ""


@dataclass(frozen=True, kw_only=True)
class Server:
    """A machine with its devices.

    Attributes:
        server_id: The identifier, usually an address.
        addresses: Other addresses, if the table lists them.
    """

    server_id: str
    devices: tuple[RankedDevice, ...]
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RankTable:
    """A rank table.

    Attributes:
        version: The version of the format.
        servers: The servers, in the order of the table.
        super_pods: In 1.2, the servers of each super pod.
        faults: Violations of the format found while reading, such as incorrect counts or numbers
            instead of strings.
    """

    version: Version
    servers: tuple[Server, ...]
    super_pods: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    faults: tuple[str, ...] = ()

    @property
    def devices(self) -> list[RankedDevice]:
        """All devices, in the order of the table."""
        return [device for server in self.servers for device in server.devices]
