"""The manifest of a run in a store, which lists the objects of its files with their hashes.

It is written after these objects, so its presence means that they are complete. An object listed in
a manifest is never overwritten: a changed file is written under a key that contains its hash, which
the next manifest lists instead.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jumar.ground.errors import UserError
from jumar.ground.json_text import parse_json
from jumar.stores.client import Client, StoredObject
from jumar.stores.location import Location

MANIFEST = "manifest.json"
_KIND = "jumar run"
_FORMAT = 1


class NotAManifest(UserError):
    """An object with the manifest's name is not a manifest."""


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    """A file of a run in the store.

    Attributes:
        key: The key of its object, relative to the run.
        size: Its size in bytes.
        sha256: The hash of its content, in hex.
    """

    key: str
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The files of a run, by their paths in its directory, and the manifest's own ETag."""

    files: Mapping[str, StoredFile] = field(default_factory=dict[str, StoredFile])
    e_tag: str | None = None

    def to_json(self, writer: str) -> bytes:
        """Return the content of `manifest.json`.

        Args:
            writer: A name unique to the writer, so that no two writers write the same bytes.
        """
        content = {
            "kind": _KIND,
            "format": _FORMAT,
            "writer": writer,
            "files": {name: vars(file) for name, file in sorted(self.files.items())},
        }
        return (json.dumps(content, indent=1) + "\n").encode()

    def objects(self, run: Location) -> dict[str, StoredObject]:
        """Return the objects by the paths of their files; their ETags are unknown."""
        return {
            name: StoredObject(location=run.below(file.key), size=file.size, e_tag="")
            for name, file in self.files.items()
        }


def read_manifest(client: Client, run: Location) -> Manifest:
    """Read the manifest of a run in a store.

    Raises:
        NoSuchObject: There is none.
        NotAManifest: The object is not a manifest.
        UserError: The manifest is damaged, or of a newer format.
    """
    location = run.below(MANIFEST)
    content, e_tag = client.read_small(location)
    parsed = json_object(content)
    if parsed.get("kind") != _KIND:
        raise NotAManifest("is not a manifest of a run", where=str(location))
    try:
        if parsed["format"] > _FORMAT:
            raise UserError(
                f"has format {parsed['format']}, but this version of jumar reads up to {_FORMAT}",
                where=str(location),
                todo="Use the version that wrote it, or a newer one.",
            )
        files = {
            str(name): StoredFile(
                key=str(file["key"]), size=int(file["size"]), sha256=str(file["sha256"])
            )
            for name, file in parsed["files"].items()
        }
        for name in [*files, *(file.key for file in files.values())]:
            if not is_safe(name):
                raise ValueError(f"{name!r} is not a valid name")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"is not a manifest of a run: {error}", where=str(location)) from None
    return Manifest(files=files, e_tag=e_tag)


def json_object(content: bytes) -> dict[str, Any]:
    """Parse the JSON object in a stored file; empty if it contains anything else."""
    try:
        parsed = parse_json(content)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def is_safe(name: str) -> bool:
    """Return whether a name from a store is a valid relative path that stays in its folder."""
    return "\0" not in name and all(
        part not in ("", ".", "..") and len(part.encode(errors="surrogateescape")) <= 255
        for part in name.split("/")
    )
