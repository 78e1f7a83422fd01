"""Requests to a store: list, read ranges, write with and without a condition.

obstore retries failed requests itself. Requests that it gives up on, and responses of the wrong
length, are retried here until `JUMAR_STORE_PATIENCE` seconds have passed. obstore's threads do not
survive a fork: in a forked process every call would hang, so it is rejected (see `ranged.py`).
"""

import os
import random
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

from jumar.ground.errors import UserError
from jumar.stores.answers import (
    ConditionFailed,
    NoSuchObject,
    StoredObject,
    StoreError,
    UnsupportedRequest,
)
from jumar.stores.connection import connection, credentials, without_secrets
from jumar.stores.location import Location

T = TypeVar("T")

PATIENCE_VARIABLE = "JUMAR_STORE_PATIENCE"
_PATIENCE_S = 60.0
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.1, 5.0
_REQUEST_TIMEOUT_S = 60
_CREDENTIALS_LIFETIME = timedelta(minutes=10)
"""Interval after which credentials are read again."""
_used_in: set[int] = set()
"""Ids of processes that started obstore's threads: this one, or one that it was forked from."""


class _WrongLength(Exception):
    """A response is shorter or longer than requested."""


_FINAL_STATUS: Mapping[str, type[StoreError]] = {
    "401": StoreError,
    "403": StoreError,
    "404": NoSuchObject,
    "405": UnsupportedRequest,
    "501": UnsupportedRequest,
}


def is_usable_here() -> bool:
    """Return whether obstore works in this process, which must not be forked from one using it."""
    return not _used_in or os.getpid() in _used_in


