"""A location in an object store: `s3://bucket/key` or `obs://bucket/key`."""

from dataclasses import dataclass, replace
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.paths import store_url

_UNREADABLE_PARTS = (".", "..")


@dataclass(frozen=True, kw_only=True)
class Location:
    """A bucket, and the key of an object or a prefix of keys in it.

    Attributes:
        scheme: `s3` or `obs`.
        bucket: The bucket's name.
        key: The key without slashes at its ends; empty for the whole bucket.
    """

    scheme: str
    bucket: str
    key: str = ""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.key}".rstrip("/")

    @property
    def name(self) -> str:
        """The last part of the key; the bucket's name without one."""
        return self.key.rpartition("/")[2] or self.bucket

    @property
    def parent(self) -> "Location":
        """The parent location."""
        return replace(self, key=self.key.rpartition("/")[0])

    def below(self, name: str) -> "Location":
        """A location within this one."""
        return replace(self, key=f"{self.key}/{name}" if self.key else name)


def parse(url: str | Path) -> Location:
    """The location that a URL names.

    Raises:
        UserError: It names no bucket, has an empty part or one that means another folder, or holds
            credentials, which are then not shown.
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
    if any(part in _UNREADABLE_PARTS or not part for part in key.split("/")) and key:
        raise UserError(
            "has an empty part, or '.' or '..' as one",
            where=text,
            todo="Object keys are not folders: write the key as the store lists it.",
        )
    return Location(scheme=scheme, bucket=bucket, key=key)


def _without_credentials(text: str) -> str:
    scheme, separator, rest = text.partition("://")
    return f"{scheme}{separator}***@{rest.rpartition('@')[2]}" if "@" in rest else text
