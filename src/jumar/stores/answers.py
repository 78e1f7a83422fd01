"""What a store answers: an object as it lists it, and the ways in which it refuses."""

from dataclasses import dataclass

from jumar.ground.errors import UserError
from jumar.stores.location import Location


class StoreError(UserError):
    """A store did not do what was asked, however often."""


class Absent(StoreError):
    """There is no such object, or no such bucket."""


class Changed(StoreError):
    """A condition of a request does not hold: the object is another one by now, or exists."""


class Unsupported(StoreError):
    """The store knows no such request."""


@dataclass(frozen=True, kw_only=True)
class StoredObject:
    """An object as the store lists it.

    Attributes:
        location: Where it is.
        size: Its bytes.
        e_tag: What the store calls this version of it; not a hash of the content where it was
            uploaded in parts or is encrypted.
    """

    location: Location
    size: int
    e_tag: str