class Client:
    """Access to the objects of one bucket.

    Args:
        bucket: Any location in the bucket.

    Raises:
        UserError: obstore is not installed, or there are no credentials or no endpoint.
    """

    def __init__(self, bucket: Location) -> None:
        self._bucket = Location(scheme=bucket.scheme, bucket=bucket.bucket)
        self._store = _open(self._bucket)
        self.has_conditions = True
        """Whether the store supports conditional writes; false once it has rejected one."""

    def head(self, location: Location) -> StoredObject:
        """Return an object's metadata.

        Raises:
            NoSuchObject: It does not exist.
            StoreError: The store does not respond, or rejects the request.
        """
        import obstore

        return _stored(self._bucket, self._with_retries(location, obstore.head, location.key))

    def list(self, location: Location) -> list[StoredObject]:
        """List the objects whose keys begin with the location's key and a slash, sorted by key.

        Raises:
            StoreError: The store does not respond, or rejects the request.
        """
        import obstore

        def list_objects(store: Any) -> list[StoredObject]:
            items = obstore.list(store, prefix=location.key or None).collect()
            return [_stored(self._bucket, item) for item in items]

        return sorted(
            self._with_retries(location, list_objects), key=lambda item: item.location.key
        )

    def read(self, stored: StoredObject, start: int, end: int) -> bytes:
        """Read the bytes of an object from `start` to before `end`.

        Raises:
            ConditionFailed: The object has changed since it was listed.
            StoreError: The store does not respond, rejects the request, or sends the wrong number
                of bytes.
        """
        import obstore

        if end <= start:
            return b""

        def get_range(store: Any) -> bytes:
            options: Any = {"range": (start, end)}
            if stored.e_tag:
                options["if_match"] = stored.e_tag
            result = obstore.get(store, stored.location.key, options=options)
            if stored.e_tag and (result.meta["e_tag"] or stored.e_tag) != stored.e_tag:
                raise obstore.exceptions.PreconditionError("the ETag differs")
            content = bytes(result.bytes())
            if len(content) != end - start:
                raise _WrongLength(f"{len(content)} bytes instead of {end - start}")
            return content

        return self._with_retries(stored.location, get_range)

    def read_small(self, location: Location) -> tuple[bytes, str]:
        """Return the content of a small object, and its ETag.

        Its size is requested first, to detect truncated responses.

        Raises:
            NoSuchObject: It does not exist.
            StoreError: The store does not respond, or rejects the request.
        """
        while True:
            stored_object = self.head(location)
            try:
                return self.read(stored_object, 0, stored_object.size), stored_object.e_tag
            except ConditionFailed:
                continue  # rewritten between the two requests

    def write(self, location: Location, content: bytes | Path) -> None:
        """Write an object, in parts if it is large, and check its size in the store.

        Args:
            location: Destination; an existing object is replaced.
            content: Bytes, or a file to read them from.

        Raises:
            OSError: The file cannot be read.
            StoreError: The store does not respond, or rejects the request.
        """
        import obstore

        with BytesIO(content) if isinstance(content, bytes) else content.open("rb") as file:
            size = file.seek(0, os.SEEK_END)

            def put(store: Any) -> None:
                file.seek(0)
                obstore.put(store, location.key, file)
                stored_size = obstore.head(store, location.key)["size"]
                if stored_size != size:
                    raise _WrongLength(f"{stored_size} bytes in the store instead of {size}")

            self._with_retries(location, put)

    def write_if(self, location: Location, content: bytes, *, e_tag: str | None) -> str:
        """Write a small object if the stored version is still the known one.

        If a response is lost, the request counts as successful if the stored content matches.

        Args:
            location: Destination.
            content: The bytes; they should identify their writer, or two writers of the same bytes
                would both succeed.
            e_tag: The version to replace; None if the object must not exist.

        Returns:
            The new version's ETag.

        Raises:
            ConditionFailed: There is another version.
            StoreError: The store does not respond, or rejects the request.
        """
        import obstore

        condition: Any = "create" if e_tag is None else {"e_tag": e_tag}

        def put(store: Any) -> str:
            mode: Any = condition if self.has_conditions else "overwrite"
            return obstore.put(store, location.key, content, mode=mode)["e_tag"] or ""

        try:
            return self._with_retries(location, put)
        except UnsupportedRequest:
            if not self.has_conditions:
                raise
            self.has_conditions = False
            return self._with_retries(location, put)
        except ConditionFailed:
            try:
                existing, stored_tag = self.read_small(location)
            except NoSuchObject:
                existing, stored_tag = b"", ""
            if existing != content:
                raise
            return stored_tag

    def delete(self, location: Location) -> None:
        """Delete an object; a missing one counts as deleted."""
        import obstore

        def delete_object(store: Any) -> None:
            with suppress(FileNotFoundError):
                obstore.delete(store, location.key)

        self._with_retries(location, delete_object)

    def _with_retries(self, location: Location, call: Callable[..., T], *arguments: Any) -> T:
        """Return the result of a call, retrying it with growing delays."""
        import obstore

        if not is_usable_here():
            raise StoreError(
                "cannot be reached from a process that was forked from one that used a store",
                where=str(location),
                todo="Fetch what is needed before forking, or read ranges (jumar.stores.ranged).",
            )

        patience = seconds_of(PATIENCE_VARIABLE, _PATIENCE_S)
        wait, start_s = _FIRST_WAIT_S, time.monotonic()
        final_errors: Mapping[type[BaseException], type[StoreError]] = {
            FileNotFoundError: NoSuchObject,
            obstore.exceptions.AlreadyExistsError: ConditionFailed,
            obstore.exceptions.PreconditionError: ConditionFailed,
            obstore.exceptions.PermissionDeniedError: StoreError,
            obstore.exceptions.UnauthenticatedError: StoreError,
            obstore.exceptions.NotSupportedError: UnsupportedRequest,
            obstore.exceptions.InvalidPathError: StoreError,
        }
        while True:
            try:
                return call(self._store, *arguments)
            except (obstore.exceptions.BaseError, OSError, _WrongLength) as error:
                final_kinds = (
                    kind for raised, kind in final_errors.items() if isinstance(error, raised)
                )
                kind = next(final_kinds, _final_kind(error))
                if kind is not None:
                    raise kind(_error_message(kind, error, location), where=str(location)) from None
                elapsed_s = time.monotonic() - start_s
                if elapsed_s + wait > patience:
                    raise StoreError(
                        f"the store has not responded correctly for {elapsed_s:.0f} s: "
                        f"{_reason(error, location)}",
                        where=str(location),
                        todo="Check that the store is reachable from this machine, and try again "
                        f"({PATIENCE_VARIABLE}=SECONDS sets how long requests are retried).",
                    ) from None
            time.sleep(wait * random.uniform(0.5, 1.0))
            wait = min(2 * wait, _LONGEST_WAIT_S)


def client_of(location: Location) -> Client:
    """Return the client of a location's bucket; there is one for each bucket and process."""
    return _client(location.scheme, location.bucket, os.getpid())


