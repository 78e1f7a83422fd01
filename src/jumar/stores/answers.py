"""Answers of a store: listed objects, and errors."""

from dataclasses import dataclass

from jumar.ground.errors import UserError
from jumar.stores.location import Location


class StoreError(UserError):
    """A store's request failed, even after retries."""


class Absent(StoreError):
    """There is no such object, or no such bucket."""


class Changed(StoreError):
    """A condition of a request does not hold: the object has changed, or exists."""


class Unsupported(StoreError):
    """The store does not support the request."""


@dataclass(frozen=True, kw_only=True)
class StoredObject:
    """An object as listed by the store.

    Attributes:
        location: Where it is.
        size: Its bytes.
        e_tag: The store's identifier of this version; not a hash of the content where it was
            uploaded in parts or is encrypted.
    """

    location: Location
    size: int
    e_tag: str
