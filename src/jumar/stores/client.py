"""Requests to a store: list, read ranges, write, with and without a condition.

obstore repeats a failed request by itself; what it gives up, and answers of a wrong length, are
repeated here until `JUMAR_STORE_PATIENCE` seconds have passed. Its threads do not survive a fork:
in a forked process every call would hang, so it is refused (see `ranged.py`).
"""

import os
import random
import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

from jumar.ground.errors import UserError
from jumar.stores.answers import Absent, Changed, StoredObject, StoreError, Unsupported
from jumar.stores.connection import connection, credentials, without_secrets
from jumar.stores.location import Location

T = TypeVar("T")

PATIENCE_VARIABLE = "JUMAR_STORE_PATIENCE"
_PATIENCE_S = 60.0
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.1, 5.0
_REQUEST_S = 60
_KEPT_FOR = timedelta(minutes=10)
"""Interval after which credentials are read again."""
_used_in: set[int] = set()
"""Processes in which obstore's threads run: this one, or the one it was forked from."""


class _WrongLength(Exception):
    """An answer is shorter or longer than requested."""


_FINAL_STATUS: Mapping[str, type[StoreError]] = {
    "401": StoreError,
    "403": StoreError,
    "404": Absent,
    "405": Unsupported,
    "501": Unsupported,
}


def is_usable_here() -> bool:
    """Whether obstore works in this process: not if it was forked from one that used it."""
    return not _used_in or os.getpid() in _used_in