@lru_cache(maxsize=64)
def _client(scheme: str, bucket: str, process: int) -> Client:
    del process
    return Client(Location(scheme=scheme, bucket=bucket))


def _open(bucket: Location) -> Any:
    try:
        from obstore.store import S3Store
    except ModuleNotFoundError:
        raise UserError(
            "paths of object stores need obstore, which is not installed",
            where=str(bucket),
            todo='pip install "jumar[stores]"',
        ) from None
    settings = connection(bucket)
    # Objects are deleted one by one: not all stores support batch deletion.
    options: dict[str, Any] = {"region": settings.region, "disable_bulk_delete": True}
    if settings.is_virtual:
        options["virtual_hosted_style_request"] = True
    if endpoint := settings.endpoint_of(bucket.bucket):
        # Both, since AWS_ENDPOINT_URL_S3 in the environment takes precedence over the first.
        options |= {"endpoint": endpoint, "aws_endpoint_url_s3": endpoint}
    if not settings.is_signed:
        options["skip_signature"] = True
    elif not _relies_on_role(bucket, settings.has_role):
        credentials(bucket)  # to report missing ones here, not in a request
        options["credential_provider"] = _Provider(bucket)
    _used_in.add(os.getpid())
    return S3Store(
        bucket.bucket,
        client_options={
            "allow_http": settings.endpoint.startswith("http://"),
            "timeout": timedelta(seconds=_REQUEST_TIMEOUT_S),
            "connect_timeout": timedelta(seconds=10),
        },
        retry_config={
            "max_retries": 4,
            "retry_timeout": timedelta(seconds=seconds_of(PATIENCE_VARIABLE, _PATIENCE_S)),
            "backoff": {
                "init_backoff": timedelta(milliseconds=100),
                "max_backoff": timedelta(seconds=2),
                "base": 2,
            },
        },
        **options,
    )


def _relies_on_role(bucket: Location, has_role: bool) -> bool:
    if not has_role:
        return False
    try:
        credentials(bucket)
    except UserError:
        return True
    return False


class _Provider:
    """Provides credentials to obstore, so that they are never part of a store or its repr."""

    def __init__(self, bucket: Location) -> None:
        self._bucket = bucket

    def __call__(self) -> dict[str, Any]:
        keys = credentials(self._bucket)
        return {
            "access_key_id": keys.key,
            "secret_access_key": keys.secret,
            "token": keys.token,
            "expires_at": datetime.now(timezone.utc) + _CREDENTIALS_LIFETIME,
        }


def _stored(bucket: Location, meta: Any) -> StoredObject:
    location = Location(scheme=bucket.scheme, bucket=bucket.bucket, key=meta["path"])
    return StoredObject(location=location, size=int(meta["size"]), e_tag=meta["e_tag"] or "")


def seconds_of(variable: str, default: float) -> float:
    """Return the seconds in an environment variable, or a default.

    Raises:
        UserError: The variable's value is not a number.
    """
    text = os.environ.get(variable, "")
    try:
        return float(text) if text else default
    except ValueError:
        raise UserError(f"'{text}' is not a number of seconds", where=variable) from None


def _final_kind(error: BaseException) -> type[StoreError] | None:
    """Return the error type for a permanent HTTP error; None for any other error.

    For some requests, such as lists, obstore raises no specific exceptions.
    """
    status = re.search(r"status code: (\d{3})\b", str(error))
    return _FINAL_STATUS.get(status[1]) if status else None


def _error_message(kind: type[StoreError], error: BaseException, location: Location) -> str:
    if kind is NoSuchObject:
        return "there is no such object or bucket"
    if kind is ConditionFailed:
        return "the object is not the known version: it was written by another process"
    return f"the store rejects the request: {_reason(error, location)}"


def _reason(error: BaseException, location: Location) -> str:
    """Return the first line of obstore's message without address, request and secrets."""
    text = str(error).partition("Debug source")[0]
    status = re.search(r"status code: (\d{3}[^:<\n]*)", text)
    code = re.search(r"<Code>([\w.-]{1,60})</Code>", text)
    if status:
        message = status[1].strip() + (f" ({code[1]})" if code else "")
    else:
        lines = text.strip().splitlines()
        message = re.sub(r"\b\w+://\S+", "the store", lines[0] if lines else type(error).__name__)
        parts = [part.strip() for part in message.split(" - ") if part.strip()]
        message = parts[-1] if parts else message
    return without_secrets(message, location)[:300]
