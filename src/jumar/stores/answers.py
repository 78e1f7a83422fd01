"""Results of requests to a store: listed objects, and errors."""

from dataclasses import dataclass

from jumar.ground.errors import UserError
from jumar.stores.location import Location


class StoreError(UserError):
    """A store's request failed, even after retries."""


class NoSuchObject(StoreError):
    """The object or the bucket does not exist."""


class ConditionFailed(StoreError):
    """The condition of a request is not met: the object has changed, or already exists."""


class UnsupportedRequest(StoreError):
    """The store does not support the request."""


@dataclass(frozen=True, kw_only=True)
class StoredObject:
    """An object as listed by the store.

    Attributes:
        location: Its location.
        size: Its size in bytes.
        e_tag: The store's identifier of this version; not a hash of the content if the object was
            uploaded in parts or is encrypted.
    """

    location: Location
    size: int
    e_tag: str