class Client:
    """The objects of one bucket.

    Args:
        bucket: A location in it.

    Raises:
        UserError: obstore is not installed, or there are no credentials or no endpoint.
    """

    def __init__(self, bucket: Location) -> None:
        self._bucket = Location(scheme=bucket.scheme, bucket=bucket.bucket)
        self._store = _open(self._bucket)
        self.has_conditions = True
        """Whether `write_if` can rely on the store; false once it has refused a condition."""

    def head(self, location: Location) -> StoredObject:
        """An object without its content.

        Raises:
            Absent: There is none.
            StoreError: The store does not answer, or refuses.
        """
        import obstore

        return _stored(self._bucket, self._tried(location, obstore.head, location.key))

    def list(self, location: Location) -> list[StoredObject]:
        """The objects whose keys begin with a location's and a slash, sorted by key.

        Raises:
            StoreError: The store does not answer, or refuses.
        """
        import obstore

        def listed(store: Any) -> list[StoredObject]:
            items = obstore.list(store, prefix=location.key or None).collect()
            return [_stored(self._bucket, item) for item in items]

        return sorted(self._tried(location, listed), key=lambda item: item.location.key)

    def read(self, stored: StoredObject, start: int, end: int) -> bytes:
        """The bytes of an object from `start` to before `end`.

        Raises:
            Changed: The object has changed since it was listed.
            StoreError: The store does not answer, refuses, or sends another number of bytes.
        """
        import obstore

        if end <= start:
            return b""

        def got(store: Any) -> bytes:
            options: Any = {"range": (start, end)}
            if stored.e_tag:
                options["if_match"] = stored.e_tag
            result = obstore.get(store, stored.location.key, options=options)
            if stored.e_tag and (result.meta["e_tag"] or stored.e_tag) != stored.e_tag:
                raise obstore.exceptions.PreconditionError("it has another ETag")
            content = bytes(result.bytes())
            if len(content) != end - start:
                raise _WrongLength(f"{len(content)} bytes instead of {end - start}")
            return content

        return self._tried(stored.location, got)

    def read_small(self, location: Location) -> tuple[bytes, str]:
        """The whole content of a small object, and its ETag.

        Its size is requested first, to detect truncated answers.

        Raises:
            Absent: There is none.
            StoreError: The store does not answer, or refuses.
        """
        while True:
            stored_object = self.head(location)
            try:
                return self.read(stored_object, 0, stored_object.size), stored_object.e_tag
            except Changed:
                continue  # rewritten between the two requests

    def write(self, location: Location, content: bytes | Path) -> None:
        """Write an object, in parts if it is large, and check its size in the store.

        Args:
            location: Destination; an existing object is replaced.
            content: Bytes, or a file with them.

        Raises:
            OSError: The file cannot be read.
            StoreError: The store does not answer, or refuses.
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

            self._tried(location, put)

    def write_if(self, location: Location, content: bytes, *, e_tag: str | None) -> str:
        """Write a small object if it is still the known version.

        A request whose answer was lost counts as done if the stored content matches.

        Args:
            location: Where.
            content: The bytes; they should name their writer, or two writers of the same bytes
                would both succeed.
            e_tag: The version to replace; None if there must be none.

        Returns:
            The new version's ETag.

        Raises:
            Changed: There is another version.
            StoreError: The store does not answer, or refuses.
        """
        import obstore

        condition: Any = "create" if e_tag is None else {"e_tag": e_tag}

        def put(store: Any) -> str:
            mode: Any = condition if self.has_conditions else "overwrite"
            return obstore.put(store, location.key, content, mode=mode)["e_tag"] or ""

        try:
            return self._tried(location, put)
        except Unsupported:
            if not self.has_conditions:
                raise
            self.has_conditions = False
            return self._tried(location, put)
        except Changed:
            try:
                existing, stored_tag = self.read_small(location)
            except Absent:
                existing, stored_tag = b"", ""
            if existing != content:
                raise
            return stored_tag

    def delete(self, location: Location) -> None:
        """Delete an object; a missing one counts as deleted."""
        import obstore

        def gone(store: Any) -> None:
            try:
                obstore.delete(store, location.key)
            except FileNotFoundError:
                return

        self._tried(location, gone)

    def _tried(self, location: Location, call: Callable[..., T], *arguments: Any) -> T:
        """The result of a call, retried with growing waits."""
        import obstore

        if not is_usable_here():
            raise StoreError(
                "cannot be reached from a process that was forked from one that used a store",
                where=str(location),
                todo="Fetch what is needed before forking, or read ranges (jumar.stores.ranged).",
            )

        patience, wait, start_s = _patience_s(), _FIRST_WAIT_S, time.monotonic()
        final_errors: Mapping[type[BaseException], type[StoreError]] = {
            FileNotFoundError: Absent,
            obstore.exceptions.AlreadyExistsError: Changed,
            obstore.exceptions.PreconditionError: Changed,
            obstore.exceptions.PermissionDeniedError: StoreError,
            obstore.exceptions.UnauthenticatedError: StoreError,
            obstore.exceptions.NotSupportedError: Unsupported,
            obstore.exceptions.InvalidPathError: StoreError,
        }
        while True:
            try:
                return call(self._store, *arguments)
            except tuple(final_errors) as error:
                kind = next(
                    store_type
                    for raised_type, store_type in final_errors.items()
                    if isinstance(error, raised_type)
                )
                raise kind(_meaning(kind, error, location), where=str(location)) from None
            except (obstore.exceptions.BaseError, OSError, _WrongLength) as error:
                kind = _final_kind(error)
                if kind is not None:
                    raise kind(_meaning(kind, error, location), where=str(location)) from None
                elapsed_s = time.monotonic() - start_s
                if elapsed_s + wait > patience:
                    raise StoreError(
                        f"the store has not responded correctly for {elapsed_s:.0f} s: "
                        f"{_reason(error, location)}",
                        where=str(location),
                        todo="Try again; see whether the store is reachable from this machine "
                        f"({PATIENCE_VARIABLE}=SECONDS sets how long requests are retried).",
                    ) from None
            time.sleep(wait * random.uniform(0.5, 1.0))
            wait = min(2 * wait, _LONGEST_WAIT_S)


def client_of(location: Location) -> Client:
    """The client of a location's bucket; one for each bucket and process."""
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
    # Objects are deleted singly: not all stores support batch deletion.
    options: dict[str, Any] = {"region": settings.region, "disable_bulk_delete": True}
    if settings.is_virtual:
        options["virtual_hosted_style_request"] = True
    if endpoint := settings.endpoint_of(bucket.bucket):
        # Both, since the environment's AWS_ENDPOINT_URL_S3 would come before the first.
        options |= {"endpoint": endpoint, "aws_endpoint_url_s3": endpoint}
    if not settings.is_signed:
        options["skip_signature"] = True
    elif not _relies_on_role(bucket, settings.has_role):
        credentials(bucket)  # so that missing ones are reported here, not in a request
        options["credential_provider"] = _Provider(bucket)
    _used_in.add(os.getpid())
    return S3Store(
        bucket.bucket,
        client_options={
            "allow_http": settings.endpoint.startswith("http://"),
            "timeout": timedelta(seconds=_REQUEST_S),
            "connect_timeout": timedelta(seconds=10),
        },
        retry_config={
            "max_retries": 4,
            "retry_timeout": timedelta(seconds=_patience_s()),
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
    """Provides obstore's credentials, so that they are never part of a store or its repr."""

    def __init__(self, bucket: Location) -> None:
        self._bucket = bucket

    def __call__(self) -> dict[str, Any]:
        keys = credentials(self._bucket)
        return {
            "access_key_id": keys.key,
            "secret_access_key": keys.secret,
            "token": keys.token,
            "expires_at": datetime.now(timezone.utc) + _KEPT_FOR,
        }


def _stored(bucket: Location, meta: Any) -> StoredObject:
    location = Location(scheme=bucket.scheme, bucket=bucket.bucket, key=meta["path"])
    return StoredObject(location=location, size=int(meta["size"]), e_tag=meta["e_tag"] or "")


def _patience_s() -> float:
    text = os.environ.get(PATIENCE_VARIABLE, "")
    try:
        return float(text) if text else _PATIENCE_S
    except ValueError:
        raise UserError(f"'{text}' is not a number of seconds", where=PATIENCE_VARIABLE) from None


def _final_kind(error: BaseException) -> type[StoreError] | None:
    """The meaning of a permanent error; None for any other answer.

    Some requests, such as lists, have no exceptions of their own for these.
    """
    status = re.search(r"status code: (\d{3})\b", str(error))
    return _FINAL_STATUS.get(status[1]) if status else None


def _meaning(kind: type[StoreError], error: BaseException, location: Location) -> str:
    if kind is Absent:
        return "there is no such object or bucket"
    if kind is Changed:
        return "the object is not the one that was known: something else wrote it meanwhile"
    return f"the store refuses: {_reason(error, location)}"


def _reason(error: BaseException, location: Location) -> str:
    """The first line of obstore's message without address, request and secrets."""
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
