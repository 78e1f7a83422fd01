"""A location in an object store: `s3://bucket/key` or `obs://bucket/key`."""

from dataclasses import dataclass, replace
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.paths import store_url

_INVALID_PARTS = ("", ".", "..")


@dataclass(frozen=True, kw_only=True)
class Location:
    """A bucket, and the key of an object or a prefix of keys in it.

    Attributes:
        scheme: `s3` or `obs`.
        bucket: The bucket's name.
        key: The key without leading or trailing slashes; empty for the whole bucket.
    """

    scheme: str
    bucket: str
    key: str = ""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.key}".rstrip("/")

    @property
    def name(self) -> str:
        """The last part of the key; the bucket's name if the key is empty."""
        return self.key.rpartition("/")[2] or self.bucket

    @property
    def parent(self) -> "Location":
        """The parent location."""
        return replace(self, key=self.key.rpartition("/")[0])

    def below(self, name: str) -> "Location":
        """Return a location within this one."""
        return replace(self, key=f"{self.key}/{name}" if self.key else name)


def parse(url: str | Path) -> Location:
    """Parse the URL of a location.

    Raises:
        UserError: It has no bucket, its key has an empty, `.` or `..` part, or it contains
            credentials, which the message hides.
    """
    text = store_url(url)
    if text is None:
        raise UserError(
            "is not a path of an object store",
            where=_without_credentials(str(url)),
            todo="Write s3://BUCKET/PATH or obs://BUCKET/PATH.",
        )
    scheme, _, rest = text.partition("://")
    bucket, _, key = rest.partition("/")
    if "@" in bucket or ":" in bucket:
        raise UserError(
            "a path of an object store must not contain credentials or a port",
            where=_without_credentials(text),
            todo="Write s3://BUCKET/PATH; credentials and endpoint come from the environment.",
        )
    key = key.strip("/")
    if key and any(part in _INVALID_PARTS for part in key.split("/")):
        raise UserError(
            "has an empty part, '.' or '..' in its key",
            where=text,
            todo="Keys are not folder paths: write the key as the store lists it.",
        )
    return Location(scheme=scheme, bucket=bucket, key=key)


def _without_credentials(text: str) -> str:
    scheme, separator, rest = text.partition("://")
    return f"{scheme}{separator}***@{rest.rpartition('@')[2]}" if "@" in rest else text
